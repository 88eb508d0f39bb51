"""The metric ``contains``: whether the right answer stands somewhere in what the model wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb import Metric, hookimpl

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column, Pairs
vlmhb_contract = 1


class Contains(Metric):
    """1 if the reference is a part of the answer, else 0. An empty reference is a part of an empty answer only."""

    name = "contains"
    title = "Contains"
    higher_is_better = True
    source = "Liu et al. (2023), arXiv:2305.07895 (OCRBench)"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only: the mean is the share of answers that hold the reference."""
        import numpy as np

        rows = zip(pairs.references, pairs.answers, strict=True)
        found = [right in answer if right else not answer for right, answer in rows]
        return {"value": np.array(found, dtype=np.float64)}


@hookimpl
def vlmhb_metrics() -> list[Metric]:
    """Offer the metric."""
    return [Contains()]
