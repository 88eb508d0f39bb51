"""Gemma 3: the tokens of a picture see each other, so the side arrays of a batch matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PICTURE, Family, siglip_sized
from vlmhb_hf.twins.shrink import HEAD_SIZE


class Gemma3(Family):
    """4 tokens a picture."""

    image_text = "<start_of_image>"
    named: ClassVar[Mapping[str, str]] = {
        "image_token": "<image_soft_token>",
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
    }
    plain = ("\n", "\n\n", "\n\n\n", "\n\n\n\n")
    ids: ClassVar[Mapping[str, str]] = {
        "image_token_index": "<image_soft_token>",
        "image_token_id": "<image_soft_token>",
        "boi_token_index": "<start_of_image>",
        "eoi_token_index": "<end_of_image>",
    }
    embedding = 0.05
    gain = 2.0

    def shrink(self, config: dict[str, Any]) -> None:
        """Queries are scaled by the size of a head."""
        config["text_config"]["query_pre_attn_scalar"] = HEAD_SIZE

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Squares of 56 pixels, four patches a token."""
        siglip_sized(config["vision_config"])
        config["vision_config"]["vision_use_head"] = False
        config["mm_tokens_per_image"] = 4

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Pictures in one piece."""
        from transformers import Gemma3ImageProcessor, Gemma3Processor

        return Gemma3Processor(
            Gemma3ImageProcessor(size={"height": PICTURE, "width": PICTURE}),
            tokenizer,
            image_seq_length=4,
            chat_template=tokenizer.chat_template,
        )

    def finish(self, model: Any) -> None:
        """Its norms multiply by 1 + weight, and those after each block damp it: with 0 the embedding always wins."""
        for name, values in model.named_parameters():
            if name.endswith(("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")):
                values.fill_(1.0)
            elif name.endswith(("q_norm.weight", "k_norm.weight")):
                values.fill_(1.5)


FAMILY = Gemma3()
