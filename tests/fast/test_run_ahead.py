"""When the worker of the next model is started, and which."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.envs import Env
from support.processes import assert_gone, family, wait_until
from support.scripts import ScriptFile
from vlmhb import GenerationRequest, ModelSpec
from vlmhb.errors import ManagedEnvironmentError, ModelLoadError, WorkerError
from vlmhb.run import engine
from vlmhb.run.ahead import LEAD_SECONDS, NearTheEnd
from vlmhb.run.engine import Workers
from vlmhb.worker.launch import Launch


class Clock:
    """Seconds that pass when the test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def asked_at(pending: int, seconds_each: float) -> list[int]:
    """After how many answers the next worker is started."""
    clock, answered, found = Clock(), 0, []
    near = NearTheEnd(pending, lambda: found.append(answered), clock)
    for answered in range(1, pending + 1):  # noqa: B007 - the function above reads it
        clock.now += seconds_each
        near.answered()
    return found


def test_the_next_worker_is_started_once_and_near_the_end() -> None:
    assert asked_at(1000, seconds_each=1.0) == [1000 - LEAD_SECONDS]
    assert asked_at(1000, seconds_each=0.1) == [1000 - LEAD_SECONDS * 10]


def test_of_a_short_run_with_the_first_answer_and_of_a_slow_one_with_the_last() -> None:
    assert asked_at(10, seconds_each=1.0) == [1]
    assert asked_at(3, seconds_each=60.0) == [3]
    assert asked_at(1, seconds_each=1.0) == [1]


class Here:
    """Stands for the registry: every engine is in one environment, or in none that can be used."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.rebuilds: list[bool] = []
        self.problem: str | None = None

    def launch(self, name: str, say: Any) -> Launch:
        self.rebuilds.append(say is not None)
        if self.problem:
            raise ManagedEnvironmentError(self.problem)
        return Launch(python=str(self.env.python))


@pytest.fixture
def here(scripted_env: Env) -> Here:
    return Here(scripted_env)


@pytest.fixture
def workers(here: Here) -> Iterator[Workers]:
    with Workers(here, lambda _: None) as opened:  # type: ignore[arg-type]
        yield opened


@pytest.fixture
def script(tmp_path: Path) -> ScriptFile:
    return ScriptFile(tmp_path)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "scripted-small.log"


def spec(script: ScriptFile, name: str = "small") -> ModelSpec:
    return ModelSpec(model_path=name, options={"script": str(script.path)})


def test_the_prepared_worker_is_the_one_that_is_opened(
    workers: Workers, here: Here, script: ScriptFile, log: Path
) -> None:
    workers.prepare("scripted", spec(script), log)
    model, startup = workers.open("scripted", spec(script), log, most_images=3)
    with model:
        assert (startup["prepared_ahead"], here.rebuilds) == (True, [False])
        assert [entry["max_images"] for entry in script.log() if entry.get("event") == "load"] == [3]


def test_a_worker_for_another_model_is_not_taken_and_ends(workers: Workers, script: ScriptFile, log: Path) -> None:
    before = family(os.getpid())
    workers.prepare("scripted", spec(script, "other"), log)
    prepared = [process for process in family(os.getpid()) if process not in before]
    model, startup = workers.open("scripted", spec(script), log, most_images=1)
    with model:
        assert startup["prepared_ahead"] is False
        assert_gone(prepared)
        assert {entry["model"] for entry in script.log() if entry.get("event") == "load"} == {"small"}


def test_nothing_is_prepared_when_memory_is_short(
    workers: Workers, here: Here, script: ScriptFile, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "free_memory", lambda: engine.SPARE - 1)
    workers.prepare("scripted", spec(script), log)
    assert here.rebuilds == []
    model, startup = workers.open("scripted", spec(script), log, most_images=1)
    with model:
        assert startup["prepared_ahead"] is False


def test_an_environment_that_must_be_made_again_waits_for_its_turn(
    workers: Workers, here: Here, script: ScriptFile, log: Path
) -> None:
    here.problem = "it is out of date"
    workers.prepare("scripted", spec(script), log)
    with pytest.raises(ManagedEnvironmentError, match="out of date"):
        workers.open("scripted", spec(script), log, most_images=1)
    assert here.rebuilds == [False, True]


def test_a_model_that_is_refused_leaves_the_next_one_its_turn(workers: Workers, script: ScriptFile, log: Path) -> None:
    script.rules({"on": "load", "model": "bad", "do": "refuse"})
    workers.prepare("scripted", spec(script, "bad"), log)
    with pytest.raises(ModelLoadError, match="refuses"):
        workers.open("scripted", spec(script, "bad"), log, most_images=1)
    model, _ = workers.open("scripted", spec(script), log, most_images=1)
    with model:
        assert model.generate(["a"]) == ["a"]


def test_what_a_prepared_worker_prints_is_not_blamed_on_the_model_that_answers(
    workers: Workers, script: ScriptFile, log: Path
) -> None:
    script.rules({"on": "prepare", "model": "next", "do": "garbage"}, {"question": "die", "do": "segfault"})
    after = log.with_name("scripted-next.log")
    model, _ = workers.open("scripted", spec(script), log, most_images=1)
    with model:
        workers.prepare("scripted", spec(script, "next"), after)
        assert wait_until(lambda: after.exists() and b"garbage" in after.read_bytes())
        with pytest.raises(WorkerError) as problem:
            list(model.generate_requests(GenerationRequest.ask(str(number), "die") for number in range(9)))
    assert f"Its log is {log}" in str(problem.value)
    assert "the engine's last words" in str(problem.value)
    assert "garbage" not in str(problem.value)
    assert log.read_text().count("the engine's last words") > 1, "a worker that is started again goes on in its log"
