"""A tiny random model of an architecture, for trying engines without weights."""

from __future__ import annotations

import msgspec


class Twin(msgspec.Struct, frozen=True, kw_only=True):
    """What ``vlmhb_make_twin`` wrote.

    Attributes:
        path: its folder, whole: config, weights, tokenizer, processor.
        image_counts: how many images a prompt may have, of 0, 1 and 2.
        parameters: numbers in its weights.
        notes: what is not the original folder's, one sentence each.
    """

    path: str
    image_counts: tuple[int, ...]
    parameters: int
    notes: tuple[str, ...] = ()
