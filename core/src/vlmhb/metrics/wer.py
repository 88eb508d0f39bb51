"""Word error rate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs
from vlmhb.metrics.distances import corpus_error_rate, distances, error_rates

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column


_RUN = re.compile(r"\s\s+")
# Where words end in a stripped text. polars' \s lacks the four separators U+001C to U+001F, which re's has.
_GAP = r"[\s\x1c-\x1f]{2,}| "


def words(text: str) -> list[str]:
    """The words of a text as jiwer's default transform finds them.

    A run of two or more whitespace characters counts as a space, and spaces part words. A single tab, line break or
    no-break space does not: make it a space with the normaliser ``whitespace``.
    """
    if text.isprintable():  # then spaces are all the whitespace it has
        return text.split()
    return [word for word in _RUN.sub(" ", text).strip().split(" ") if word]


class Wer(Metric):
    """Edit distance over words divided by the number of words of the reference.

    The definition and the values of jiwer for a reference that is not empty; :func:`words` says what a word is. The
    rate may exceed 1. An empty reference gives the number of words of the answer: 0 if that is empty too.
    ``wer_corpus`` is all edits over the total number of words of the references.
    """

    name = "wer"
    title = "WER"
    aliases = ("word_error_rate",)
    failed_value = 1.0
    source = "Morris, Maier, Green (2004), Interspeech, as in jiwer"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value``, and for the corpus reading ``edits`` and ``length``."""
        import numpy as np

        references, answers = pairs.different
        edits = np.zeros(len(pairs))
        edits[pairs.differ] = distances([words(text) for text in references], [words(text) for text in answers])
        column = pairs.reference_column.str
        length = column.count_matches(_GAP) + (column.len_bytes() > 0)
        return error_rates(edits, length.to_numpy().astype(np.float64))

    def corpus(self, sums: Mapping[str, Column]) -> Column:
        """All edits over the total number of words of the references."""
        return corpus_error_rate(sums)
