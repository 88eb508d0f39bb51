"""MiniCPM-V 2.6's pictures: one overview and, of larger pictures, slices in a grid; each a strip of patches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import BatchFeature
from transformers.image_processing_utils import BaseImageProcessor

Size = tuple[int, int]
"""Width and height."""


class MiniCPMVImageProcessor(BaseImageProcessor):
    """Slices have about the area of a square of ``scale_resolution`` pixels; there are at most ``max_slice_nums``."""

    model_input_names = ["pixel_values"]  # noqa: RUF012 - so it is in transformers

    def __init__(
        self,
        max_slice_nums: int = 9,
        scale_resolution: int = 448,
        patch_size: int = 14,
        use_image_id: bool = True,
        image_feature_size: int = 64,
        slice_mode: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.max_slice_nums = max_slice_nums
        self.scale_resolution = scale_resolution
        self.patch_size = patch_size
        self.use_image_id = use_image_id
        self.image_feature_size = image_feature_size
        self.slice_mode = slice_mode
        self.im_start_token, self.im_end_token = "<image>", "</image>"
        self.slice_start_token, self.slice_end_token = "<slice>", "</slice>"
        self.im_id_start, self.im_id_end = "<image_id>", "</image_id>"
        self.unk_token = "<unk>"
        self.mean = self.std = [0.5, 0.5, 0.5]

    def get_sliced_grid(self, image_size: Size, max_slice_nums: int) -> Size | None:
        """Columns and rows into which a picture is cut, nearest to its shape; None for a picture in one piece."""
        width, height = image_size
        wanted = min(math.ceil(width * height / self.scale_resolution**2), max_slice_nums)
        if wanted <= 1:
            return None
        counts = [count for count in (wanted - 1, wanted, wanted + 1) if 1 < count <= max_slice_nums]
        grids = [(across, count // across) for count in counts for across in range(1, count + 1) if count % across == 0]
        return min(grids, key=lambda grid: abs(math.log(width / height) - math.log(grid[0] / grid[1])))

    def get_slice_image_placeholder(
        self,
        image_size: Size,
        image_idx: int = 0,
        max_slice_nums: int | None = None,
        use_image_id: bool | None = None,
    ) -> str:
        """What stands for a picture in the prompt."""
        unknown = self.unk_token * self.image_feature_size
        text = f"{self.im_start_token}{unknown}{self.im_end_token}"
        if self.use_image_id if use_image_id is None else use_image_id:
            text = f"{self.im_id_start}{image_idx}{self.im_id_end}{text}"
        grid = self.get_sliced_grid(image_size, max_slice_nums or self.max_slice_nums) if self.slice_mode else None
        if grid is None:
            return text
        line = f"{self.slice_start_token}{unknown}{self.slice_end_token}" * grid[0]
        return text + "\n".join([line] * grid[1])

    def preprocess(self, images: Any, do_pad: bool = True, max_slice_nums: int | None = None, **kwargs: Any) -> Any:
        """For each prompt: ``pixel_values``, a list of (3, patch, patches * patch) with an entry a slice;
        ``tgt_sizes``, rows and columns of patches of each; ``image_sizes``, width and height of each picture.

        Args:
            images: for each prompt its pictures; a list of pictures, or one, is that of one prompt.
            do_pad: not used; slices keep their lengths.
            max_slice_nums: in place of the processor's own.
        """
        images = images if isinstance(images, list) else [images]
        prompts = images if all(isinstance(row, list) for row in images) else [images]
        data: dict[str, list[Any]] = {"pixel_values": [], "image_sizes": [], "tgt_sizes": []}
        for row in prompts:
            slices = [piece for image in row for piece in self._slices(image.convert("RGB"), max_slice_nums)]
            sizes = [(piece.height // self.patch_size, piece.width // self.patch_size) for piece in slices]
            data["pixel_values"].append([self._strip(piece) for piece in slices])
            data["image_sizes"].append([image.size for image in row])
            data["tgt_sizes"].append(torch.tensor(sizes, dtype=torch.int32).reshape(-1, 2))
        return BatchFeature(data)

    def _slices(self, image: Image.Image, most: int | None) -> list[Image.Image]:
        grid = self.get_sliced_grid(image.size, most or self.max_slice_nums) if self.slice_mode else None
        if grid is None:
            return [_resized(image, self._fitting(image.size, enlarge=True))]
        overview = _resized(image, self._fitting(image.size, enlarge=False))
        wide, tall = (self._divided(side, count) for side, count in zip(image.size, grid, strict=True))
        width, height = self._fitting((wide / grid[0], tall / grid[1]), enlarge=True)
        page = _resized(image, (width * grid[0], height * grid[1]))
        boxes = [(x * width, y * height) for y in range(grid[1]) for x in range(grid[0])]
        return [overview, *(page.crop((x, y, x + width, y + height)) for x, y in boxes)]

    def _fitting(self, size: tuple[float, float], *, enlarge: bool) -> Size:
        """The same shape with about the area of a slice, in whole patches."""
        width, height = size
        if enlarge or width * height > self.scale_resolution**2:
            ratio = width / height
            height = int(self.scale_resolution / math.sqrt(ratio))
            width = int(height * ratio)
        return self._divided(width, self.patch_size), self._divided(height, self.patch_size)

    def _divided(self, length: float, by: int) -> int:
        return max(round(length / by) * by, by)

    def _strip(self, image: Image.Image) -> torch.Tensor:
        values = torch.from_numpy(np.array(image, dtype=np.float32) / 255).permute(2, 0, 1)
        values = (values - self.mean[0]) / self.std[0]
        patch = self.patch_size
        patches = values.unfold(1, patch, patch).unfold(2, patch, patch)  # 3, rows, columns, patch, patch
        return patches.permute(0, 3, 1, 2, 4).reshape(3, patch, -1)


def _resized(image: Image.Image, size: Size) -> Image.Image:
    return image.resize(size, Image.Resampling.BICUBIC)


MiniCPMVImageProcessor.register_for_auto_class()
