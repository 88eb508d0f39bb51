"""Character error rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs
from vlmhb.metrics.distances import corpus_error_rate, distances, error_rates

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column


class Cer(Metric):
    """Edit distance over code points divided by the number of code points of the reference.

    The definition and the values of jiwer for a reference that is not empty. The rate may exceed 1. An empty
    reference gives the number of characters of the answer: 0 if that is empty too. ``cer_corpus`` is all edits over
    the total length of the references, edits of rows with an empty reference included.
    """

    name = "cer"
    title = "CER"
    aliases = ("character_error_rate",)
    failed_value = 1.0
    source = "Morris, Maier, Green (2004), Interspeech, at the level of characters, as in jiwer"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value``, and for the corpus reading ``edits`` and ``length``."""
        import numpy as np

        edits = np.zeros(len(pairs))
        edits[pairs.differ] = distances(*pairs.different)
        return error_rates(edits, pairs.reference_column.str.len_chars().to_numpy().astype(np.float64))

    def corpus(self, sums: Mapping[str, Column]) -> Column:
        """All edits over the total length of the references."""
        return corpus_error_rate(sums)
