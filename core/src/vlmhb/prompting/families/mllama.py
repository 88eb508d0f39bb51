"""Mllama (LLaMA 3.2 Vision): in transformers the pictures of a longer prompt change the answer to a shorter one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from vlmhb.prompting.families.base import ModelFamily

if TYPE_CHECKING:
    from PIL import Image


class Mllama(ModelFamily):
    """Prompts with as many pictures go together (seen with transformers 5.24 and one picture beside two)."""

    model_types: ClassVar[tuple[str, ...]] = ("mllama",)

    def together(self, pictures: Sequence[Sequence[Image.Image]]) -> bool:
        """Equal numbers of pictures."""
        return len({len(row) for row in pictures}) == 1
