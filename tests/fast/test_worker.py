"""A model in a worker process answers as one in this process does, and survives what engines do."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import vlmhb
from PIL import Image
from support.envs import Env
from support.processes import wait_until
from support.scripts import ScriptFile
from vlmhb import GenerationControl, GenerationRequest, ImageInput
from vlmhb.errors import ConfigError, GenerationError, ModelLoadError, VlmhbError, WorkerError
from vlmhb.worker.launch import Launch, WorkerOptions
from vlmhb.worker.model import WorkerModel, describe
from vlmhb.worker.supervisor import LOG_LIMIT

Open = Callable[..., tuple[WorkerModel, ScriptFile]]


@pytest.fixture
def events() -> list[str]:
    return []


@pytest.fixture
def open_model(scripted_env: Env, tmp_path: Path, events: list[str]) -> Iterator[Open]:
    """Load a model in a worker with a script; closed at the test's end."""
    with ExitStack() as stack:

        def start(*rules: dict[str, Any], batch: int = 4, delay: float = 0.0, ahead: int = 0, **options: Any):
            script = ScriptFile(tmp_path, *rules)
            options = {"log_path": str(tmp_path / "worker.log"), "on_event": events.append, **options}
            launch = Launch(python=str(scripted_env.python), environment="the test environment")
            model = stack.enter_context(WorkerModel("scripted", launch, WorkerOptions(**options)))
            model.load("small", script=str(script.path), batch=batch, delay=delay, ahead=ahead)
            return model, script

        yield start


@pytest.fixture(scope="module")
def shared(scripted_env: Env, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WorkerModel, ScriptFile]]:
    """One worker for all tests that leave it as it is."""
    folder = tmp_path_factory.mktemp("shared")
    script = ScriptFile(
        folder,
        {"question": "b", "answer": "Ответ"},
        {"question": "refuse me", "do": "error"},
        {"question": "too big", "do": "out_of_memory"},
        {"question": "make noise", "do": "garbage"},
    )
    launch = Launch(python=str(scripted_env.python), environment="the test environment")
    with WorkerModel("scripted", launch, WorkerOptions(log_path=str(folder / "worker.log"))) as model:
        model.load("small", script=str(script.path), batch=1, delay=0.002)
        yield model, script


def ask(count: int, prefix: str = "") -> list[GenerationRequest]:
    return [GenerationRequest.ask(f"{prefix}{number}", f"question {number}") for number in range(count)]


# --- the interface of every model


def test_generate_answers_in_the_order_asked(shared):
    model, _ = shared
    assert model.generate(["a", "b", "c d e"], max_tokens=2) == ["a", "Ответ", "c d"]
    assert model.generate("alone") == ["alone"]


def test_backend_info_and_facts_come_from_the_other_environment(shared):
    model, _ = shared
    assert model.backend_info().name == "scripted"
    assert {option.name for option in model.backend_info().options} == {"ahead", "batch", "delay", "script"}
    assert model.facts()["batch"] == 1
    assert model.facts()["environment"] == "the test environment"


def test_describe_imports_no_engine(scripted_env):
    info = describe("scripted", Launch(python=str(scripted_env.python)))
    assert info.engine == "vlmhb-scripted"


def test_unknown_option_is_refused_before_loading(scripted_env):
    model = WorkerModel("scripted", Launch(python=str(scripted_env.python)))
    with model, pytest.raises(ConfigError, match="Did you mean batch"):
        model.load("small", bacth=3)


def test_images_and_sampling_arrive_as_they_were(shared, tmp_path):
    model, script = shared
    Image.effect_noise((900, 700), 80).save(tmp_path / "page.png")
    data = (tmp_path / "page.png").read_bytes()
    assert len(data) > 300_000
    images = [ImageInput(path=str(tmp_path / "page.png")), ImageInput(data=data, name="scan 2")]
    list(
        model.generate_requests([GenerationRequest.ask("x", "¿?", images, sampling=vlmhb.SamplingParams(max_tokens=7))])
    )
    entry = script.log()[-1]
    assert (entry["images"], entry["max_tokens"], entry["question"]) == (["page.png", "scan 2"], 7, "¿?")


