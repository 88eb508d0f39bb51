"""MiniCPM-V up to 2.6 and 4.5, by the code of its folders: pictures in slices, a ``generate`` of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from vlmhb.prompting.families.base import ModelFamily

if TYPE_CHECKING:
    from PIL import Image

    from vlmhb.contract.model import ModelSpec

_STARTS, _ENDS = ("<image>", "<slice>"), ("</image>", "</slice>")


class MiniCPMV(ModelFamily):
    """What its documented ``chat`` does, apart from choosing tokens: the processor gets lists of pictures, empty ones
    too, and ``generate`` gets the tokenizer and the places of slices."""

    model_types: ClassVar[tuple[str, ...]] = ("minicpmv",)
    image_text: ClassVar[str | None] = "(<image>./</image>)\n"

    def __init__(self, spec: ModelSpec, processor: Any) -> None:
        super().__init__(spec, processor)
        self.tokenizer = processor.tokenizer
        self.stop_words = tuple(word for word in ("<|im_end|>", "<|endoftext|>") if word in self.tokenizer.get_vocab())

    def encode(
        self,
        processor: Any,
        texts: Sequence[str],
        pictures: Sequence[Sequence[Image.Image]] | None,
        options: Mapping[str, Any],
    ) -> Any:
        """The processor pads on the left by itself."""
        rows = [list(row) for row in pictures] if pictures is not None else [[] for _ in texts]
        batch = processor(list(texts), rows, return_tensors="pt")
        batch.pop("image_sizes", None)
        return batch

    def model_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """With the places of slices as they are in the ids now: words that were put back may have moved them."""
        ids = inputs["input_ids"]
        pixels = [[strip.to(ids.device) for strip in row] for row in inputs["pixel_values"]]
        bounds = [self._bounds(row) for row in ids]
        return {**inputs, "pixel_values": pixels, "image_bound": bounds, "tokenizer": self.tokenizer}

    def _bounds(self, ids: Any) -> Any:
        """Behind each beginning of a slice, and before its end; of shape (slices, 2)."""
        import torch

        starts, ends = (
            torch.isin(
                ids, torch.tensor(self.tokenizer.convert_tokens_to_ids(list(words)), device=ids.device)
            ).nonzero()
            for words in (_STARTS, _ENDS)
        )
        return torch.cat([starts + 1, ends], dim=1)
