"""MiniCPM-V 2.6's processor: prompts in which ``(<image>./</image>)`` says where a picture stands."""

from __future__ import annotations

from typing import Any

import torch
from transformers import BatchFeature, ProcessorMixin

_PLACE = "(<image>./</image>)"


class MiniCPMVProcessor(ProcessorMixin):
    """Takes prompts and, for each, a list of its pictures."""

    def __init__(self, image_processor: Any = None, tokenizer: Any = None, **kwargs: Any) -> None:
        super().__init__(image_processor, tokenizer, **kwargs)

    def __call__(
        self,
        text: Any,
        images: Any = None,
        max_slice_nums: int | None = None,
        use_image_id: bool | None = None,
        return_tensors: str = "pt",
        **kwargs: Any,
    ) -> BatchFeature:
        """``input_ids`` and ``attention_mask``, padded on the left with 0; what the image processor returns; and
        ``image_bound``, for each prompt the places in it of each slice: from, and up to.
        """
        texts = [text] if isinstance(text, str) else list(text)
        if images is None:
            return BatchFeature(self.tokenizer(texts, return_tensors=return_tensors, **kwargs))
        pictures = self.image_processor(images, max_slice_nums=max_slice_nums)
        rows = [
            self._ids(prompt, sizes, max_slice_nums, use_image_id)
            for prompt, sizes in zip(texts, pictures["image_sizes"], strict=True)
        ]
        longest = max(map(len, rows))
        padded = torch.tensor([[0] * (longest - len(ids)) + ids for ids in rows])
        mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in rows])
        bounds = [self._bounds(ids) for ids in padded]
        return BatchFeature({"input_ids": padded, "attention_mask": mask, "image_bound": bounds, **pictures})

    def _ids(self, prompt: str, sizes: Any, most: int | None, use_image_id: bool | None) -> list[int]:
        first, *rest = prompt.split(_PLACE)
        if len(rest) != len(sizes):
            raise ValueError(f"the prompt has places for {len(rest)} images and there are {len(sizes)}.")
        for number, (part, size) in enumerate(zip(rest, sizes, strict=True)):
            first += self.image_processor.get_slice_image_placeholder(size, number, most, use_image_id) + part
        ids: list[int] = self.tokenizer.encode(first)
        return ids

    def _bounds(self, ids: torch.Tensor) -> torch.Tensor:
        """Where slices lie: behind each beginning, before each end."""
        starts, ends = (
            torch.isin(ids, torch.tensor(self.tokenizer.convert_tokens_to_ids(words))).nonzero()
            for words in (["<image>", "<slice>"], ["</image>", "</slice>"])
        )
        return torch.cat([starts + 1, ends], dim=1)


MiniCPMVProcessor.register_for_auto_class()
