"""LLaVA-1.5: CLIP, a projector, LLaMA; every picture becomes as many tokens as it has patches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PICTURE, Family, siglip_sized


class Llava(Family):
    """16 tokens a picture."""

    image_text = "<image>\n"
    tokens = ("<image>",)
    ids: ClassVar[Mapping[str, str]] = {"image_token_index": "<image>", "image_token_id": "<image>"}

    processor_class: ClassVar[str] = "LlavaProcessor"
    picture_class: ClassVar[str] = "CLIPImageProcessor"
    picture_options: ClassVar[Mapping[str, Any]] = {}

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Squares of 56 pixels."""
        siglip_sized(config["vision_config"])
        config["image_seq_length"] = 16

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """As LLaVA-1.5 has it, of the family's own classes."""
        import transformers

        size = {"height": PICTURE, "width": PICTURE}
        pictures = getattr(transformers, self.picture_class)
        return getattr(transformers, self.processor_class)(
            pictures(size={"shortest_edge": PICTURE}, crop_size=size, **self.picture_options),
            tokenizer,
            patch_size=14,
            vision_feature_select_strategy="default",
            image_token="<image>",
            num_additional_image_tokens=1,
            chat_template=tokenizer.chat_template,
        )


FAMILY = Llava()
