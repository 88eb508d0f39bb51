"""Phi-4-multimodal: a picture is cut into squares of 448 pixels, whose tokens the processor counts by fixed numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PATCH, Family

_SIDE = 448


class Phi4Multimodal(Family):
    """256 tokens a square and those of the line ends."""

    image_text = "<|image|>"
    named: ClassVar[Mapping[str, str]] = {"image_token": "<|image|>", "audio_token": "<|audio|>"}
    ids: ClassVar[Mapping[str, str]] = {
        "vision_config.image_token_id": "<|image|>",
        "audio_config.audio_token_id": "<|audio|>",
    }

    def shrink(self, config: dict[str, Any]) -> None:
        """The audio part is made small too; it is not asked."""
        config["vision_config"].update(image_size=_SIDE, patch_size=PATCH, crop_size=_SIDE, feature_layer=-2)
        config["audio_config"].update(
            hidden_size=64, intermediate_size=128, num_blocks=1, num_attention_heads=2, ext_pw_out_channel=64,
            depthwise_separable_out_channel=64, nemo_conv_channels=64,
        )  # fmt: skip

    def small_pictures(self, config: dict[str, Any]) -> None:
        """The pictures stay as large as they are; the context has room for two."""
        config["max_position_embeddings"] = 2048

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """One square and the whole."""
        from transformers import Phi4MultimodalFeatureExtractor, Phi4MultimodalImageProcessor, Phi4MultimodalProcessor

        image_processor = Phi4MultimodalImageProcessor(
            size={"height": _SIDE, "width": _SIDE}, patch_size=PATCH, dynamic_hd=1
        )
        return Phi4MultimodalProcessor(
            image_processor, Phi4MultimodalFeatureExtractor(), tokenizer, chat_template=tokenizer.chat_template
        )


FAMILY = Phi4Multimodal()
