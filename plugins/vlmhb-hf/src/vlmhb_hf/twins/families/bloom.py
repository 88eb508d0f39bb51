"""BLOOM: positions are a slope on the distance."""

from __future__ import annotations

from vlmhb_hf.twins.family import Family


class Bloom(Family):
    """A stronger pull away from the word just read, which it would say again and again."""

    embedding = 0.354
    gain = 4.0
    seed = 1


FAMILY = Bloom()
