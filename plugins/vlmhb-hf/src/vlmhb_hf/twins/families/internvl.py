"""InternVL in the layout of transformers: tiles, four patches a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PATCH, PICTURE, Family


class InternVL(Family):
    """4 tokens a tile, at most four tiles and the whole."""

    image_text = "<IMG_CONTEXT>\n"
    named: ClassVar[Mapping[str, str]] = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    ids: ClassVar[Mapping[str, str]] = {"image_token_id": "<IMG_CONTEXT>"}

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Tiles of 56 pixels."""
        config["vision_config"].update(image_size=[PICTURE, PICTURE], patch_size=[PATCH, PATCH])
        config.update(image_seq_length=4, downsample_ratio=0.5)

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Cut into tiles."""
        from transformers import GotOcr2ImageProcessor, InternVLProcessor, InternVLVideoProcessor

        size = {"height": PICTURE, "width": PICTURE}
        return InternVLProcessor(
            image_processor=GotOcr2ImageProcessor(size=size, crop_to_patches=True, min_patches=1, max_patches=4),
            tokenizer=tokenizer,
            video_processor=InternVLVideoProcessor(size=size),
            image_seq_length=4,
            chat_template=tokenizer.chat_template,
        )


FAMILY = InternVL()
