"""Repetition-loop rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column

LEAST_TIMES = 4
LEAST_LENGTH = 32
_LOOKED_AT = 2_000


class RepetitionLoop(Metric):
    """1 if the answer ran into its length limit while it repeated itself, else 0; the mean is the loop rate.

    A loop is a piece of text of any length that stands at the end at least four times in a row, the last time perhaps
    cut off, over at least 32 characters; the last 2000 characters are looked at, of the answer as the model wrote it,
    thinking included. An answer that the model ended by itself is none. Where nobody knows why the answer ended, the
    text alone decides. The reference does not count.
    """

    name = "repetition_loop"
    title = "Repetition loop"
    aliases = ("repetition", "loop_rate")
    failed_value = 1.0
    bounds = (0.0, 1.0)
    source = "vlmhb; the failure is that of Holtzman et al. (2020), arXiv:1904.09751"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only."""
        import numpy as np

        rows = zip(pairs.generated, pairs.finish_reasons, strict=True)
        return {"value": np.array([end != "stop" and ends_in_loop(text) for text, end in rows], dtype=np.float64)}


def ends_in_loop(text: str) -> bool:
    """Whether the end of a text is one piece over and over."""
    tail = text[: -_LOOKED_AT - 1 : -1]  # reversed: a period of the end is one of the start then
    shared = [0] * len(tail)  # for each start of the tail: how much of it is both its start and its end
    for at in range(1, len(tail)):
        known = shared[at - 1]
        while known and tail[at] != tail[known]:
            known = shared[known - 1]
        shared[at] = known + (tail[at] == tail[known])
        length = at + 1
        if length >= LEAST_LENGTH and length >= LEAST_TIMES * (length - shared[at]):
            return True
    return False
