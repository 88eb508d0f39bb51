"""The sizes of the reader, in one place for training and for the exported config."""

from __future__ import annotations

from dataclasses import dataclass

PATCH = 14
MERGE = 2
CELL = PATCH * MERGE
"""Pixels along each side of the square that one image token stands for."""
VISION_THETA = 10000.0
"""Base of the tower's rotary angles; fixed in every implementation of Qwen2-VL."""


@dataclass(frozen=True)
class Sizes:
    """Widths and depths of a Qwen2-VL; the defaults are those of the shipped reader.

    Attributes:
        rope_theta: base of the language model's rotary angles. It is low because Qwen2-VL gives the columns of an
            image the slowest of the angles: with the usual million, neighbouring columns would look the same.
        rope_sections: halved head dimensions that turn with time, row and column.
    """

    vocabulary: int
    vision_width: int = 192
    vision_depth: int = 3
    vision_heads: int = 3
    hidden: int = 256
    layers: int = 4
    heads: int = 4
    intermediate: int = 384
    rope_theta: float = 20.0
    rope_sections: tuple[int, int, int] = (8, 12, 12)

    @property
    def head_dim(self) -> int:
        """Width of one head of the language model."""
        return self.hidden // self.heads

    @property
    def vision_head_dim(self) -> int:
        """Width of one head of the tower."""
        return self.vision_width // self.vision_heads
