"""Comparing token ids: where two outputs part, and whether rounding can be the reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vlmhb import GenerationResult, TokenLogprob
from vlmhb.compare.engines import EngineAnswers, compare_engines
from vlmhb.compare.tokens import compare_results, first_difference
from vlmhb.errors import RequestError

TOKENS = st.lists(st.integers(0, 3), max_size=6)


def result(tokens: list[int], prompt: list[int] | None = None, **fields: Any) -> GenerationResult:
    prompt_ids = None if prompt is None else tuple(prompt)
    return GenerationResult(
        id="7", token_ids=tuple(tokens), finish_reason="stop", prompt_token_ids=prompt_ids, **fields
    )


def candidates(*steps: dict[int, float]) -> tuple[tuple[TokenLogprob, ...], ...]:
    return tuple(tuple(TokenLogprob(token, value) for token, value in step.items()) for step in steps)


@given(TOKENS, TOKENS)
def test_first_difference_is_where_the_outputs_part(left: list[int], right: list[int]) -> None:
    place = first_difference(left, right)
    if place is None:
        assert left == right
    else:
        assert left[:place] == right[:place]
        assert left[place : place + 1] != right[place : place + 1]


def test_equal_ids_are_the_same_whatever_the_texts() -> None:
    found = compare_results(result([1, 2], [5]), result([1, 2], [5], text="other"))
    assert (found.verdict, found.prompt_equal, found.first_difference) == ("same", True, None)


def test_different_prompts_come_first() -> None:
    found = compare_results(result([1], [5]), result([1], [6]))
    assert (found.verdict, found.prompt_equal) == ("different prompt", False)


@pytest.mark.parametrize(
    ("second", "near_tie", "verdict", "gap"),
    [
        (-1.004, 0.01, "near tie", 0.004),
        (-1.004, 0.001, "different", 0.004),
        (-3.0, 0.01, "different", 2.0),
    ],
)
def test_a_near_tie_is_told_from_a_fault(second: float, near_tie: float, verdict: str, gap: float) -> None:
    reference = result([1, 2], logprobs=candidates({1: -0.1, 9: -2.0}, {2: -1.0, 3: second}))
    found = compare_results(reference, result([1, 3]), near_tie)
    assert (found.verdict, found.first_difference) == (verdict, 1)
    assert found.gap == pytest.approx(gap)


def test_without_candidates_nobody_can_say_that_it_was_close() -> None:
    found = compare_results(result([1, 2]), result([1, 3]))
    assert (found.verdict, found.gap) == ("different", None)
    longer = compare_results(result([1], logprobs=candidates({1: -0.1})), result([1, 3]))
    assert (longer.verdict, longer.first_difference, longer.gap) == ("different", 1, None)


def test_failures_are_told_apart() -> None:
    failed = GenerationResult.failed("7", RequestError("the prompt has 9 tokens, the context 4", kind="too_long"))
    assert compare_results(result([1]), failed).verdict == "failed"
    both = compare_results(failed, failed)
    assert (both.verdict, both.detail) == ("both failed", "the prompt has 9 tokens, the context 4")


def test_an_engine_that_could_not_be_asked_does_not_agree() -> None:
    good = EngineAnswers("hf", {"7": result([1])})
    same, broken = compare_engines(
        [good, EngineAnswers("b", {"7": result([1])}), EngineAnswers("c", {}, "no such model")]
    )
    assert same.agrees
    assert not broken.agrees
    assert broken.problem == "no such model"
    missing = compare_engines([EngineAnswers("hf", {"7": result([1])}), EngineAnswers("b", {})])
    assert not missing[0].agrees
