"""What of a generated text is the answer: thinking aloud is kept in the results and left out of the score."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars

OPEN, CLOSE = "<think>", "</think>"
THINKING_REMOVED = "thinking_removed"
THINKING_UNCLOSED = "thinking_unclosed"


def split_answer(text: str) -> tuple[str, str]:
    """The text to score, and flags that say what was left out, joined by commas.

    Scored is what follows the last ``</think>``, with or without an opening mark before it (some chat templates write
    that one themselves). A ``<think>`` that no ``</think>`` follows means that the model never came to an answer: the
    text to score is empty and the flag ``thinking_unclosed``.
    """
    _, mark, answer = text.rpartition(CLOSE)
    flags = [THINKING_REMOVED] if mark else []
    if OPEN in answer:
        return "", ",".join([*flags, THINKING_UNCLOSED])
    return answer, ",".join(flags)


def split_answers(texts: polars.Series) -> tuple[polars.Series, polars.Series]:
    """:func:`split_answer` for a column of texts without nulls: the texts to score, and their flags."""
    import polars as pl

    flags = pl.repeat("", len(texts), dtype=pl.String, eager=True)
    places = texts.str.contains("think>", literal=True).arg_true()
    if places.is_empty():
        return texts, flags
    parts = [split_answer(text) for text in texts.gather(places).to_list()]
    answers, found = (pl.Series(column, dtype=pl.String) for column in zip(*parts, strict=True))
    return texts.clone().scatter(places, answers), flags.scatter(places, found)
