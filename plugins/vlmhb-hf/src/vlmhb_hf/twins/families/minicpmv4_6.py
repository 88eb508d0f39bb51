"""MiniCPM-V 4.6: slices of a picture, tokens merged in the middle of the vision part, Qwen3.5's hybrid attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PATCH, Family

_TOKENS = {
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "image_start_token": "<image>",
    "image_end_token": "</image>",
    "slice_start_token": "<slice>",
    "slice_end_token": "</slice>",
    "image_id_start_token": "<image_id>",
    "image_id_end_token": "</image_id>",
}
_SIDE = 112


class MiniCPMV46(Family):
    """Pictures of about 112 x 112 pixels."""

    image_text = "<|image_pad|>"
    named: ClassVar[Mapping[str, str]] = _TOKENS
    ids: ClassVar[Mapping[str, str]] = {"image_token_id": "<|image_pad|>", "video_token_id": "<|video_pad|>"}

    def shrink(self, config: dict[str, Any]) -> None:
        """Tokens are merged behind the second of three vision layers."""
        config["insert_layer_id"] = 1
        rope = config["text_config"].get("rope_parameters") or {}
        if "mrope_section" in rope:
            rope["mrope_section"] = [1, 1, 2]

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Learned positions of 8 x 8 patches."""
        config["vision_config"].update(image_size=_SIDE, patch_size=PATCH)

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Few slices."""
        from transformers import MiniCPMV4_6ImageProcessor, MiniCPMV4_6Processor, MiniCPMV4_6VideoProcessor

        return MiniCPMV4_6Processor(
            image_processor=MiniCPMV4_6ImageProcessor(scale_resolution=_SIDE, max_slice_nums=4),
            video_processor=MiniCPMV4_6VideoProcessor(scale_resolution=_SIDE),
            tokenizer=tokenizer,
            chat_template=tokenizer.chat_template,
        )


FAMILY = MiniCPMV46()
