"""How an engine ends, by itself, by force, or before it has begun; each in a process of its own.

The scripts have no ``if __name__ == "__main__"``: SGLang's processes must not run them again.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import psutil
import pytest
import twins

COMMON = """
    import itertools, json, os, signal, sys, threading, time
    from pathlib import Path
    import psutil
    from vlmhb import GenerationRequest, SamplingParams
    from vlmhb.errors import ModelLoadError
    from vlmhb_sglang import SGLangModel

    def ask(count, max_tokens):
        sampling = SamplingParams(max_tokens=max_tokens)
        return [GenerationRequest.ask(str(i), f"Tell me about {i}.", sampling=sampling) for i in range(count)]

    def endless():
        for number in itertools.count():
            yield GenerationRequest.ask(str(number), "Tell me more.", sampling=SamplingParams(max_tokens=200))

    def running():
        family = psutil.Process().children(recursive=True)
        return [p.pid for p in family if "resource_tracker" not in " ".join(p.cmdline())]

    def shared():
        return sorted(p.name for p in Path("/dev/shm").iterdir() if p.name.startswith(("sgl", "vlmhb")))

    def say(**facts):
        print(json.dumps(facts), flush=True)
"""


def facts(line: str) -> dict:
    assert line, "the script ended early"
    return json.loads(line)


def gone(pids, seconds=30.0):
    deadline = time.monotonic() + seconds
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return not any(map(psutil.pid_exists, pids))


@pytest.mark.slow
def test_a_child_is_killed_and_the_model_loaded_again(script):
    """The engine's end is an exception, its host lives, and a second engine works where the first one was.

    The first one is loaded and used outside of the main thread.
    """
    process = script(
        COMMON
        + """
    before = shared()
    sleeper = __import__("subprocess").Popen(["sleep", "1000"])  # somebody else's child
    model = SGLangModel()

    def other_thread():
        model.load(TINY, dtype="float32")
        answers = model.generate_requests(endless())
        scheduler = min(model._engine.processes, key=lambda process: process.pid)
        threading.Timer(1.0, scheduler.kill).start()
        began = time.monotonic()
        try:
            list(answers)
        except RuntimeError as error:
            say(error=str(error), kind=type(error).__name__, seconds=time.monotonic() - began)
        try:
            list(model.generate_requests(ask(1, 1)))
        except RuntimeError as error:
            say(error=str(error))
        model.close()

    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join()
    handler = signal.getsignal(signal.SIGQUIT)
    model.load(TINY, dtype="float32")
    say(texts=[result.text for result in model.generate_requests(ask(3, 8))])
    model.close()
    model.close()
    say(
        left=[pid for pid in running() if pid != sleeper.pid], shared=shared() == before,
        sleeper=sleeper.poll(), handler=signal.getsignal(signal.SIGQUIT) is handler,
    )
    sleeper.kill()
    """
    )
    died, again = facts(process.stdout.readline()), facts(process.stdout.readline())
    assert died["kind"] == "EngineDiedError"
    assert died["seconds"] < 10
    assert "SGLang has ended" in again["error"]
    assert len([text for text in facts(process.stdout.readline())["texts"] if text]) == 3
    assert facts(process.stdout.readline()) == {"left": [], "shared": True, "sleeper": None, "handler": True}
    assert process.wait(30) == 0


@pytest.mark.slow
def test_nothing_is_left_when_the_host_is_killed(script):
    """SIGKILL while the engine is busy."""
    process = script(
        COMMON
        + """
    before = shared()
    model = SGLangModel().load(TINY, dtype="float32")
    answers = model.generate_requests(endless())
    threading.Timer(3.0, lambda: say(pids=running(), before=before, shared=shared())).start()
    list(answers)
    """
    )
    said = facts(process.stdout.readline())
    assert len(said["pids"]) >= 3
    process.kill()
    process.wait()
    assert gone(said["pids"])
    assert said["shared"] == said["before"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "way", "reason"),
    [
        ("bloom", "auto", "BloomForCausalLM has no SGlang implementation"),
        ("idefics3", "native", "SGLang has no code of its own for Idefics3ForConditionalGeneration"),
    ],
)
def test_a_model_that_sglang_refuses(script, tmp_path, family, way, reason):
    """The engine's own reason, and the host lives; SGLang alone would have killed it, or taken transformers' code."""
    folder = twins.make(family, tmp_path / family)
    process = script(
        COMMON
        + f"""
    before = shared()
    try:
        SGLangModel().load({str(folder)!r}, dtype="float32", model_impl={way!r})
    except ModelLoadError as error:
        say(error=str(error), left=running(), shared=shared() == before)
    """
    )
    said = facts(process.stdout.readline())
    assert reason in said["error"]
    assert "model_impl transformers" in said["error"]
    assert (said["left"], said["shared"]) == ([], True)
    assert process.wait(30) == 0


def test_leftovers_of_the_session(model):
    """The engine of this session has no name in shared memory while it runs, so none can be left."""
    from sglang.srt.managers.load_snapshot import shm_path_for

    assert model.facts()["device"] == "cpu"
    assert not Path(shm_path_for(model._engine.port_args.instance_id)).exists()
