"""A worker that is prepared before its turn: what it does, what it never does, and what is said when it fails."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.envs import Env
from support.processes import alive, assert_gone, family, wait_until
from support.scripts import ScriptFile
from vlmhb import ModelSpec, memory
from vlmhb.errors import VlmhbError
from vlmhb.worker import weights
from vlmhb.worker.launch import Launch, WorkerOptions
from vlmhb.worker.model import WorkerModel

Start = Callable[..., tuple[WorkerModel, ScriptFile, ModelSpec]]


@pytest.fixture
def start(scripted_env: Env, tmp_path: Path) -> Iterator[Start]:
    """A model that is not loaded yet, its script and the spec to load it with; closed at the test's end."""
    with ExitStack() as stack:

        def make(*rules: dict[str, Any], backend: str = "scripted") -> tuple[WorkerModel, ScriptFile, ModelSpec]:
            script = ScriptFile(tmp_path, *rules)
            options = WorkerOptions(log_path=str(tmp_path / "worker.log"))
            launch = Launch(python=str(scripted_env.python), environment="the test environment")
            model = stack.enter_context(WorkerModel(backend, launch, options))
            return model, script, ModelSpec(model_path="small", options={"script": str(script.path), "batch": 1})

        yield make


def events(script: ScriptFile) -> list[str]:
    return [entry["event"] for entry in script.log() if "event" in entry]


def test_a_prepared_worker_imports_and_loads_nothing_until_it_is_told(start: Start) -> None:
    model, script, spec = start()
    model.prepare(spec)
    assert wait_until(lambda: events(script) == ["prepare"])
    model.load_spec(spec)
    assert events(script) == ["prepare", "load"], "the engine is imported once"
    assert [entry["garbage"] for entry in script.log()] == [False, True], "none is looked for during imports"
    assert {entry["pid"] for entry in script.log()} == {model.pid}
    assert model.generate(["a"]) == ["a"]
    startup = model.startup()
    assert startup["prepared_ahead"] is True
    assert startup["waited"] < startup["worker"], "the process was there already"


def test_a_worker_that_is_not_prepared_tells_the_same_steps(start: Start) -> None:
    model, script, spec = start()
    model.load_spec(spec)
    assert events(script) == ["prepare", "load"]
    startup = model.startup()
    assert startup["prepared_ahead"] is False
    steps = [startup[name] for name in ("worker", "plugin", "imports", "load")]
    assert all(seconds >= 0 for seconds in steps)
    assert sum(steps) == pytest.approx(startup["waited"], abs=0.5)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"on": "prepare", "do": "refuse"}, "the script refuses this model"),
        ({"on": "prepare", "do": "raise"}, "the plugin of backend scripted failed: RuntimeError: the engine's own bug"),
        ({"on": "prepare", "do": "segfault"}, "was killed by SIGSEGV .* while it loaded small"),
        ({"on": "load", "do": "refuse"}, "the script refuses this model"),
    ],
)
def test_what_fails_is_told_when_the_model_is_loaded_and_in_the_same_words(
    start: Start, rule: dict[str, Any], said: str
) -> None:
    told = []
    for prepared in (False, True):
        model, script, spec = start(rule)
        if prepared:
            before = len(script.log())
            model.prepare(spec)
            assert wait_until(lambda script=script, before=before: len(script.log()) > before)
        with pytest.raises(VlmhbError, match=said) as caught:
            model.load_spec(spec)
        assert model.pid is None
        told.append((type(caught.value), re.sub(r"0x\w+|line \d+", "", str(caught.value).split(". Its log")[0])))
    assert told[0] == told[1]


def test_a_backend_that_is_not_there_is_told_when_the_model_is_loaded(start: Start) -> None:
    model, _, spec = start(backend="unknown")
    model.prepare(spec)
    with pytest.raises(VlmhbError, match="unknown"):
        model.load_spec(spec)


def test_a_worker_that_dies_beside_another_model_is_started_again_for_its_turn(start: Start) -> None:
    model, script, spec = start({"on": "prepare", "do": "kill", "times": 1})
    model.prepare(spec)
    below = family(os.getpid())
    assert_gone(below)
    model.load_spec(spec)
    assert model.generate(["a"]) == ["a"]
    assert model.startup()["prepared_ahead"] is False
    assert events(script) == ["prepare", "prepare", "load"]


def test_a_worker_that_is_not_wanted_any_more_is_gone_at_once_whatever_it_does(start: Start) -> None:
    model, script, spec = start({"on": "prepare", "do": "hang"})
    model.prepare(spec)
    assert wait_until(lambda: events(script) == ["prepare"])
    below = family(os.getpid())
    assert len(alive(below)) >= 2
    started = time.monotonic()
    model.abandon()
    assert_gone(below)
    assert time.monotonic() - started < 5
    assert model.pid is None


# --- memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder with 300 bytes of weights."""
    for name, size in (("a.safetensors", 200), ("b.bin", 100), ("config.json", 999)):
        (tmp_path / name).write_bytes(b"\0" * size)
    (tmp_path / "more.bin").mkdir()
    return tmp_path


def test_weights_are_read_ahead_only_when_twice_their_size_leaves_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda number, *_: asked.append(os.fstat(number).st_size))
    monkeypatch.setattr(weights, "free_memory", lambda: weights.SPARE + 600)
    assert weights.read_ahead(str(folder)) == 300
    assert sorted(asked) == [100, 200]
    monkeypatch.setattr(weights, "free_memory", lambda: weights.SPARE + 599)
    assert weights.read_ahead(str(folder)) == 0
    assert weights.read_ahead("organisation/name") == 0
    assert len(asked) == 2


def test_memory_is_what_the_container_may_take_and_has_left(tmp_path: Path) -> None:
    machine = memory.total_memory(tmp_path / "no group")
    assert machine > memory.free_memory(tmp_path / "no group") > 1 << 20
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 5\nactive_file 30\ninactive_file 20\n")
    for most, free in (("1000", 350), ("600", 0)):
        (tmp_path / "memory.max").write_text(f"{most}\n")
        assert (memory.total_memory(tmp_path), memory.free_memory(tmp_path)) == (int(most), free)
    for most in ("max", str(1 << 60)):
        (tmp_path / "memory.max").write_text(f"{most}\n")
        assert memory.total_memory(tmp_path) == machine
        assert memory.free_memory(tmp_path) > 1 << 20
