"""What a request may ask for, and what is said when it cannot be had."""

from __future__ import annotations

import itertools
import json
import threading

import msgspec
import pytest
from parity_requests import picture
from vlmhb import GenerationControl, GenerationRequest, ImageInput, SamplingParams

CONTEXT = 2048
QUESTION = "What is the weather like in the city?"
SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["passport", "invoice"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
        "signed": {"type": "boolean"},
        "pages": {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 2, "maxItems": 2},
    },
    "required": ["kind", "count", "signed", "pages"],
    "additionalProperties": False,
}


def ask(id="a", question=QUESTION, *images, sampling=None, **fields):
    params = SamplingParams(**{"max_tokens": 16, **(sampling or {})})
    return GenerationRequest.ask(id, question, images, sampling=params, **fields)


def drawn(id, seed):
    return ask(id, sampling={"temperature": 1.0, "seed": seed})


# ---------------------------------------------------------------------------------------------------------------
# Drawing tokens
# ---------------------------------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_draws_alone_and_in_company(answers_of):
    alone = answers_of(drawn("a", 5))["a"]
    company = answers_of(*(ask(f"greedy{i}") for i in range(3)), drawn("a", 5), drawn("b", 6), drawn("c", 5))
    assert company["a"].token_ids == alone.token_ids
    assert company["c"].token_ids == alone.token_ids
    assert company["b"].token_ids != alone.token_ids
    assert alone.notes == ()


def test_top_k_1_and_a_tiny_top_p_are_greedy(answers_of):
    greedy = answers_of(ask())["a"].token_ids
    assert answers_of(ask(sampling={"temperature": 1.0, "top_k": 1}))["a"].token_ids == greedy
    assert answers_of(ask(sampling={"temperature": 1.0, "top_p": 1e-6}))["a"].token_ids == greedy


def test_an_ignored_seed_is_said(model):
    from vlmhb_sglang.asking import UNSEEDED, Asking

    asking = Asking(model._asking._builder, context=CONTEXT, seeded=False)
    assert UNSEEDED in asking.question(drawn("a", 5), "n", streaming=False).notes
    assert UNSEEDED not in asking.question(ask(), "n", streaming=False).notes


# ---------------------------------------------------------------------------------------------------------------
# Structure
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("images", [(), (picture(120, 90, 1),)], ids=["text", "image"])
def test_an_answer_follows_its_schema(answers_of, images):
    result = answers_of(ask("a", QUESTION, *images, json_schema=SCHEMA, sampling={"max_tokens": 64}))["a"]
    value = json.loads(result.text)
    assert result.finish_reason == "stop"
    assert result.text == json.dumps(value, separators=(",", ":"))
    assert set(value) == {"kind", "count", "signed", "pages"}
    assert value["kind"] in ("passport", "invoice")
    assert isinstance(value["count"], int)
    assert 0 <= value["count"] <= 99
    assert isinstance(value["signed"], bool)


def test_a_schema_that_the_engine_cannot_enforce_is_refused(answers_of):
    schema = {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 7}}, "required": ["a"]}
    results = answers_of(ask("bad", json_schema=schema), ask("good"))
    assert results["bad"].failure.kind == "unsupported"
    assert "multipleOf" in results["bad"].failure.message
    assert results["good"].ok


# ---------------------------------------------------------------------------------------------------------------
# Requests that cannot be served
# ---------------------------------------------------------------------------------------------------------------


def test_bad_requests_among_good_ones(answers_of):
    page = picture(64, 64, 3)
    good = [ask("good-text"), ask("good-image", "Describe this image.", page)]
    bad = {
        "cut-image": (ask("cut-image", QUESTION, ImageInput(data=page.data[:200], name="cut.png")), "image"),
        "missing-image": (ask("missing-image", QUESTION, ImageInput(path="/nowhere/page.png")), "image"),
        "ratio": (ask("ratio", QUESTION, picture(300, 1, 4)), "image"),
        "many-images": (ask("many-images", QUESTION, page, page, page), "invalid_request"),
        "empty": (ask("empty", ""), "invalid_request"),
        "nothing-to-say": (ask("nothing-to-say", sampling={"max_tokens": 0}), "invalid_request"),
        "temperature": (ask("temperature", sampling={"temperature": -1.0}), "invalid_request"),
        "long": (ask("long", "word " * 3000), "too_long"),
        "penalty": (ask("penalty", sampling={"repetition_penalty": 1.2}), "unsupported"),
    }
    alone = {request.id: answers_of(request)[request.id].token_ids for request in good}
    results = answers_of(*(request for request, _ in bad.values()), *good)
    assert {id: results[id].failure.kind for id in bad} == {id: kind for id, (_, kind) in bad.items()}
    assert {request.id: results[request.id].token_ids for request in good} == alone
    assert "cut.png" in results["cut-image"].failure.message
    assert str(CONTEXT) in results["long"].failure.message


