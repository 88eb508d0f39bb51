"""Amount equality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs
from vlmhb.metrics.numerals import read_amount

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column


class AmountMatch(Metric):
    """1 if both texts are the same amount, however it is written, else 0: ``1 234,50`` is ``1234.50 руб.``.

    :func:`vlmhb.metrics.numerals.read_amount` says what an amount is. Where both name a currency, it must be the same.
    A reference that is no amount is compared as text.
    """

    name = "amount_match"
    title = "Amount match"
    aliases = ("amount",)
    higher_is_better = True
    bounds = (0.0, 1.0)
    source = "vlmhb: equality of the decimal numbers"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only: the mean is the share of right amounts."""
        import numpy as np

        value = np.ones(len(pairs))
        value[pairs.differ] = [_same(*pair) for pair in zip(*pairs.different, strict=True)]
        return {"value": value}


def _same(reference: str, answer: str) -> bool:
    right = read_amount(reference)
    given = read_amount(answer) if right else None
    if right is None or given is None or right.value != given.value:
        return False
    return not (right.currency and given.currency) or right.currency == given.currency
