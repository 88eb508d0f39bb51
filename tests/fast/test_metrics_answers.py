"""Thinking aloud is left out of the score."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vlmhb.metrics.answers import split_answer, split_answers


@pytest.mark.parametrize(
    ("text", "answer", "flags"),
    [
        ("42", "42", ""),
        ("", "", ""),
        ("<think>41? нет</think>\n42", "\n42", "thinking_removed"),
        ("<think></think>42", "42", "thinking_removed"),
        ("сначала так</think>42", "42", "thinking_removed"),
        ("<think>a</think>b<think>c</think>42", "42", "thinking_removed"),
        ("<think>сумма 4", "", "thinking_unclosed"),
        ("42 <think>или", "", "thinking_unclosed"),
        ("<think>a</think>42<think>b", "", "thinking_removed,thinking_unclosed"),
        ("<think>a</think>", "", "thinking_removed"),
        ("I think> so", "I think> so", ""),
        ("<thinking>a</thinking>", "<thinking>a</thinking>", ""),
    ],
)
def test_what_is_scored(text: str, answer: str, flags: str) -> None:
    assert split_answer(text) == (answer, flags)
    answers, found = split_answers(pl.Series([text]))
    assert (answers.to_list(), found.to_list()) == ([answer], [flags])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["<think>", "</think>", "42", " ", "\n", "think>", "<"])).map("".join)))
def test_a_column_is_treated_as_its_texts(column: list[str]) -> None:
    answers, flags = split_answers(pl.Series(column, dtype=pl.String))
    assert list(zip(answers, flags, strict=True)) == [split_answer(text) for text in column]
