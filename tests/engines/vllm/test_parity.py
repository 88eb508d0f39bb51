"""The same prompt ids, tokens, texts and ends as the hf plugin, by the code of vLLM and by that of transformers."""

from __future__ import annotations

import msgspec
import pytest
from parity_requests import parity_requests

REQUESTS = [msgspec.structs.replace(request, logprobs=3) for request in parity_requests()]


@pytest.fixture(scope="module")
def reference(tiny, hf_answers):
    return hf_answers(tiny, REQUESTS)


@pytest.fixture(scope="module", params=["native", "transformers"])
def implementation(request, load, tiny):
    with load(tiny, model_impl=request.param) as model:
        yield model


@pytest.fixture(scope="module")
def answers(implementation, answers_of):
    return answers_of(implementation, REQUESTS)


def test_the_implementation_is_the_one_asked_for(implementation):
    facts = implementation.facts()
    expected = {"vllm": "Qwen2VLForConditionalGeneration", "transformers": "TransformersMultiModalForCausalLM"}
    assert facts["architecture"] == expected[facts["model_impl"]]
    assert facts["dtype"] == "float32"


@pytest.mark.parametrize("name", [request.id for request in REQUESTS])
def test_same_as_transformers(name, answers, reference):
    got, want = answers[name], reference[name]
    assert got.failure is None
    assert want.failure is None
    assert got.prompt_token_ids == want.prompt_token_ids
    assert got.token_ids == want.token_ids
    assert (got.text, got.finish_reason, got.prompt_tokens) == (want.text, want.finish_reason, want.prompt_tokens)


@pytest.mark.parametrize("name", [request.id for request in REQUESTS])
def test_log_probabilities_of_transformers(name, answers, reference):
    for mine, theirs in zip(answers[name].logprobs, reference[name].logprobs, strict=True):
        assert mine[0].token_id == theirs[0].token_id
        assert [c.logprob for c in mine] == pytest.approx([c.logprob for c in theirs], abs=1e-3)


def test_one_by_one_as_together(implementation, answers, answers_of):
    for request in REQUESTS[::5]:
        assert answers_of(implementation, [request])[request.id].token_ids == answers[request.id].token_ids


def test_the_requests_tell_prompts_and_pictures_apart(reference):
    full = [request for request in REQUESTS if not request.sampling.stop and request.sampling.max_tokens > 20]
    assert len({reference[request.id].token_ids[:16] for request in full}) == len(full)
    assert len(REQUESTS) >= 24
    ends = {(reference[r.id].finish_reason, bool(r.sampling.stop)) for r in REQUESTS}
    assert ends >= {("stop", False), ("length", False), ("stop", True)}
