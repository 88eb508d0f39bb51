"""LLaVA-NeXT (1.6): a picture is cut into tiles, and a token ends each line of them."""

from __future__ import annotations

from typing import Any

from vlmhb_hf.twins.families.llava import Llava
from vlmhb_hf.twins.family import PICTURE

GRID = [[56, 112], [112, 56], [112, 112], [168, 56], [56, 168]]


class LlavaNext(Llava):
    """Up to four tiles and the whole."""

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Tiles of 56 pixels."""
        super().small_pictures(config)
        config["image_grid_pinpoints"] = GRID

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """The same grid as in the config."""
        from transformers import LlavaNextImageProcessor, LlavaNextProcessor

        size = {"height": PICTURE, "width": PICTURE}
        return LlavaNextProcessor(
            LlavaNextImageProcessor(size={"shortest_edge": PICTURE}, crop_size=size, image_grid_pinpoints=GRID),
            tokenizer,
            patch_size=14,
            vision_feature_select_strategy="default",
            image_token="<image>",
            num_additional_image_tokens=1,
            chat_template=tokenizer.chat_template,
        )


FAMILY = LlavaNext()
