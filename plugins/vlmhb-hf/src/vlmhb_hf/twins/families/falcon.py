"""Falcon: attention and MLP side by side."""

from __future__ import annotations

from vlmhb_hf.twins.family import Family


class Falcon(Family):
    """A stronger pull away from the word just read."""

    embedding = 0.354
    gain = 4.0
    seed = 1


FAMILY = Falcon()
