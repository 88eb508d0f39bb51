"""The sizes of the model, in one place for its config and its weights."""

from __future__ import annotations

HIDDEN = 128
LAYERS = 4
HEADS = 4
KV_HEADS = 2
HEAD_DIM = HIDDEN // HEADS
INTERMEDIATE = 256
ROPE_SECTIONS = (4, 6, 6)
"""Halved head dimensions that turn with time, height and width; their sum is ``HEAD_DIM // 2``."""

VISION_WIDTH = 64
VISION_DEPTH = 4
VISION_HEADS = 2
VISION_MLP_RATIO = 4
PATCH = 14
TEMPORAL_PATCH = 2
MERGE = 2
CHANNELS = 3

TOKEN_SIDE = PATCH * MERGE
"""Pixels along each side of the square that one image token stands for."""
MIN_PIXELS = 4 * TOKEN_SIDE**2
MAX_PIXELS = 64 * TOKEN_SIDE**2
