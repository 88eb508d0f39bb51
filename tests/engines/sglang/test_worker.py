"""SGLang in a worker process: the same answers, and nothing left when something is killed. Real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support.processes import alive, assert_gone, family, wait_until
from vlmhb import GenerationRequest, SamplingParams
from vlmhb.worker.launch import WorkerOptions
from vlmhb.worker.model import WorkerModel

pytestmark = pytest.mark.slow

OPTIONS = {"dtype": "float32", "max_running_requests": 4}
SHARED_MEMORY = Path("/dev/shm")

PARENT = """
import sys
from vlmhb import GenerationRequest
from vlmhb.worker.model import WorkerModel

model = WorkerModel("sglang").load(sys.argv[1], dtype="float32")
endless = (GenerationRequest.ask(str(n), f"Question {n}?") for n in range(10**9))
for result in model.generate_requests(endless):
    print(result.id, flush=True)
"""


def requests(count):
    params = SamplingParams(max_tokens=24)
    return [GenerationRequest.ask(str(n), f"Question {n}?", sampling=params) for n in range(count)]


def below_with(word):
    """Descendants whose command line or title holds a word."""
    found = []
    for child in family(os.getpid()):
        try:
            if word in " ".join([child.name(), *child.cmdline()]):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.fixture(scope="module")
def expected(answers_of):
    return {name: result.token_ids for name, result in answers_of(*requests(40)).items()}


@pytest.mark.parametrize("victim", ["vlmhb.worker --", "sglang::scheduler"], ids=["worker", "scheduler"])
def test_a_killed_process_costs_no_answer(victim, tiny, expected, tmp_path):
    others = below_with(victim)  # the engine of this session lives in this process
    log = tmp_path / "engine.log"
    worker = WorkerModel("sglang", options=WorkerOptions(log_path=str(log)))
    before = family(os.getpid())
    with worker.load(tiny, **OPTIONS) as model:
        results, killed = [], []
        for result in model.generate_requests(requests(40)):
            results.append(result)
            if len(results) == 3:
                killed = [process for process in below_with(victim) if process not in others]
                for process in killed:
                    process.send_signal(signal.SIGKILL)
        assert killed
        assert_gone(killed)
        everything = [process for process in family(os.getpid()) if process not in before]
    assert {result.id: result.token_ids for result in results} == expected
    assert any(result.notes for result in results), "nobody says that it was asked again"
    assert_gone(everything)


def test_a_killed_parent_leaves_nothing(tiny, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    files = set(SHARED_MEMORY.iterdir())
    parent = subprocess.Popen([sys.executable, str(script), str(tiny)], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout.readline().strip().isdigit()
        everything = family(parent.pid)
        assert len(alive(everything)) >= 4, [p.cmdline() for p in everything]
    finally:
        parent.kill()
        parent.wait()
    assert_gone(everything, seconds=15)
    assert wait_until(lambda: set(SHARED_MEMORY.iterdir()) <= files), set(SHARED_MEMORY.iterdir()) - files
