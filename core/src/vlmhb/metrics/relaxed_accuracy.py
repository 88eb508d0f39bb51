"""Relaxed accuracy of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs
from vlmhb.metrics.numerals import read_amount

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column

TOLERANCE = 0.05


class RelaxedAccuracy(Metric):
    """1 if the answer's number is within 5 % of the reference's, else 0; other texts must be equal but for case.

    A number is what Python's ``float`` reads, or else an amount as :mod:`vlmhb.metrics.numerals` reads it; behind it
    ``%`` divides it by 100. The published script reads ``float`` only. A reference of 0 must be met as text or by 0.
    """

    name = "relaxed_accuracy"
    title = "Relaxed accuracy"
    aliases = ("relaxed", "relaxed_acc")
    higher_is_better = True
    bounds = (0.0, 1.0)
    source = "Methani et al. (2020), arXiv:1909.00997; Masry et al. (2022), arXiv:2203.10244 (ChartQA)"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only: the mean is the share of answers close enough."""
        import numpy as np

        value = np.ones(len(pairs))
        value[pairs.differ] = [_close(*pair) for pair in zip(*pairs.different, strict=True)]
        return {"value": value}


def _close(reference: str, answer: str) -> bool:
    target = _number(reference)
    if target is None:
        return reference.lower() == answer.lower()
    given = _number(answer)
    return given is not None and abs(given - target) <= TOLERANCE * abs(target)


def _number(text: str) -> float | None:
    percent = text.endswith("%")
    text = text.rstrip("%").strip() if percent else text
    try:
        number = float(text)
    except ValueError:
        amount = read_amount(text)
        if amount is None:
            return None
        number = float(amount.value)
    return (number / 100 if percent else number) if math.isfinite(number) else None
