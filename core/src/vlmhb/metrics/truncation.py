"""Truncation rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column


class Truncation(Metric):
    """1 if the answer was cut off by ``max_tokens`` or the context's length, else 0; the mean is the truncation rate.

    Neither reference nor answer counts, only ``finish_reason``: ``length`` is 1.
    """

    name = "truncation"
    title = "Truncation"
    aliases = ("truncation_rate",)
    failed_value = 1.0
    bounds = (0.0, 1.0)
    source = "the engine's finish reason"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only."""
        import numpy as np

        return {"value": np.array([reason == "length" for reason in pairs.finish_reasons], dtype=np.float64)}