def test_the_context_is_used_to_its_last_token(answers_of):
    base = answers_of(ask(question="?"))["a"].prompt_tokens
    question = "?" * (CONTEXT - 3 - base + 1)
    clipped = answers_of(ask(question=question))["a"]
    assert clipped.prompt_tokens == CONTEXT - 3
    assert len(clipped.token_ids) == 3
    assert clipped.finish_reason == "length"
    assert "lowered from 16 to 3" in clipped.notes[0]
    last = answers_of(ask(question=question + "?" * 2))["a"]
    assert len(last.token_ids) == 1
    over = answers_of(ask(question=question + "?" * 3))["a"]
    assert over.failure.kind == "too_long"
    assert str(CONTEXT) in over.failure.message


# ---------------------------------------------------------------------------------------------------------------
# What comes with an answer
# ---------------------------------------------------------------------------------------------------------------


def test_logprobs_are_the_models_own(answers_of, hf_answers, tiny):
    request = ask("a", "Describe this image.", picture(90, 90, 5), logprobs=3)
    hot = msgspec.structs.replace(request, id="hot", sampling=SamplingParams(max_tokens=16, temperature=0.5, seed=1))
    want = hf_answers(tiny, [request])["a"]
    got = answers_of(request, hot, ask("other", sampling={"temperature": 0.9}))
    assert len(got["a"].logprobs) == len(got["a"].token_ids) == len(want.logprobs)
    for ours, theirs in zip(got["a"].logprobs, want.logprobs, strict=True):
        assert [c.token_id for c in ours] == [c.token_id for c in theirs]
        assert [c.logprob for c in ours] == pytest.approx([c.logprob for c in theirs], abs=1e-3)
    assert [c.logprob for c in got["hot"].logprobs[0]] == pytest.approx([c.logprob for c in want.logprobs[0]], abs=1e-3)


def test_no_logprobs_rather_than_masked_ones(answers_of):
    result = answers_of(ask(json_schema=SCHEMA, logprobs=2, sampling={"max_tokens": 64}))["a"]
    assert result.ok
    assert result.logprobs is None
    assert any("log-probabilities" in note for note in result.notes)


def test_counts_and_times(answers_of):
    request = ask("a", "Count these tokens, please.", picture(100, 100, 77), return_prompt_ids=True)
    first, again = answers_of(request)["a"], answers_of(request)["a"]
    assert first.prompt_tokens == len(first.prompt_token_ids)
    assert first.cached_tokens < again.cached_tokens == first.prompt_tokens - 1
    for result in (first, again):
        assert 0 <= result.queue_time < result.time_to_first_token < result.total_time
        decoding = result.time_per_output_token * (len(result.token_ids) - 1)
        assert result.time_to_first_token + decoding == pytest.approx(result.total_time)


def test_text_as_it_is_made(model):
    pieces, threads = {}, set()

    def hear(id, text):
        pieces.setdefault(id, []).append(text)
        threads.add(threading.current_thread())

    control = GenerationControl(on_text=hear)
    requests = [ask("a"), ask("b", "Tell me more.", sampling={"stop": ("e", "а"), "max_tokens": 40})]
    results = {result.id: result for result in model.generate_requests(requests, control)}
    assert {id: "".join(parts) for id, parts in pieces.items()} == {
        id: result.text for id, result in results.items() if result.text
    }
    assert len(pieces["a"]) > 3
    assert threads == {threading.current_thread()}
    assert control.steps >= 16


# ---------------------------------------------------------------------------------------------------------------
# The pass over requests
# ---------------------------------------------------------------------------------------------------------------


def test_an_endless_iterable_is_read_as_far_as_needed_and_stops_when_told(model):
    read = []

    def endless():
        for number in itertools.count():
            read.append(str(number))
            yield ask(str(number), f"{QUESTION} {number}", sampling={"max_tokens": 8})

    control = GenerationControl()
    results = []
    for result in model.generate_requests(endless(), control):
        results.append(result)
        if len(results) == 20:
            assert len(read) <= 20 + model._limit
            control.stop.set()
    assert [result.finish_reason for result in results[:20]].count("skipped") == 0
    assert sorted(result.id for result in results) == sorted(read)
    assert {result.finish_reason for result in results} <= {"stop", "length", "skipped"}


def test_an_abandoned_pass_leaves_the_engine_usable(model, answers_of):
    answers = model.generate_requests([ask(str(i), sampling={"max_tokens": 200}) for i in range(30)])
    next(answers)
    answers.close()
    assert answers_of(ask())["a"].ok


def test_nothing_asked_nothing_answered(answers_of):
    assert answers_of() == {}


def test_facts_and_info(model):
    facts = model.facts()
    assert facts["architecture"] == "Qwen2VLForConditionalGeneration"
    assert (facts["dtype"], facts["device"], facts["context_length"]) == ("float32", "cpu", CONTEXT)
    assert facts["max_running_requests"] == 16
    info = model.backend_info()
    assert (info.name, info.problem) == ("sglang", None)
    assert "cpu" in info.devices