def test_failed_request_is_a_result_and_generate_names_it(shared):
    model, _ = shared
    bad = [GenerationRequest.ask("r", "refuse me"), GenerationRequest.ask("o", "too big")]
    results = {r.id: r for r in model.generate_requests([*ask(1), *bad, *ask(1, "last")])}
    assert results["r"].failure.kind == "invalid_request"
    assert results["o"].failure.kind == "out_of_memory"
    assert results["0"].ok
    assert results["last0"].ok
    with pytest.raises(GenerationError, match="prompt 1: the script refuses"):
        model.generate(["a", "refuse me"])


def test_broken_images_fail_alone(shared, tmp_path):
    model, _ = shared
    (tmp_path / "broken.png").write_bytes(b"no picture")
    broken = [ImageInput(path=str(tmp_path / name)) for name in ("broken.png", "absent.png")]
    requests = [*ask(2), *(GenerationRequest.ask(image.label, "?", [image]) for image in broken)]
    results = {r.id: r for r in model.generate_requests(requests)}
    assert [r.failure.kind for r in results.values() if not r.ok] == ["image", "image"]
    assert "absent.png" in results["absent.png"].failure.message


def test_text_is_streamed_while_it_is_made(shared):
    model, _ = shared
    pieces: list[str] = []
    control = GenerationControl(on_text=lambda id, text: pieces.append(f"{id}:{text}"))
    (result,) = model.generate_requests([GenerationRequest.ask("a", "one two three")], control)
    assert pieces == ["a:one", "a: two", "a: three"]
    assert result.text == "one two three"


def test_no_text_is_sent_when_nobody_listens(shared):
    model, _ = shared
    assert [r.text for r in model.generate_requests(ask(2))] == ["question 0", "question 1"]


# --- flow


def test_endless_iterable_is_read_only_as_far_as_needed(shared):
    model, _ = shared
    read = itertools.count()
    endless = (GenerationRequest.ask(str(next(read)), "q") for _ in itertools.count())
    results = list(itertools.islice(model.generate_requests(endless), 20))
    assert len(results) == 20
    assert next(read) < 200


def test_slow_iterable_gives_each_result_while_it_goes_on(shared):
    model, _ = shared
    seen = []

    def slow() -> Iterator[GenerationRequest]:
        for request in ask(10):
            time.sleep(0.05)
            yield request
        seen.append("end of the iterable")

    seen.extend(result.id for result in model.generate_requests(slow()))
    assert sorted(seen[:8]) == [str(number) for number in range(8)]
    assert len(seen) == 11


@pytest.mark.parametrize("ahead", [0, 20])
def test_stop_finishes_what_was_started_and_skips_the_rest(open_model, ahead):
    """Also what the engine has read ahead and not started is skipped, not failed."""
    model, script = open_model(delay=0.05, ahead=ahead)
    control = GenerationControl()
    results = []
    for result in model.generate_requests(ask(1000), control):
        results.append(result)
        control.stop.set()
    done = [r.id for r in results if r.ok]
    assert done == script.asked()
    assert 4 <= len(done) <= 8
    assert {r.finish_reason for r in results if not r.ok} == {"skipped"}
    assert len({r.id for r in results}) == len(results)
    assert model.generate("still there") == ["still there"]


def test_a_caller_may_leave_the_loop(shared):
    model, script = shared
    before = len(script.asked())
    for _ in model.generate_requests(ask(1000)):
        break
    assert model.generate("next") == ["next"]
    assert len(script.asked()) - before < 100


def test_empty_iterable(shared):
    model, _ = shared
    assert list(model.generate_requests([])) == []


def test_request_that_cannot_be_encoded_fails_alone(shared):
    model, _ = shared
    bad = GenerationRequest.ask("bad", "half a \ud83d character")
    huge = GenerationRequest.ask("huge", "q", json_schema={"maximum": 2**70})
    results = {r.id: r for r in model.generate_requests([bad, *ask(2), huge])}
    assert results["bad"].failure.kind == results["huge"].failure.kind == "invalid_request"
    assert results["0"].ok
    assert results["1"].ok


def test_two_requests_with_one_id_in_flight(shared):
    model, _ = shared
    refused, answered = model.generate_requests([*ask(1), *ask(1)])
    assert answered.ok
    assert "another request with the id '0' is not answered yet" in refused.failure.message


# --- what the engine prints


def test_garbage_on_stdout_goes_to_the_log(shared):
    model, script = shared
    assert model.generate(["make noise", "after"]) == ["make noise", "after"]
    assert b"garbage\xff on stdout" in (script.path.parent / "worker.log").read_bytes()


