"""When the worker of the next model is started, and which."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.envs import Env
from support.processes import assert_gone, family
from support.scripts import ScriptFile
from vlmhb import ModelSpec
from vlmhb.errors import ManagedEnvironmentError, ModelLoadError
from vlmhb.run import engine
from vlmhb.run.ahead import LEAD_SECONDS, NearTheEnd
from vlmhb.run.engine import Workers
from vlmhb.run.folder import RunFolder
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
def workers(here: Here, tmp_path: Path) -> Iterator[Workers]:
    with RunFolder(tmp_path / "out") as home, Workers(here, home, lambda _: None) as opened:  # type: ignore[arg-type]
        yield opened


@pytest.fixture
def script(tmp_path: Path) -> ScriptFile:
    return ScriptFile(tmp_path)


def spec(script: ScriptFile, name: str = "small") -> ModelSpec:
    return ModelSpec(model_path=name, options={"script": str(script.path)})


def test_the_prepared_worker_is_the_one_that_is_opened(workers: Workers, here: Here, script: ScriptFile) -> None:
    workers.prepare("scripted", spec(script))
    model, startup = workers.open("scripted", spec(script), most_images=3)
    with model:
        assert (startup["prepared_ahead"], here.rebuilds) == (True, [False])
        assert [entry["max_images"] for entry in script.log() if entry.get("event") == "load"] == [3]


def test_a_worker_for_another_model_is_not_taken_and_ends(workers: Workers, script: ScriptFile) -> None:
    workers.prepare("scripted", spec(script, "other"))
    prepared = family(os.getpid())
    model, startup = workers.open("scripted", spec(script), most_images=1)
    with model:
        assert startup["prepared_ahead"] is False
        assert_gone(prepared)
        assert {entry["model"] for entry in script.log() if entry.get("event") == "load"} == {"small"}


def test_nothing_is_prepared_when_memory_is_short(
    workers: Workers, here: Here, script: ScriptFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "free_memory", lambda: engine.SPARE - 1)
    workers.prepare("scripted", spec(script))
    assert here.rebuilds == []
    model, startup = workers.open("scripted", spec(script), most_images=1)
    with model:
        assert startup["prepared_ahead"] is False


def test_an_environment_that_must_be_made_again_waits_for_its_turn(
    workers: Workers, here: Here, script: ScriptFile
) -> None:
    here.problem = "it is out of date"
    workers.prepare("scripted", spec(script))
    with pytest.raises(ManagedEnvironmentError, match="out of date"):
        workers.open("scripted", spec(script), most_images=1)
    assert here.rebuilds == [False, True]


def test_a_model_that_is_refused_leaves_the_next_one_its_turn(workers: Workers, script: ScriptFile) -> None:
    script.rules({"on": "load", "model": "bad", "do": "refuse"})
    workers.prepare("scripted", spec(script, "bad"))
    with pytest.raises(ModelLoadError, match="refuses"):
        workers.open("scripted", spec(script, "bad"), most_images=1)
    model, _ = workers.open("scripted", spec(script), most_images=1)
    with model:
        assert model.generate(["a"]) == ["a"]
