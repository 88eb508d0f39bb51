"""Tests of SGLang run in an environment that holds it, with vlmhb, the sglang and demo plugins, and pytest.

One engine serves the whole session; what needs another one starts it in a process of its own.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vlmhb import GenerationRequest, GenerationResult

HERE = Path(__file__).parent
INSTALLED = importlib.util.find_spec("sglang") is not None
START_SECONDS = 540

if not INSTALLED:
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here. The engine's own warnings are not ours to mend."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.sglang)
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's tiny Qwen2-VL, with a generation config that would change every answer."""
    from vlmhb_demo import tiny_model

    loud = {"do_sample": True, "temperature": 0.9, "top_k": 5, "repetition_penalty": 1.3}
    return tiny_model.make(tmp_path_factory.mktemp("tiny"), generation_config=loud)


@pytest.fixture(scope="session")
def model(tiny: Path) -> Iterator[Any]:
    """The tiny model on SGLang."""
    from vlmhb_sglang import SGLangModel

    with SGLangModel().load(tiny, dtype="float32", max_images=2, max_running_requests=16) as loaded:
        yield loaded


@pytest.fixture(scope="session")
def answers_of(model: Any) -> Callable[..., dict[str, GenerationResult]]:
    """Answer requests and return results by id; every request has exactly one."""

    def answers(*requests: GenerationRequest) -> dict[str, GenerationResult]:
        results = list(model.generate_requests(requests))
        assert sorted(result.id for result in results) == sorted(request.id for request in requests)
        return {result.id: result for result in results}

    return answers


@pytest.fixture
def script(tmp_path: Path, tiny: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a Python script with an engine of its own: ``TINY`` is the model's folder. It has no main guard."""

    def started(body: str) -> subprocess.Popen[str]:
        file = tmp_path / "script.py"
        file.write_text(f"TINY = {str(tiny)!r}\n" + textwrap.dedent(body), encoding="utf-8")
        return subprocess.Popen(
            [sys.executable, str(file)],
            stdout=subprocess.PIPE,
            stderr=(tmp_path / "stderr").open("w"),
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    return started
