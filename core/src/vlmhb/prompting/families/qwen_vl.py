"""The Qwen-VL families: pictures of any size, in steps of a patch group, between two bounds on their area."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from vlmhb.errors import ImageError, MissingPackageError, ModelLoadError
from vlmhb.prompting.families.base import ModelFamily

if TYPE_CHECKING:
    from PIL import Image

    from vlmhb.contract.model import ModelSpec

_MAX_RATIO = 200


class QwenVL(ModelFamily):
    """Resizes with ``qwen_vl_utils``, once; the model's processor then finds the size right and leaves it.

    The bounds are those of the model folder (``min_pixels``/``max_pixels``, or ``size`` with ``shortest_edge`` and
    ``longest_edge``, as its processor resolves them), replaced by the spec's where given.
    """

    model_types: ClassVar[tuple[str, ...]] = (
        "qwen2_vl",
        "qwen2_5_vl",
        "qwen3_vl",
        "qwen3_vl_moe",
        "qwen3_5",
        "qwen3_5_moe",
    )

    def __init__(self, spec: ModelSpec, processor: Any) -> None:
        super().__init__(spec, processor)
        settings = processor.image_processor
        self.patch_size = int(settings.patch_size)
        self.factor = self.patch_size * int(settings.merge_size)
        self.min_pixels = spec.min_pixels if spec.min_pixels is not None else int(settings.size["shortest_edge"])
        self.max_pixels = spec.max_pixels if spec.max_pixels is not None else int(settings.size["longest_edge"])
        if not self.factor**2 <= self.max_pixels or self.min_pixels > self.max_pixels:
            raise ModelLoadError(
                f"min_pixels {self.min_pixels} and max_pixels {self.max_pixels} do not fit this model: pictures come "
                f"in steps of {self.factor} pixels, so max_pixels must be at least {self.factor**2} and min_pixels at "
                "most max_pixels."
            )
        # The processor keeps its own copy of the bounds; with the same ones it agrees about every size.
        settings.size = type(settings.size)(shortest_edge=self.min_pixels, longest_edge=self.max_pixels)
        self.processor_options = {"do_resize": False}

    def resize(self, image: Image.Image, label: str) -> Image.Image:
        """As ``qwen_vl_utils.fetch_image`` does (bicubic, to the size of its ``smart_resize``)."""
        return image.resize(self.target_size(*image.size, label))

    def target_size(self, width: int, height: int, label: str = "image") -> tuple[int, int]:
        """Width and height after resizing: multiples of ``factor``, with an area between the two bounds.

        Raises:
            ImageError: one side is more than 200 times the other, before or after; the model was not made for it.
        """
        try:
            from qwen_vl_utils.vision_process import smart_resize
        except ImportError as error:
            raise MissingPackageError("Qwen-VL models need: pip install qwen-vl-utils") from error
        self._check_shape(width, height, (width, height), label)
        tall, wide = smart_resize(height, width, self.factor, self.min_pixels, self.max_pixels)
        if 0 in (tall, wide):  # a narrow picture, shrunk so far that nothing of its short side is left
            longest = self.max_pixels // self.factor**2 * self.factor
            wide, tall = (longest, self.factor) if width > height else (self.factor, longest)
        self._check_shape(wide, tall, (width, height), label)
        return wide, tall

    def image_tokens(self, width: int, height: int) -> int:
        """The picture's area between the bounds, in groups of patches."""
        return min(max(width * height, self.min_pixels), self.max_pixels) // self.factor**2

    def _check_shape(self, width: int, height: int, original: tuple[int, int], label: str) -> None:
        if max(width, height) > _MAX_RATIO * min(width, height):
            raise ImageError(
                f"{label} is {original[0]} x {original[1]} pixels; the model takes no picture whose one side is more "
                f"than {_MAX_RATIO} times the other."
            )
