"""The same prompt ids, tokens, texts and ends as transformers."""

from __future__ import annotations

import pytest
from parity_requests import parity_requests

REQUESTS = parity_requests()


@pytest.fixture(scope="module")
def reference(tiny, hf_answers):
    return hf_answers(tiny, REQUESTS)


@pytest.fixture(scope="module")
def answers(reference, answers_of):
    return answers_of(*REQUESTS)


@pytest.mark.parametrize("name", [request.id for request in REQUESTS])
def test_same_as_transformers(name, answers, reference):
    got, want = answers[name], reference[name]
    assert got.failure is None
    assert want.failure is None
    assert got.prompt_token_ids == want.prompt_token_ids
    assert got.token_ids == want.token_ids
    assert (got.text, got.finish_reason, got.prompt_tokens) == (want.text, want.finish_reason, want.prompt_tokens)


def test_one_by_one_as_together(answers, answers_of):
    for request in REQUESTS[::6]:
        assert answers_of(request)[request.id].token_ids == answers[request.id].token_ids


def test_the_requests_tell_prompts_and_pictures_apart(reference):
    full = [request for request in REQUESTS if not request.sampling.stop and request.sampling.max_tokens > 20]
    assert len({reference[request.id].token_ids[:16] for request in full}) == len(full)
    assert len(REQUESTS) >= 24
    ends = {(reference[r.id].finish_reason, bool(r.sampling.stop)) for r in REQUESTS}
    assert ends >= {("stop", False), ("length", False), ("stop", True)}
