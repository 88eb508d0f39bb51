"""Phi-4-multimodal: pictures of different shapes in one batch change each other's features in transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from vlmhb.prompting.families.base import ModelFamily

if TYPE_CHECKING:
    from PIL import Image


class Phi4Multimodal(ModelFamily):
    """Prompts with pictures are encoded one at a time (seen with transformers 5.24 and pictures of unequal crops)."""

    model_types: ClassVar[tuple[str, ...]] = ("phi4_multimodal",)

    def together(self, pictures: Sequence[Sequence[Image.Image]]) -> bool:
        """Each alone."""
        return len(pictures) == 1
