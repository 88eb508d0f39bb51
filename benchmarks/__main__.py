"""Run benchmarks and write what they found into ``docs/performance.json`` and ``docs/performance.md``.

    python benchmarks                     all of them
    python benchmarks startup planning    these; what others found before stays

Those of an engine run in the engine's environment (``vlmhb env create ENGINE``) and are left out where there is none.
Exit code 1 when a limit is not kept or a benchmark fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import _results

HERE = Path(__file__).parent
ROOT = HERE.parent
STORED = ROOT / "docs" / "performance.json"
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
ENGINES = {"vllm_overhead": "vllm", "sglang_overhead": "sglang"}
"""Benchmarks that run in an engine's environment."""


def names() -> list[str]:
    """All benchmarks."""
    return sorted(path.stem for path in HERE.glob("*.py") if not path.name.startswith("_"))


def python_of(engine: str | None) -> str | None:
    """The Python to run a benchmark with; None when the engine has no environment."""
    if engine is None:
        return sys.executable
    from vlmhb.environments.manage import find_environment

    found = find_environment(engine, rebuild=print)
    return found.python if found else None


def run(name: str) -> dict[str, Any] | None:
    """Run a benchmark; what it found, or None when its engine is not there."""
    python = python_of(ENGINES.get(name))
    if python is None:
        print(f"   left out: there is no environment for {ENGINES[name]} (vlmhb env create {ENGINES[name]})")
        return None
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.jsonl"
        env = {**os.environ, _results.FILE: str(results)}
        if python != sys.executable:
            env["PYTHONPATH"] = str(ROOT / "plugins" / "vlmhb-demo" / "src")
        code = subprocess.run([python, str(HERE / f"{name}.py")], env=env, check=False).returncode
        lines = results.read_text(encoding="utf-8").splitlines() if results.is_file() else []
    return {
        "code": code,
        "results": [json.loads(line) for line in lines],
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(python),
    }


def machine(python: str) -> str:
    """Processor, cores, system, and the versions of an environment, in one line."""
    from vlmhb.run.manifest import machine as hardware

    facts = hardware()
    system = f"{platform.system()} on {platform.machine()}"
    done = subprocess.run([python, _results.__file__], check=True, capture_output=True, text=True)
    return f"{facts['processor']}, {facts['cores']} cores, {system}; {done.stdout.strip()}"


def table(stored: dict[str, Any]) -> str:
    """The part of the page that is written here."""
    machines = list(dict.fromkeys(stored[name]["machine"] for name in sorted(stored)))
    lines = ["| script | compares | found | limit | kept | on | date |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for name in sorted(stored):
        entry = stored[name]
        where = f"({machines.index(entry['machine']) + 1}) | {entry['date']} |"
        lines += [f"| `{name}.py` | {_figure(one)} | {where}" for one in entry["results"]]
        if not entry["results"]:
            said = "yes" if entry["code"] == 0 else f"**no** (exit code {entry['code']})"
            lines.append(f"| `{name}.py` | all of it | | | {said} | {where}")
    lines += ["", *(f"({number}) {text}" + "\\" * (number < len(machines)) for number, text in enumerate(machines, 1))]
    return "\n".join(lines) + "\n"


def _figure(one: dict[str, Any]) -> str:
    limit = "" if one["limit"] is None else f"{'at least' if one['at_least'] else 'at most'} {one['limit']:g}"
    kept = "" if one["limit"] is None else "yes" if one["kept"] else "**no**"
    return f"{one['what']} | {one['value']:.3g} {one['unit']} | {limit} | {kept}"


def write_page(stored: dict[str, Any]) -> None:
    """Put the table between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(stored)}\n{END}{after}", encoding="utf-8")


def main() -> int:
    """Run, store, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    chosen = [name.removesuffix(".py") for name in parser.parse_args().names] or names()
    unknown = [name for name in chosen if name not in names()]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(names())}")
    stored: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8")) if STORED.is_file() else {}
    failed = 0
    for name in chosen:
        print(f"== {name}", flush=True)
        entry = run(name)
        if entry is not None:
            failed += entry["code"] != 0
            stored[name] = entry
            STORED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            write_page(stored)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
