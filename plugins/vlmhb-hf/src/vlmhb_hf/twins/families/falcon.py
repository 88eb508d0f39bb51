"""Falcon: attention and MLP side by side."""

from __future__ import annotations

from typing import Any

from vlmhb_hf.twins.family import Family
from vlmhb_hf.twins.shrink import HIDDEN


class Falcon(Family):
    """A stronger pull away from the word just read."""

    embedding = 0.354
    gain = 4.0
    seed = 1

    def shrink(self, config: dict[str, Any]) -> None:
        """The MLP is four times as wide as the model; engines take that for given."""
        config["ffn_hidden_size"] = 4 * HIDDEN


FAMILY = Falcon()
