"""DeepSeek-VL: SigLIP, a projector, LLaMA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PICTURE, Family, siglip_sized


class DeepseekVL(Family):
    """16 tokens a picture."""

    image_text = "<image_placeholder>"
    named: ClassVar[Mapping[str, str]] = {"image_token": "<image_placeholder>"}
    ids: ClassVar[Mapping[str, str]] = {"image_token_id": "<image_placeholder>"}

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Squares of 56 pixels."""
        siglip_sized(config["vision_config"])
        config["vision_config"]["vision_use_head"] = False

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Pictures in one piece."""
        from transformers import DeepseekVLImageProcessor, DeepseekVLProcessor

        return DeepseekVLProcessor(
            DeepseekVLImageProcessor(size={"height": PICTURE, "width": PICTURE}),
            tokenizer,
            chat_template=tokenizer.chat_template,
            num_image_tokens=16,
        )


FAMILY = DeepseekVL()
