"""Requests that come over time, through a worker, to an engine that wants them in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.envs import Env
from support.scripts import ScriptFile
from vlmhb import GenerationRequest
from vlmhb.bench.arrivals import Arrivals
from vlmhb.bench.engine import run_pass
from vlmhb.worker.launch import Launch, WorkerOptions
from vlmhb.worker.model import WorkerModel

Open = Callable[..., tuple[WorkerModel, ScriptFile]]


@pytest.fixture
def open_model(scripted_env: Env, tmp_path: Path) -> Iterator[Open]:
    """The scripted engine in a worker, which takes eight requests at a time."""
    with ExitStack() as stack:

        def start(*rules: dict[str, Any], delay: float = 0.0) -> tuple[WorkerModel, ScriptFile]:
            script = ScriptFile(tmp_path, *rules)
            options = WorkerOptions(log_path=str(tmp_path / "worker.log"), hang_timeout=20.0)
            launch = Launch(python=str(scripted_env.python), environment="the test environment")
            model = stack.enter_context(WorkerModel("scripted", launch, options))
            model.load("small", script=str(script.path), batch=8, delay=delay)
            return model, script

        yield start


def ask(count: int) -> list[GenerationRequest]:
    return [GenerationRequest.ask(str(number), f"question {number}") for number in range(count)]


def batches(script: ScriptFile) -> list[int]:
    return [entry["batch"] for entry in script.log() if "id" in entry]


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_are_in_flight_than_allowed(open_model: Open, limit: int) -> None:
    model, script = open_model()
    found = run_pass(model, ask(10), Arrivals("concurrency", limit))
    assert sorted(int(timing.id) for timing in found.requests) == list(range(10))
    assert max(batches(script)) <= limit


def test_a_request_is_answered_before_the_next_one_is_there(open_model: Open) -> None:
    model, _ = open_model()
    found = run_pass(model, ask(5), Arrivals("rate", 4.0))
    due = [timing.due for timing in found.requests]
    assert due == Arrivals("rate", 4.0).moments(5)
    late = [timing.ended - timing.due for timing in found.requests]
    assert max(late) < 0.5, "a lot is closed when nothing follows; gaps are a quarter of a second on average"


def test_what_came_meanwhile_is_one_lot(open_model: Open) -> None:
    model, script = open_model(delay=0.1)
    found = run_pass(model, ask(6), Arrivals("rate", 1000.0))
    assert len(found.requests) == 6
    assert max(batches(script)) >= 2


def test_a_worker_that_dies_does_not_stop_the_feed(open_model: Open) -> None:
    model, script = open_model({"id": "3", "do": "kill", "times": 1})
    found = run_pass(model, ask(8), Arrivals("concurrency", 2))
    assert sorted(int(timing.id) for timing in found.requests) == list(range(8))
    assert not any(timing.error for timing in found.requests)
    assert script.loads() == 2


def test_all_at_once_is_as_before(open_model: Open) -> None:
    model, script = open_model()
    assert len(run_pass(model, ask(16), Arrivals()).requests) == 16
    assert max(batches(script)) == 8
