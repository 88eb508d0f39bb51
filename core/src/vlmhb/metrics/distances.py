"""Edit distances in bulk, by rapidfuzz's C++ code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column

_PARALLEL_FROM = 2_000
"""Pairs from which several threads are worth their start."""


def distances(left: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> Column:
    """Levenshtein distance (insertions, deletions and substitutions cost 1) of each pair.

    Args:
        left, right: texts, compared by code point, or lists of words, compared by word.
    """
    import numpy as np
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    if not left:
        return np.zeros(0)
    workers = -1 if len(left) >= _PARALLEL_FROM else 1
    found: Column = cpdist(left, right, scorer=Levenshtein.distance, workers=workers).astype(np.float64)
    return found


def error_rates(edits: Column, length: Column) -> dict[str, Column]:
    """Edits over the reference's length; for an empty reference the number of edits itself."""
    import numpy as np

    return {"value": edits / np.maximum(length, 1.0), "edits": edits, "length": length}


def corpus_error_rate(sums: Mapping[str, Column]) -> Column:
    """All edits over the total length of the references; NaN where that length is 0."""
    import numpy as np

    length = sums["length"]
    rates: Column = np.divide(sums["edits"], length, out=np.full(len(length), np.nan), where=length > 0)
    return rates
