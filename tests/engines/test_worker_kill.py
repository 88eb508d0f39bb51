"""Real engines in workers: whoever is killed, no answer is lost and nothing is left, children of engines included.

Runs from an environment with the core and the hf and demo plugins; vLLM and SGLang come from managed environments
(``vlmhb env create vllm --device cpu``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.processes import assert_gone, family, wait_until
from vlmhb.environments.manage import find_environment

QUESTIONS = 60
DRIVER = """
import json, sys, vlmhb
from vlmhb.environments.manage import find_environment
from vlmhb.worker.launch import WorkerOptions
from vlmhb.worker.model import WorkerModel

def say(**facts):
    print(json.dumps(facts), flush=True)

backend, options, folder, log, count = sys.argv[1:]
limits = WorkerOptions(log_path=log, on_event=lambda text: say(event=text))
model = WorkerModel(backend, find_environment(backend), limits)
model.load(folder, dtype="float32", device="cpu", **json.loads(options))
sampling = vlmhb.SamplingParams(max_tokens=32)
for questions in (int(count), int(count), 10**9):
    asked = (vlmhb.GenerationRequest.ask(str(n), f"Question {n}?", sampling=sampling) for n in range(questions))
    for result in model.generate_requests(asked):
        say(id=result.id, tokens=result.token_ids, ok=result.ok, notes=result.notes)
"""
"""Asks everything once, the same once more, and then without end. All are short of room for most of the requests."""

CASES = {
    "hf": ("hf", {"batch_size": 4}, "vlmhb.worker --"),
    "vllm": ("vllm", {"max_num_seqs": 4, "kv_cache_gib": 0.5}, "vlmhb.worker --"),
    "vllm-engine": ("vllm", {"max_num_seqs": 4, "kv_cache_gib": 0.5, "engine_process": True}, "VLLM::EngineCore"),
    "sglang": ("sglang", {"max_running_requests": 4}, "vlmhb.worker --"),
    "sglang-engine": ("sglang", {"max_running_requests": 4}, "sglang::scheduler"),
}
"""Backend, options of the engine, and a word in the name or command line of the process to kill."""

cases = pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[getattr(pytest.mark, CASES[name][0]), pytest.mark.slow]) for name in CASES]
)


class Driving:
    """A process that asks an engine in a worker without end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.events: list[str] = []

    def answers(self, count: int) -> list[dict[str, Any]]:
        """The next so many answers; what is told between them goes to ``events``."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            line = self.process.stdout.readline()
            assert line, f"the driver ended with {self.process.wait()} after {self.events}"
            told = json.loads(line)
            if "event" in told:
                self.events.append(told["event"])
            else:
                found.append(told)
        return found


@pytest.fixture
def driving(case: str, tmp_path: Path) -> Iterator[Driving]:
    from vlmhb_demo import tiny_model

    backend, options, _ = CASES[case]
    assert find_environment(backend) is not None, f"make it: vlmhb env create {backend} --device cpu"
    arguments = [backend, json.dumps(options), tiny_model.make(tmp_path / "tiny"), tmp_path / "worker.log", QUESTIONS]
    command = [sys.executable, "-c", DRIVER, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield Driving(process)
        finally:
            process.kill()


def named(word: str, processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those whose name or command line holds a word."""
    found = []
    for process in processes:
        try:
            if word in " ".join([process.name(), *process.cmdline()]):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


def by_id(answers: list[dict[str, Any]]) -> dict[str, list[int]]:
    assert [answer for answer in answers if not answer["ok"]] == []
    assert len({answer["id"] for answer in answers}) == len(answers) == QUESTIONS
    return {answer["id"]: answer["tokens"] for answer in answers}


@cases
def test_killed_engine_costs_no_answer_and_killed_parent_leaves_nothing(driving, case):
    before = shared_memory()
    expected = by_id(driving.answers(QUESTIONS))
    answers = driving.answers(3)
    first = family(driving.process.pid)
    victims = named(
        CASES[case][2], [process for process in first if "supervisor.py" not in " ".join(process.cmdline())]
    )
    assert victims, [process.cmdline() for process in first]
    for process in victims:
        process.kill()
    answers += driving.answers(QUESTIONS - len(answers))
    assert_gone(first, 15.0)
    assert by_id(answers) == expected
    assert any("asked again" in note for answer in answers for note in answer["notes"])
    assert any("again" in event for event in driving.events)

    driving.answers(3)
    second = family(driving.process.pid)
    driving.process.kill()
    assert_gone(second, 15.0)
    assert wait_until(lambda: shared_memory() <= before), shared_memory() - before
