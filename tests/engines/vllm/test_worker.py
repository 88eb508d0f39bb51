"""vLLM in a worker process: the same answers, and nothing left when something is killed. Real processes."""

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

OPTIONS = {"dtype": "float32", "kv_cache_gib": 0.5, "max_num_seqs": 4}
SHARED_MEMORY = Path("/dev/shm")

PARENT = """
import sys
from vlmhb import GenerationRequest, SamplingParams
from vlmhb.worker.model import WorkerModel

if __name__ == "__main__":
    model = WorkerModel("vllm").load(sys.argv[1], dtype="float32", kv_cache_gib=0.5, engine_process=True)
    endless = (GenerationRequest.ask(str(n), f"Question {n}?") for n in range(10**9))
    for result in model.generate_requests(endless):
        print(result.id, flush=True)
"""


def requests(count):
    params = SamplingParams(max_tokens=24)
    return [GenerationRequest.ask(str(n), f"Question {n}?", sampling=params) for n in range(count)]


def below_with(word, process=None):
    """Descendants whose command line or name holds a word."""
    found = []
    for child in family((process or psutil.Process()).pid):
        try:
            if word in " ".join([child.name(), *child.cmdline()]):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.fixture(scope="module")
def expected(load, tiny, answers_of):
    with load(tiny, max_num_seqs=4) as model:
        return {name: result.token_ids for name, result in answers_of(model, requests(40)).items()}


def ask_and_kill(model, victims):
    """Ask 40 requests; when the third answer is there, kill what ``victims`` finds. Results, and how many died."""
    results, killed = [], []
    for result in model.generate_requests(requests(40)):
        results.append(result)
        if len(results) == 3:
            killed = victims()
            for process in killed:
                process.send_signal(signal.SIGKILL)
    return results, killed


@pytest.mark.parametrize(
    ("own_process", "victim"), [(False, "vlmhb.worker --"), (True, "VLLM::EngineCore")], ids=["worker", "engine core"]
)
def test_a_killed_process_costs_no_answer(own_process, victim, tiny, expected, tmp_path):
    log = tmp_path / "engine.log"
    worker = WorkerModel("vllm", options=WorkerOptions(log_path=str(log)))
    with worker.load(tiny, engine_process=own_process, **OPTIONS) as model:
        before = family(os.getpid())
        results, killed = ask_and_kill(model, lambda: below_with(victim))
        assert killed
        assert_gone(killed)
        everything = before + family(os.getpid())
    assert {result.id: result.token_ids for result in results} == expected
    assert any(result.notes for result in results), "nobody says that it was asked again"
    assert log.read_text().count("Initializing a V1 LLM engine") == 2
    assert_gone(everything)


def test_a_killed_parent_leaves_nothing(tiny, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    files = set(SHARED_MEMORY.iterdir())
    parent = subprocess.Popen([sys.executable, str(script), str(tiny)], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout.readline().strip().isdigit()
        everything = family(parent.pid)
        assert len(alive(everything)) >= 3, [p.cmdline() for p in everything]
    finally:
        parent.kill()
        parent.wait()
    assert_gone(everything, seconds=15)
    assert wait_until(lambda: set(SHARED_MEMORY.iterdir()) <= files), set(SHARED_MEMORY.iterdir()) - files
