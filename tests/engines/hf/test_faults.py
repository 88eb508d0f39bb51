"""Memory that runs out, an engine that fails on some rows, and callers that stop early."""

import subprocess
import sys
import textwrap

import pytest
from parity_requests import picture
from vlmhb import GenerationControl

from .conftest import answers, ask

pytestmark = pytest.mark.hf


class Spoiled:
    """Wraps ``generate`` of a real loaded model: it fails before the real call, for the batches it is told to."""

    def __init__(self, torch_model, fails):
        self.torch_model = torch_model
        self.real = torch_model.generate
        self.fails = fails
        self.sizes = []

    def __enter__(self):
        self.torch_model.generate = self
        return self

    def __exit__(self, *error):
        del self.torch_model.generate

    def __call__(self, **inputs):
        self.sizes.append(len(inputs["input_ids"]))
        error = self.fails(inputs["input_ids"])
        if error is not None:
            raise error
        return self.real(**inputs)


REQUESTS = [ask(str(index), "What is it?", picture(100 + 10 * index, 90, index), max_tokens=6) for index in range(16)]


@pytest.fixture(scope="module")
def wanted(model):
    return {id: result.token_ids for id, result in answers(model, REQUESTS).items()}


@pytest.fixture(autouse=True)
def full_size(model):
    yield
    model._batch_size = 16


@pytest.mark.parametrize("kind", ["cuda", "cpu", "python"])
def test_out_of_memory_halves_the_batch_and_goes_on(model, wanted, kind):
    import torch

    error = {
        "cuda": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        "cpu": RuntimeError("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"),
        "python": MemoryError(),
    }[kind]
    with Spoiled(model._model, lambda ids: error if len(ids) > 5 else None) as spoiled:
        results = answers(model, REQUESTS)
        assert spoiled.sizes == [16, 8, 4, 4, 4, 4]
        spoiled.sizes.clear()
        answers(model, REQUESTS)  # what was learnt is kept
        assert spoiled.sizes == [4, 4, 4, 4]
    assert {id: result.token_ids for id, result in results.items()} == wanted
    for result in results.values():
        assert any("memory ran out with 16 requests together; answered in groups of 8" in n for n in result.notes)


def test_out_of_memory_while_prompts_are_prepared_halves_the_batch_and_goes_on(model, wanted, monkeypatch):
    """The pixels of sixteen pages do not fit: no request fails, and parts are prepared one after the other."""
    real, events = model._builder.family.encode, []

    def encode(processor, texts, pictures, options):
        if len(texts) > 5:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        events.append(f"prepared {len(texts)}")
        return real(processor, texts, pictures, options)

    monkeypatch.setattr(model._builder.family, "encode", encode)
    with Spoiled(model._model, lambda ids: events.append(f"asked {len(ids)}")):
        results = answers(model, REQUESTS)
    assert events == ["prepared 4", "asked 4"] * 4
    assert {id: result.token_ids for id, result in results.items()} == wanted
    for result in results.values():
        assert any("memory ran out with 16 requests together; answered in groups of 8" in n for n in result.notes)


def test_a_page_that_is_too_big_to_prepare_is_out_of_memory_and_not_refused(model, wanted, monkeypatch):
    real = model._builder.family.encode

    def encode(processor, texts, pictures, options):
        if any(picture.width > 230 for pages in pictures for picture in pages):
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return real(processor, texts, pictures, options)

    monkeypatch.setattr(model._builder.family, "encode", encode)
    results = answers(model, REQUESTS)
    failed = {id for id, result in results.items() if not result.ok}
    assert failed
    assert len(failed) < 8
    assert {results[id].failure.kind for id in failed} == {"out_of_memory"}
    assert all(results[id].token_ids == wanted[id] for id in results.keys() - failed)


@pytest.mark.slow
def test_a_request_that_is_too_big_alone_fails_alone(model, wanted):
    import torch

    longest = max(wanted, key=int)
    length = len(
        answers(model, [ask("0", "What is it?", picture(250, 90, 15), return_prompt_ids=True)])["0"].prompt_token_ids
    )

    def fails(ids):
        widest = (ids != model._builder.tokenizer.pad_token_id).sum(-1).max()
        return torch.OutOfMemoryError("CUDA out of memory") if widest >= length else None

    with Spoiled(model._model, fails):
        results = answers(model, REQUESTS)
    failed = {id for id, result in results.items() if not result.ok}
    assert longest in failed
    assert all(results[id].failure.kind == "out_of_memory" for id in failed)
    assert {id: r.token_ids for id, r in results.items() if r.ok} == {
        id: wanted[id] for id in wanted if id not in failed
    }
    assert len(failed) < 8


