"""DeepSeek-OCR 2: SAM's vision part, a small language model that looks at its patches, experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import Family
from vlmhb_hf.twins.shrink import VISION


class DeepseekOcr2(Family):
    """256 tokens a picture of 1024 pixels and one more: the model's learned questions are so many."""

    image_text = "<image>\n"
    named: ClassVar[Mapping[str, str]] = {"image_token": "<image>"}
    ids: ClassVar[Mapping[str, str]] = {"image_token_id": "<image>"}

    def shrink(self, config: dict[str, Any]) -> None:
        """The last layer of SAM looks at everything, the others through windows; the first of the language part is
        dense."""
        config["vision_config"]["sam_config"].update(
            hidden_size=64, output_channels=32, num_hidden_layers=3, num_attention_heads=2, mlp_dim=128, scale=32,
            window_size=14, global_attn_indexes=[2], downsample_channels=[48, VISION.hidden],
        )  # fmt: skip
        text = config["text_config"]
        text["mlp_layer_types"] = ["dense"] + ["sparse"] * (text["num_hidden_layers"] - 1)

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Pictures of the model's own sizes."""
        from transformers import DeepseekOcr2ImageProcessor, DeepseekOcr2Processor

        return DeepseekOcr2Processor(DeepseekOcr2ImageProcessor(), tokenizer, chat_template=tokenizer.chat_template)


FAMILY = DeepseekOcr2()
