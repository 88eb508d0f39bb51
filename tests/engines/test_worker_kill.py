"""Real engines in workers: whoever is killed, the work goes on or nothing is left, the engine's own children included.

Runs from an environment with the core and the demo pack; vLLM and SGLang come from managed environments
(``vlmhb env create vllm --device cpu``), Hugging Face from here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.processes import assert_gone, family, wait_until
from vlmhb.environments.manage import find_environment

DRIVER = """
import sys, vlmhb
from vlmhb.environments.manage import find_environment
from vlmhb.worker.launch import WorkerOptions
from vlmhb.worker.model import WorkerModel
backend, folder, log = sys.argv[1:]
options = WorkerOptions(log_path=log, on_event=lambda text: print("event", text.splitlines()[0], flush=True))
model = WorkerModel(backend, find_environment(backend), options)
model.load(folder, dtype="float32", device="cpu", max_model_len=1024)
sampling = vlmhb.SamplingParams(max_tokens=8)
for result in model.generate_requests(
    vlmhb.GenerationRequest.ask(str(n), f"What is {n}?", sampling=sampling) for n in range(1_000_000)
):
    print("answer" if result.ok else f"failure {result.failure}", result.id, *result.notes, flush=True)
"""

BACKENDS = [
    pytest.param(name, marks=[getattr(pytest.mark, name), pytest.mark.slow]) for name in ("hf", "vllm", "sglang")
]


class Driving:
    """A process that asks an engine in a worker without end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.failures: list[str] = []

    def read(self, start: str, words: str = "", lines: int = 1) -> None:
        """Read on until so many lines began with ``start`` and held ``words``."""
        for line in self.process.stdout:
            self.failures += [line] if line.startswith("failure") else []
            lines -= line.startswith(start) and words in line
            if lines == 0:
                return
        raise AssertionError(f"the driver ended with {self.process.wait()} before {start} {words}")


@pytest.fixture
def driving(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driving]:
    from vlmhb_demo import tiny_model

    if find_environment(request.param) is None:
        pytest.skip(f"there is no environment for {request.param}")
    folder, log = tiny_model.make(tmp_path / "tiny"), tmp_path / "worker.log"
    command = [sys.executable, "-c", DRIVER, request.param, str(folder), str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield Driving(process)
        finally:
            process.kill()


def engine_process(processes: list[psutil.Process]) -> psutil.Process:
    """A process that the engine has started, or the worker when there is none."""
    supervisor = next(p for p in processes if "supervisor.py" in " ".join(p.cmdline()))
    (worker,) = [p for p in processes if p.ppid() == supervisor.pid]
    own = [p for p in worker.children(recursive=True) if "resource_tracker" not in " ".join(p.cmdline())]
    return own[-1] if own else worker


def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


@pytest.mark.parametrize("driving", BACKENDS, indirect=True)
def test_killed_engine_is_replaced_and_killed_parent_leaves_nothing(driving):
    before = shared_memory()
    driving.read("answer", lines=5)
    first = family(driving.process.pid)
    engine_process(first).kill()
    driving.read("event", "again")
    assert_gone(first, 15.0)
    driving.read("answer", "asked again")
    assert driving.failures == []
    second = family(driving.process.pid)
    driving.process.kill()
    assert_gone(second, 15.0)
    assert wait_until(lambda: shared_memory() <= before), shared_memory() - before
