"""What the twins with Pixtral's vision part share: patches in lines, a token at the end of each line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PATCH, Family

LONGEST = 112


class MistralVision(Family):
    """Pictures of any shape, at most 112 pixels a side."""

    image_text = "[IMG]"
    tokens = ("[IMG]", "[IMG_BREAK]", "[IMG_END]")
    ids: ClassVar[Mapping[str, str]] = {"image_token_index": "[IMG]", "image_token_id": "[IMG]"}
    merge: ClassVar[int]

    def small_pictures(self, config: dict[str, Any]) -> None:
        """The activation is that of the published models: Pixtral's default in transformers is another."""
        config["vision_config"].update(image_size=LONGEST, patch_size=PATCH, hidden_act="silu")

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Patches are merged by fours or not at all."""
        from transformers import PixtralImageProcessor, PixtralProcessor

        patch = PATCH * self.merge
        return PixtralProcessor(
            image_processor=PixtralImageProcessor(
                size={"longest_edge": LONGEST}, patch_size={"height": patch, "width": patch}
            ),
            tokenizer=tokenizer,
            patch_size=PATCH,
            spatial_merge_size=self.merge,
            chat_template=tokenizer.chat_template,
        )
