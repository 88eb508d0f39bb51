"""Florence-2: an encoder-decoder that looks at one picture."""

from __future__ import annotations

from typing import ClassVar, Literal

from vlmhb.prompting.families.base import ModelFamily


class Florence2(ModelFamily):
    """Takes one image; its processor puts the image's tokens in front of the text."""

    model_types: ClassVar[tuple[str, ...]] = ("florence2",)
    places_images: ClassVar[bool] = False
    padding_side: ClassVar[Literal["left", "right"]] = "right"
    max_images: ClassVar[int | None] = 1
