"""The parts of the training: in each of them the learning rate falls to nothing once."""

from __future__ import annotations

import math
from dataclasses import dataclass

WARM_UP = 60
"""Steps from the very first one until the full rate."""


@dataclass(frozen=True)
class Stage:
    """One part of the training.

    Attributes:
        pages: shown in it.
        rate: the learning rate at first.
        constant: part of its pages at that rate; from there it falls along a cosine to nothing.
        often: how much more often than others those fields are asked that are slow to learn.
    """

    pages: int
    rate: float
    constant: float
    often: float

    def rate_at(self, step: int, done: float) -> float:
        """The learning rate of a step, counted from the beginning, when the part ``done`` of the stage is over."""
        warm = min(1.0, (step + 1) / WARM_UP)
        falling = max(0.0, min(1.0, (done - self.constant) / (1.0 - self.constant)))
        return self.rate * warm * 0.5 * (1.0 + math.cos(math.pi * falling))


def stages(pages: int, polish: int) -> tuple[Stage, ...]:
    """Everything is learnt on the first pages; on the last ones, above all what was hard."""
    return Stage(pages, rate=2e-3, constant=0.4, often=3.0), Stage(polish, rate=7e-4, constant=0.0, often=8.0)
