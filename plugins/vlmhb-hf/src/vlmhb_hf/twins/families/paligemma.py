"""PaliGemma: one picture in front of the prompt, all of which sees itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PICTURE, Family, siglip_sized
from vlmhb_hf.twins.shrink import HIDDEN
from vlmhb_hf.twins.tokens import END_OF_TEXT


class PaliGemma(Family):
    """16 tokens a picture."""

    named: ClassVar[Mapping[str, str]] = {"image_token": "<image>"}
    plain = ("\n",)
    ids: ClassVar[Mapping[str, str]] = {"image_token_index": "<image>", "image_token_id": "<image>"}
    embedding = 0.265
    gain = 3.0

    def shrink(self, config: dict[str, Any]) -> None:
        """Pictures come out as wide as the language part."""
        config["projection_dim"] = HIDDEN
        config["vision_config"]["projection_dim"] = HIDDEN

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Squares of 56 pixels."""
        siglip_sized(config["vision_config"])
        config["vision_config"]["vision_use_head"] = False
        config["vision_config"]["num_image_tokens"] = 16
        config["text_config"]["num_image_tokens"] = 16

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Adds 1,152 tokens of its own to the tokenizer, for places and masks."""
        from transformers import PaliGemmaProcessor, SiglipImageProcessor

        tokenizer.bos_token = END_OF_TEXT
        image_processor = SiglipImageProcessor(size={"height": PICTURE, "width": PICTURE})
        image_processor.image_seq_length = 16
        return PaliGemmaProcessor(image_processor, tokenizer, chat_template=tokenizer.chat_template)


FAMILY = PaliGemma()