@pytest.mark.slow
def test_a_hundred_megabytes_of_stderr(open_model, tmp_path, events):
    """The log loses its older part, and still ends with why the worker died."""
    log = tmp_path / "worker.log"
    model, _ = open_model({"id": "1", "do": "flood"}, {"id": "dies", "do": "segfault", "times": 1})
    assert len([r for r in model.generate_requests(ask(3)) if r.ok]) == 3
    assert wait_until(lambda: LOG_LIMIT // 4 < log.stat().st_size < LOG_LIMIT)
    assert [r.ok for r in model.generate_requests([GenerationRequest.ask("dies", "Hi")])] == [True]
    assert "the engine's last words" in events[0]
    assert "older lines were dropped" in log.read_text()[:100]


# --- deaths


def test_a_request_that_kills_the_worker_is_found_and_the_others_are_answered(open_model, events):
    model, script = open_model({"id": "7", "do": "segfault"}, batch=16)
    results = {r.id: r for r in model.generate_requests(ask(40))}
    assert len(results) == 40
    assert [id for id, r in results.items() if not r.ok] == ["7"]
    failure = results["7"].failure
    assert failure.kind == "worker_died"
    assert "SIGSEGV" in failure.message
    assert script.asked().count("7") == 3
    assert "asked again" in results["12"].notes[0]
    assert results["39"].notes == ()
    assert any("the engine's last words" in event for event in events)


def test_a_single_request_gets_two_chances(open_model):
    model, script = open_model({"id": "0", "do": "exit"})
    (result,) = model.generate_requests(ask(1))
    assert "exit code 3 each of the 2 times" in result.failure.message
    assert script.asked() == ["0", "0"]


def test_a_death_that_does_not_repeat_costs_nothing(open_model):
    model, script = open_model({"id": "5", "do": "kill", "times": 1})
    results = {r.id: r for r in model.generate_requests(ask(12))}
    assert all(r.ok for r in results.values())
    assert "SIGKILL" in results["5"].notes[0]
    assert script.loads() == 2


def test_stop_is_kept_over_a_death(open_model, events):
    model, script = open_model({"id": "5", "do": "kill"}, batch=4, delay=0.05)
    control = GenerationControl()
    results = {}
    for result in model.generate_requests(ask(40), control):
        results[result.id] = result
        if result.id == "4":
            control.stop.set()
    assert {id for id, r in results.items() if r.ok} == {"0", "1", "2", "3", "4"}
    assert results["5"].finish_reason == results["6"].finish_reason == "skipped"
    assert script.loads() == 1
    assert not any("again" in event for event in events if "SIGKILL" not in event)


@pytest.mark.slow
def test_several_culprits(open_model):
    culprits = ["3", "4"]
    model, _ = open_model(*({"id": id, "do": "segfault"} for id in culprits), batch=8)
    results = {r.id: r for r in model.generate_requests(ask(12))}
    assert sorted((id for id, r in results.items() if not r.ok), key=int) == culprits
    assert len(results) == 12


@pytest.mark.slow
def test_worker_that_always_dies_is_given_up(open_model, events):
    model, script = open_model(*({"id": str(n), "do": "segfault"} for n in range(100)), max_restarts=2)
    with pytest.raises(WorkerError, match=r"(?s)started again 2 times in a row.*SIGSEGV") as caught:
        list(model.generate_requests(ask(100)))
    assert "the engine's last words" in str(caught.value)
    assert script.loads() <= 6


def test_worker_that_cannot_start_again_is_given_up(open_model):
    model, script = open_model({"id": "0", "do": "kill"}, {"on": "load", "do": "exit", "skip": 1}, max_restarts=2)
    with pytest.raises(WorkerError, match=r"(?s)2 times in a row.*could not be started again.*exit code 3"):
        list(model.generate_requests(ask(1)))
    assert script.loads() == 3


def test_restart_survives_a_failed_load(open_model):
    model, script = open_model(
        {"id": "0", "do": "kill", "times": 1}, {"on": "load", "do": "exit", "skip": 1, "times": 2}
    )
    assert [r.ok for r in model.generate_requests(ask(3))] == [True] * 3
    assert script.loads() == 4


def test_exception_of_the_engine_fails_that_request_only(open_model, events):
    model, _script = open_model({"id": "2", "do": "raise"})
    results = {r.id: r for r in model.generate_requests(ask(8))}
    assert [id for id, r in results.items() if not r.ok] == ["2"]
    assert results["2"].failure.kind == "engine"
    assert "the engine's own bug" in results["2"].failure.message
    said = "\n".join(events)
    assert "the engine's own bug" in said
    assert "worker.log" in said
    assert "Traceback" not in said  # that is in the log


def test_hang_is_a_death(open_model, events):
    model, _ = open_model({"id": "2", "do": "hang"}, batch=1, hang_timeout=1.5)
    started = time.monotonic()
    results = {r.id: r for r in model.generate_requests(ask(5))}
    assert [id for id, r in results.items() if not r.ok] == ["2"]
    assert "1.5 s" in results["2"].failure.message
    assert time.monotonic() - started < 20


@pytest.mark.slow
def test_slow_work_with_steps_is_no_hang(open_model):
    model, _ = open_model(batch=8, delay=0.4, hang_timeout=1.5)
    assert all(r.ok for r in model.generate_requests(ask(8)))


@pytest.mark.slow
def test_waiting_for_the_caller_is_no_hang(open_model):
    model, _ = open_model(hang_timeout=1.0)

    def slow() -> Iterator[GenerationRequest]:
        yield from ask(1)
        time.sleep(1.6)
        yield from ask(1, "late")

    results = []
    for result in model.generate_requests(slow()):
        results.append(result)
        time.sleep(1.2)
    assert [(r.id, r.ok, r.notes) for r in results] == [("0", True, ()), ("late0", True, ())]


def test_streamed_text_is_not_repeated_after_a_death(open_model):
    model, _ = open_model({"question": "dies at the second", "do": "kill", "times": 1}, batch=2)
    pieces: dict[str, str] = {}
    control = GenerationControl(on_text=lambda id, text: pieces.update({id: pieces.get(id, "") + text}))
    requests = [GenerationRequest.ask("a", "some words here"), GenerationRequest.ask("b", "dies at the second")]
    list(model.generate_requests(requests, control))
    assert pieces == {"a": "some words here", "b": "dies at the second"}


# --- loading


def test_refused_model(open_model):
    with pytest.raises(ModelLoadError, match=r"^the script refuses this model$"):
        open_model({"on": "load", "do": "refuse"})


@pytest.mark.parametrize(
    ("action", "words"), [("segfault", "SIGSEGV"), ("exit", "exit code 3"), ("kill", "out of memory")]
)
def test_death_while_loading(open_model, action, words):
    with pytest.raises(ModelLoadError, match=words) as caught:
        open_model({"on": "load", "do": action})
    assert action == "exit" or "the engine's last words" in str(caught.value)


def test_loading_has_a_limit(open_model):
    with pytest.raises(ModelLoadError, match="did not finish within 1 s while it loaded small"):
        open_model({"on": "load", "do": "hang"}, load_timeout=1.0)


def test_exception_while_loading_is_the_plugin_s_fault(open_model, tmp_path):
    with pytest.raises(VlmhbError, match="RuntimeError: the engine's own bug"):
        open_model({"on": "load", "do": "raise"})
    assert "Traceback" in (tmp_path / "worker.log").read_text()


def test_unknown_backend_and_missing_python(scripted_env, tmp_path):
    with pytest.raises(VlmhbError, match="there is no backend"):
        WorkerModel("nonesuch", Launch(python=str(scripted_env.python))).load("small")
    with pytest.raises(WorkerError, match="could not be started"):
        WorkerModel("scripted", Launch(python=str(tmp_path / "no-python"))).load("small")


def test_another_version_of_the_contract_is_refused_in_words(scripted_env, tmp_path, monkeypatch):
    monkeypatch.setattr("vlmhb.worker.process.CONTRACT_VERSION", 99)
    with pytest.raises(WorkerError, match=r"Install the same version in both"):
        WorkerModel("scripted", Launch(python=str(scripted_env.python))).load("small")


def test_close_is_final_and_repeatable(open_model, scripted_env):
    model, script = open_model()
    model.close()
    model.close()
    assert script.log()[-1]["event"] == "close"
    with pytest.raises(WorkerError, match="no model is loaded"):
        list(model.generate_requests(ask(1)))
    model.load("again", script=str(script.path))
    assert model.generate("back") == ["back"]
