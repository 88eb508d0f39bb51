"""Phi-3-Vision's processor: pictures in crops, and prompts in which ``<|image_1|>`` says where a picture stands."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import BatchFeature, ProcessorMixin
from transformers.image_processing_utils import BaseImageProcessor

_PLACE = re.compile(r"<\|image_(\d+)\|>")


class Phi3VImageProcessor(BaseImageProcessor):
    """A picture as a whole, and cut into at most ``num_crops`` squares of ``crop_size`` pixels."""

    model_input_names = ["pixel_values", "image_sizes"]  # noqa: RUF012 - so it is in transformers

    def __init__(
        self,
        num_crops: int = 16,
        crop_size: int = 336,
        image_mean: tuple[float, ...] = (0.48145466, 0.4578275, 0.40821073),
        image_std: tuple[float, ...] = (0.26862954, 0.26130258, 0.27577711),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_crops = num_crops
        self.crop_size = crop_size
        self.image_mean = list(image_mean)
        self.image_std = list(image_std)

    def canvas(self, width: int, height: int) -> tuple[int, int, int]:
        """Width of a picture after scaling, and height and width of the squares that it fills, in pixels."""
        ratio = max(width, height) / min(width, height)
        scale = 1
        while scale * math.ceil(scale / ratio) <= self.num_crops:
            scale += 1
        longer = (scale - 1) * self.crop_size
        shorter = math.ceil(int(longer / ratio) / self.crop_size) * self.crop_size
        if width >= height:
            return longer, shorter, longer
        return int(longer / ratio), longer, shorter

    def calc_num_image_tokens_from_image_size(self, width: int, height: int) -> int:
        """Tokens of a picture: those of its squares and of the whole, a separator a line and one between both."""
        _, tall, wide = self.canvas(width, height)
        side = self.crop_size // 28
        rows, columns = tall // self.crop_size, wide // self.crop_size
        return (rows * columns + 1) * side * side + 1 + (rows + 1) * side

    def preprocess(self, images: Any, return_tensors: str = "pt", **kwargs: Any) -> BatchFeature:
        """``pixel_values`` of shape (images, num_crops + 1, 3, crop, crop), ``image_sizes`` (images, 2): height, width.

        ``num_img_tokens`` is a list.
        """
        images = list(images) if isinstance(images, list | tuple) else [images]
        crops, sizes = zip(*(self._crops(image.convert("RGB")) for image in images), strict=True)
        counts = [self.calc_num_image_tokens_from_image_size(*image.size) for image in images]
        return BatchFeature(
            {"pixel_values": torch.stack(crops), "image_sizes": torch.tensor(sizes), "num_img_tokens": counts}
        )

    def _crops(self, image: Image.Image) -> tuple[torch.Tensor, tuple[int, int]]:
        scaled, tall, wide = self.canvas(*image.size)
        resized = image.resize((scaled, max(1, round(image.height * scaled / image.width))), Image.Resampling.BILINEAR)
        page = Image.new("RGB", (wide, tall), "white")
        page.paste(resized, (0, (tall - resized.height) // 2))
        pixels, side = self._normalised(page), self.crop_size
        whole = torch.nn.functional.interpolate(pixels[None], (side, side), mode="bicubic")
        squares = pixels.unfold(1, side, side).unfold(2, side, side).permute(1, 2, 0, 3, 4).reshape(-1, 3, side, side)
        missing = pixels.new_zeros(self.num_crops - len(squares), 3, side, side)
        return torch.cat([whole, squares, missing]), (tall, wide)

    def _normalised(self, image: Image.Image) -> torch.Tensor:
        values = torch.from_numpy(np.array(image, dtype=np.float32) / 255).permute(2, 0, 1)
        mean, std = (torch.tensor(numbers).view(3, 1, 1) for numbers in (self.image_mean, self.image_std))
        return (values - mean) / std


class Phi3VProcessor(ProcessorMixin):
    """Takes one prompt with its pictures; a picture's positions get the negative of its number as their id."""

    def __init__(self, image_processor: Any = None, tokenizer: Any = None, **kwargs: Any) -> None:
        super().__init__(image_processor, tokenizer, **kwargs)
        self.num_crops = image_processor.num_crops
        self.img_tokens = [f"<|image_{number}|>" for number in range(1, 100)]

    def __call__(self, text: str, images: Any = None, return_tensors: str = "pt", **kwargs: Any) -> BatchFeature:
        """``input_ids``, ``attention_mask`` and what the image processor returns."""
        if images is None:
            return BatchFeature(self.tokenizer(text, return_tensors=return_tensors, **kwargs))
        pictures = self.image_processor(images, return_tensors=return_tensors)
        counts = pictures.pop("num_img_tokens")
        numbers = [int(number) for number in _PLACE.findall(text)]
        if sorted(set(numbers)) != list(range(1, len(counts) + 1)):
            raise ValueError(f"the prompt speaks of the images {sorted(set(numbers))} and there are {len(counts)}.")
        chunks = [self.tokenizer(chunk).input_ids for chunk in _PLACE.split(text)[::2]]
        ids = list(chunks[0])
        for number, chunk in zip(numbers, chunks[1:], strict=True):
            ids += [-number] * counts[number - 1] + chunk
        input_ids = torch.tensor([ids])
        return BatchFeature({"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids), **pictures})

    def calc_num_image_tokens_from_image_size(self, width: int, height: int) -> int:
        """See the image processor."""
        count: int = self.image_processor.calc_num_image_tokens_from_image_size(width, height)
        return count


Phi3VImageProcessor.register_for_auto_class()
Phi3VProcessor.register_for_auto_class()
