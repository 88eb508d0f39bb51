"""Exact match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column


class ExactMatch(Metric):
    """1 if the two texts are equal under the chosen normalisers, else 0; two empty texts are equal."""

    name = "exact_match"
    title = "Exact match"
    aliases = ("em",)
    higher_is_better = True
    bounds = (0.0, 1.0)
    source = "Rajpurkar et al. (2016), arXiv:1606.05250, with the text normalisers of the run in place of SQuAD's"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only: the mean is the share of right answers."""
        import numpy as np

        return {"value": (~pairs.differ).astype(np.float64)}
