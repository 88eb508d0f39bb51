"""No process and no shared-memory file outlives a worker, whoever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.envs import Env
from support.processes import alive, assert_gone, family, wait_until
from support.scripts import ScriptFile
from vlmhb import GenerationRequest
from vlmhb.worker.launch import Launch, WorkerOptions
from vlmhb.worker.model import WorkerModel

DRIVER = """
import sys, vlmhb
from vlmhb.worker.launch import Launch
from vlmhb.worker.model import WorkerModel
python, script, ending = sys.argv[1:]
model = WorkerModel("scripted", Launch(python=python))
model.load("small", script=script, batch=1, delay=0.05)
control = vlmhb.GenerationControl()
requests = (vlmhb.GenerationRequest.ask(str(n), "q") for n in range(1_000_000))
try:
    for result in model.generate_requests(requests, control):
        print(result.id, result.finish_reason, flush=True)
        if result.id == "3" and ending == "exit":
            sys.exit()
except KeyboardInterrupt:
    control.stop.set()
    left = list(model.generate_requests([vlmhb.GenerationRequest.ask("after", "q")]))
    print("worker answers after Ctrl-C:", left[0].text, flush=True)
    model.close()
"""
LEAVING = [{"id": "0", "do": "spawn"}, {"id": "1", "do": "spawn_stubborn"}, {"id": "2", "do": "fork"}]


@pytest.fixture
def model(scripted_env: Env, tmp_path: Path) -> Iterator[WorkerModel]:
    """A loaded model whose engine has started a child, a daemon and a fork, each in a session of its own."""
    script = ScriptFile(
        tmp_path, *LEAVING, {"id": "s", "do": "shared_memory"}, {"id": "wait", "do": "hang", "times": 1}
    )
    options = WorkerOptions(log_path=str(tmp_path / "worker.log"))
    with WorkerModel("scripted", Launch(python=str(scripted_env.python)), options) as model:
        model.load("small", script=str(script.path), batch=1)
        assert len(answers(model, "0", "1", "2")) == 3
        yield model


def answers(model: WorkerModel, *ids: str) -> list[str]:
    return [r.id for r in model.generate_requests([GenerationRequest.ask(id, "q") for id in ids]) if r.ok]


def workers() -> list[psutil.Process]:
    """The supervisor of this process's worker, the worker, and everything below."""
    found = family(os.getpid())
    assert len(alive(found)) >= 5, [p.cmdline() for p in found]
    return found


def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


def supervisor_of(processes: list[psutil.Process]) -> psutil.Process:
    return next(p for p in processes if "supervisor.py" in " ".join(p.cmdline()))


def worker_of(processes: list[psutil.Process]) -> psutil.Process:
    """The worker itself, not what was forked from it."""
    boss = supervisor_of(processes).pid
    return next(p for p in processes if "vlmhb.worker" in p.cmdline() and p.ppid() == boss)


def test_close_ends_everything(model):
    processes = workers()
    model.close()
    assert alive(processes) == []


def test_killed_worker_takes_its_children_along(model):
    processes = workers()
    worker_of(processes).kill()
    assert_gone(processes)
    assert answers(model, "5") == ["5"]


def test_worker_killed_in_the_middle_of_a_request(model):
    processes = workers()
    threading.Timer(0.5, worker_of(processes).kill).start()
    (result,) = model.generate_requests([GenerationRequest.ask("wait", "q")])
    assert result.ok
    assert "SIGKILL" in result.notes[0]
    assert_gone(processes)


def test_killed_supervisor_is_noticed_and_replaced(model):
    processes = workers()
    supervisor = supervisor_of(processes)
    supervisor.kill()
    wait_until(lambda: not alive([supervisor]))
    assert answers(model, "5", "6") == ["5", "6"]
    assert_gone(processes)


def test_shared_memory_of_a_killed_engine_is_removed(model):
    before = shared_memory()
    assert answers(model, "s") == ["s"]
    made = shared_memory() - before
    assert len(made) == 1
    processes = workers()
    worker_of(processes).kill()
    assert_gone(processes)
    assert wait_until(lambda: not made & shared_memory())


def test_shared_memory_in_use_by_others_stays(model):
    foreign = Path("/dev/shm/psm_vlmhb_test_foreign")
    with foreign.open("wb"):
        model.close()
        assert foreign.exists()
    foreign.unlink()


def test_worker_lives_on_when_the_thread_that_started_it_ends(scripted_env, tmp_path):
    script = ScriptFile(tmp_path)
    model = WorkerModel("scripted", Launch(python=str(scripted_env.python)))
    thread = threading.Thread(target=lambda: model.load("small", script=str(script.path)))
    thread.start()
    thread.join()
    time.sleep(1.5)
    assert answers(model, "0") == ["0"]
    model.close()


# --- the parent


@pytest.fixture
def driver(scripted_env: Env, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that uses a worker, past the requests whose answers start children."""
    yield from _drive(scripted_env, tmp_path, "go on")


def _drive(env: Env, folder: Path, ending: str) -> Iterator[subprocess.Popen[str]]:
    script = ScriptFile(folder, *LEAVING)
    command = [sys.executable, "-c", DRIVER, str(env.python), str(script.path), ending]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            for number in range(4):
                assert process.stdout.readline() == f"{number} stop\n"
            yield process
        finally:
            process.kill()


def test_killed_parent(driver):
    processes = family(driver.pid)
    assert len(processes) >= 5
    driver.kill()
    assert_gone(processes)


def test_killed_parent_of_a_stopped_worker(driver):
    processes = family(driver.pid)
    worker_of(processes).suspend()
    driver.kill()
    assert_gone(processes)


@pytest.mark.slow
def test_parent_and_supervisor_killed_at_once(driver):
    processes = family(driver.pid)
    supervisor_of(processes).kill()
    driver.kill()
    assert_gone(processes)


def test_parent_that_ends_without_closing(scripted_env, tmp_path):
    driving = _drive(scripted_env, tmp_path, "exit")
    process = next(driving)
    assert_gone([psutil.Process(process.pid)])
    left = [p for p in psutil.process_iter(["cmdline"]) if str(tmp_path / "script.json") in (p.info["cmdline"] or [])]
    assert left == []
    driving.close()


def test_ctrl_c_reaches_the_parent_only(driver):
    processes = family(driver.pid)
    os.killpg(driver.pid, signal.SIGINT)
    output = driver.communicate(timeout=20)[0]
    assert "worker answers after Ctrl-C: q" in output
    assert driver.returncode == 0
    assert alive(processes) == []
