"""What the twins of the Qwen-VL families share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import Family
from vlmhb_hf.twins.shrink import HEAD_SIZE, HIDDEN

SECTIONS = [4, 6, 6]
_PADS = {
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
}


class QwenVL(Family):
    """Pictures of any size in steps of two patches; positions of three parts."""

    image_text = "<|vision_start|><|image_pad|><|vision_end|>"
    tokens = tuple(_PADS.values())
    ids: ClassVar[Mapping[str, str]] = _PADS
    processor_class: ClassVar[str]
    video_class: ClassVar[str] = "Qwen2VLVideoProcessor"

    def shrink(self, config: dict[str, Any]) -> None:
        """A config of default values has no sections, and gives pictures another width than the language part."""
        rope = config["text_config"]["rope_parameters"]
        rope.setdefault("mrope_section", list(SECTIONS))
        assert sum(rope["mrope_section"]) == HEAD_SIZE // 2
        vision = config["vision_config"]
        vision["hidden_size" if "embed_dim" in vision else "out_hidden_size"] = HIDDEN

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Between 4 and 64 steps of two patches a picture."""
        import transformers

        patch = config["vision_config"]["patch_size"]
        size = {"shortest_edge": 4 * (2 * patch) ** 2, "longest_edge": 64 * (2 * patch) ** 2}
        return getattr(transformers, self.processor_class)(
            image_processor=transformers.Qwen2VLImageProcessor(size=size, patch_size=patch),
            tokenizer=tokenizer,
            video_processor=getattr(transformers, self.video_class)(size=size),
            chat_template=tokenizer.chat_template,
        )