@pytest.mark.slow
def test_real_exhaustion_of_memory_on_a_cpu(tiny):
    """The address space is bounded ever more tightly, until sixteen rows do not fit and fewer do.

    The estimate that would have made the batches smaller beforehand is put out of action.
    """
    code = textwrap.dedent(
        """
        import resource, sys
        from pathlib import Path
        from vlmhb import GenerationRequest, SamplingParams
        from vlmhb_hf import HuggingFaceModel
        from vlmhb_hf.memory import MemoryBudget

        MemoryBudget.fits = lambda *asked: True

        def requests(count):
            text = "Which number? " * 150
            return [GenerationRequest.ask(str(i), text, sampling=SamplingParams(max_tokens=2)) for i in range(count)]

        model = HuggingFaceModel().load(
            sys.argv[1], dtype="float32", threads=1, attn_implementation="eager", batch_size=16, reuse="off"
        )
        wanted = {r.id: r.token_ids for r in model.generate_requests(requests(1))}
        for megabytes in (400, 280, 200, 140, 100, 70, 50):
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + megabytes * 2**20, resource.RLIM_INFINITY))
            results = list(model.generate_requests(requests(16)))
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert len(results) == 16
            assert all(r.ok and r.token_ids == wanted["0"] for r in results), results[0]
            if model._batch_size < 16:
                break
        print(model._batch_size, megabytes, results[0].notes)
        """
    )
    done = subprocess.run([sys.executable, "-c", code, str(tiny)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[0]) < 16
    assert "memory ran out with 16 requests together" in done.stdout


def test_an_engine_that_fails_on_one_row_costs_that_row(model, wanted):
    poison = model._builder.tokenizer("poison")["input_ids"][0]
    requests = [*REQUESTS[:7], ask("bad", "poison", picture(100, 90, 3)), *REQUESTS[7:]]

    def fails(ids):
        return IndexError("index 9 is out of bounds") if (ids == poison).any() else None

    with Spoiled(model._model, fails):
        results = answers(model, requests)
    bad = results.pop("bad")
    assert bad.failure.kind == "engine"
    assert "IndexError: index 9 is out of bounds" in bad.failure.message
    assert {id: result.token_ids for id, result in results.items()} == wanted
    assert any("answered one by one" in note for note in bad.notes)


def test_a_processor_that_fails_on_one_picture_costs_that_row(model, wanted, monkeypatch):
    real = model._builder.encode

    def encode(prompts):
        if any(prompt.request.id == "3" for prompt in prompts):
            raise ZeroDivisionError("division by zero")
        return real(prompts)

    monkeypatch.setattr(model._builder, "encode", encode)
    results = answers(model, REQUESTS)
    bad = results.pop("3")
    assert (bad.failure.kind, "ZeroDivisionError" in bad.failure.message) == ("engine", True)
    assert {id: r.token_ids for id, r in results.items()} == {id: t for id, t in wanted.items() if id != "3"}


def test_stop_finishes_what_was_started_and_starts_no_more(model):
    control = GenerationControl()
    asked = []

    def endless():
        for index in range(10**9):
            asked.append(index)
            yield ask(str(index), "What is it?", max_tokens=3)

    results = []
    for result in model.generate_requests(endless(), control):
        results.append(result)
        control.stop.set()
    assert 1 <= len(results) <= 32, "one batch"
    assert all(result.ok for result in results)
    assert len(asked) <= 3 * 64


@pytest.mark.slow
def test_a_source_that_waits_for_answers_is_not_waited_for_forever(model):
    """Requests that come slowly are answered before the window is full."""
    import time

    seen = []

    def slow():
        for index in range(4):
            yield ask(str(index), "What?", max_tokens=2)
            time.sleep(0.6)
            seen.append(len(results))

    results = []
    results.extend(model.generate_requests(slow()))  # fills it one by one
    assert len(results) == 4
    assert seen[-1] > 0


def test_a_caller_that_leaves_early_leaves_no_thread_behind(model):
    import threading

    stream = model.generate_requests(ask(str(index), "What?", max_tokens=2) for index in range(200))
    next(stream)
    stream.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("vlmhb-hf-prepare")]
    assert answers(model, [ask("0", "What?", max_tokens=2)])["0"].ok


def test_an_error_of_the_source_reaches_the_caller(model):
    def source():
        yield ask("0", "What?", max_tokens=2)
        raise KeyError("the source broke")

    with pytest.raises(KeyError, match="the source broke"):
        list(model.generate_requests(source()))


def test_every_token_is_a_sign_of_life(model):
    control = GenerationControl()
    result = answers(model, [ask("0", "What?", max_tokens=9)], control)["0"]
    assert control.steps == len(result.token_ids)
