"""Phi-3-Vision: pictures have numbers in the prompt, and negative ids at their places."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from vlmhb.prompting.families.base import ModelFamily

if TYPE_CHECKING:
    from PIL import Image

    from vlmhb.contract.model import ModelSpec

_IMAGE = "<|image|>"


class Phi3V(ModelFamily):
    """The processor takes one prompt at a time, in which ``<|image_1|>`` is the first picture.

    It gives a picture's positions the negative of its number as their id. Here they have the id of ``<|image|>``, which
    is in no text, and the model gets -1.
    """

    model_types: ClassVar[tuple[str, ...]] = ("phi3_v",)
    image_text: ClassVar[str | None] = f"{_IMAGE}\n"
    word_patterns: ClassVar[tuple[str, ...]] = (r"<\|image_\d+\|>",)

    def __init__(self, spec: ModelSpec, processor: Any) -> None:
        super().__init__(spec, processor)
        self.image_id: int = processor.tokenizer.convert_tokens_to_ids(_IMAGE)

    def numbered(self, text: str) -> str:
        """Placeholders with their numbers."""
        first, *rest = text.split(_IMAGE)
        return first + "".join(f"<|image_{number}|>{part}" for number, part in zip(itertools.count(1), rest))

    def together(self, pictures: Sequence[Sequence[Image.Image]]) -> bool:
        """Each alone."""
        return len(pictures) == 1

    def encode(
        self,
        processor: Any,
        texts: Sequence[str],
        pictures: Sequence[Sequence[Image.Image]] | None,
        options: Mapping[str, Any],
    ) -> Any:
        """One prompt with pictures, or several without."""
        if pictures is None:
            return processor.tokenizer(list(texts), **options)
        batch = processor(texts[0], list(pictures[0]), return_tensors="pt")
        ids = batch["input_ids"]
        batch["input_ids"] = ids.masked_fill(ids < 0, self.image_id)
        return batch

    def model_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """With negative ids at the places of pictures."""
        ids = inputs["input_ids"]
        return {**inputs, "input_ids": ids.masked_fill(ids == self.image_id, -1)}
