"""How answers go wrong: refusals, loops, answers cut off."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from vlmhb.contract.metric import Pairs
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.metrics.refusal import is_refusal
from vlmhb.metrics.repetition import LEAST_LENGTH, LEAST_TIMES, ends_in_loop

METRICS = {metric.name: metric for metric in vlmhb_metrics()}
texts = st.text("абвгё abc 012.,\n", max_size=60)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't read this image.",
        "I’m sorry, I cannot help with that",
        "Sorry, the page is blurred.",
        "I cannot see any total on this page.",
        "As an AI language model, I have no eyes.",
        "Unfortunately, I do not know.",
        "The page is dark. I am unable to read it.",
        "К сожалению, на изображении нет суммы.",
        "Извините, я не могу прочитать документ.",
        "Не удалось распознать текст.",
        "Невозможно определить номер",
    ],
)
def test_refusals(text: str) -> None:
    assert is_refusal(text)
    assert METRICS["refusal"].score(Pairs(["12"], [text]))["value"].tolist() == [1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12",
        "Sorrento",
        "Иванов Иван",
        "Can I help you?",
        "Cannot be returned",
        "The canister",
        "12. Итого: 5",
        "сожаление",
    ],
)
def test_no_refusals(text: str) -> None:
    assert not is_refusal(text)


def test_a_page_that_refuses_is_read_out() -> None:
    letter = "Unfortunately, I cannot come. Yours, Ann"
    pairs = Pairs([letter, "Yes"], [letter + ".", letter])
    assert METRICS["refusal"].score(pairs)["value"].tolist() == [0, 1]


@settings(max_examples=300, deadline=None)
@given(texts, st.text("абв 01", min_size=1, max_size=40), st.integers(LEAST_TIMES, 50), st.integers(0, 39))
def test_a_piece_that_is_repeated_to_the_end_is_a_loop(before: str, piece: str, times: int, cut: int) -> None:
    times = max(times, -(-LEAST_LENGTH // len(piece)))
    assert ends_in_loop(before + piece * times + piece[: cut % len(piece)])


def slowly(text: str) -> bool:
    """The definition as it stands: some piece stands at the end at least four times, over 32 characters."""
    for length in range(LEAST_LENGTH, len(text) + 1):
        end = text[-length:]
        for period in range(1, length // LEAST_TIMES + 1):
            if all(end[at] == end[at - period] for at in range(period, length)):
                return True
    return False


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text("аб", max_size=70), st.text("а", max_size=40), texts))
@example("аб" * 16)
@example("аб" * 15 + "а")
@example("12345678" * 4)
@example("123456789" * 3)
def test_loops_are_those_of_the_definition(text: str) -> None:
    assert ends_in_loop(text) == slowly(text)


def test_a_loop_counts_only_where_the_limit_ended_it() -> None:
    loop = "да " * 100
    pairs = Pairs(
        [""] * 4, [""] * 4, generated=[loop, loop, loop, "нет"], finish_reasons=["length", "stop", "", "length"]
    )
    assert METRICS["repetition_loop"].score(pairs)["value"].tolist() == [1, 0, 1, 0]
    assert METRICS["repetition_loop"].score(Pairs(["x"], [loop]))["value"].tolist() == [1]


def test_a_very_long_answer_is_looked_at_from_its_end() -> None:
    assert ends_in_loop("x" * 1_000_000)
    assert not ends_in_loop("x" * 1_000_000 + " и это всё, что написано на странице.")


def test_truncation_is_what_the_engine_says() -> None:
    pairs = Pairs(["a"] * 3, ["b"] * 3, finish_reasons=["length", "stop", ""])
    assert METRICS["truncation"].score(pairs)["value"].tolist() == [1, 0, 0]
    assert METRICS["truncation"].score(Pairs(["a"], ["b"]))["value"].tolist() == [0]
