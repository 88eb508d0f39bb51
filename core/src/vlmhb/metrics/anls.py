"""Average normalised Levenshtein similarity, in the definition's reading and in the one met in scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs
from vlmhb.metrics.distances import distances

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from vlmhb.contract.metric import Column


class Anls(Metric):
    """1 - NL where NL < 0.5, else 0. NL is the edit distance over the length of the longer text.

    Both texts are lower-cased and their runs of whitespace made one space first, whatever the normalisers. At NL of
    exactly 0.5 the value is 0, as in the definition; ``anls_inclusive`` is the other reading. Two empty texts give 1,
    one empty text gives 0.
    """

    name = "anls"
    title = "ANLS"
    higher_is_better = True
    bounds = (0.0, 1.0)
    source = "Biten et al. (2019), arXiv:1905.13648, equation 1, with the threshold 0.5"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only: ANLS is by definition the mean over the rows."""
        import numpy as np

        left, right = ([_folded(text) for text in texts] for texts in pairs.different)
        edits = distances(left, right)
        longer = np.fromiter(map(max, map(len, left), map(len, right)), np.float64, len(left))
        similarity = 1.0 - edits / np.maximum(longer, 1.0)
        value = np.ones(len(pairs))
        value[pairs.differ] = np.where(self._counts(edits, longer), similarity, 0.0)
        return {"value": value}

    def _counts(self, edits: Column, longer: Column) -> npt.NDArray[np.bool_]:
        """Where the similarity counts. Whole numbers are compared, so that 0.5 is met exactly."""
        counts: npt.NDArray[np.bool_] = (2 * edits < longer) | (longer == 0)
        return counts


class AnlsInclusive(Anls):
    """ANLS as several scripts compute it: a distance of exactly 0.5 still counts, as 0.5."""

    name = "anls_inclusive"
    title = "ANLS (0.5 counts)"
    source = "Biten et al. (2019), arXiv:1905.13648, with NL <= 0.5 in place of NL < 0.5"

    def _counts(self, edits: Column, longer: Column) -> npt.NDArray[np.bool_]:
        counts: npt.NDArray[np.bool_] = 2 * edits <= longer
        return counts


def _folded(text: str) -> str:
    return " ".join(text.lower().split())
