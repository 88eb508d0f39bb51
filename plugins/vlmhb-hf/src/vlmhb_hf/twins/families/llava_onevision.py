"""LLaVA-OneVision: SigLIP, tiles as in LLaVA-NeXT, Qwen2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.families.llava_next import GRID, LlavaNext
from vlmhb_hf.twins.family import PICTURE


class LlavaOnevision(LlavaNext):
    """16 tokens a tile."""

    tokens = ("<image>", "<video>")
    ids: ClassVar[Mapping[str, str]] = {
        "image_token_index": "<image>",
        "image_token_id": "<image>",
        "video_token_index": "<video>",
        "video_token_id": "<video>",
    }

    def small_pictures(self, config: dict[str, Any]) -> None:
        """SigLIP without the head that the family does not use."""
        super().small_pictures(config)
        config["vision_config"]["vision_use_head"] = False

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """The same grid as in the config."""
        from transformers import LlavaOnevisionImageProcessor, LlavaOnevisionProcessor, LlavaOnevisionVideoProcessor

        size = {"height": PICTURE, "width": PICTURE}
        return LlavaOnevisionProcessor(
            image_processor=LlavaOnevisionImageProcessor(size=size, image_grid_pinpoints=GRID),
            tokenizer=tokenizer,
            video_processor=LlavaOnevisionVideoProcessor(size=size),
            num_image_tokens=16,
            vision_feature_select_strategy="full",
            chat_template=tokenizer.chat_template,
        )


FAMILY = LlavaOnevision()
