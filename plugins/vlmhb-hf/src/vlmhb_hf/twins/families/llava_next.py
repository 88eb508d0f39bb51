"""LLaVA-NeXT (1.6): a picture is cut into tiles, and a token ends each line of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.families.llava import Llava

GRID = [[56, 112], [112, 56], [112, 112], [168, 56], [56, 168]]


class LlavaNext(Llava):
    """Up to four tiles and the whole, by the same grid in the config and in the processor."""

    processor_class = "LlavaNextProcessor"
    picture_class = "LlavaNextImageProcessor"
    picture_options: ClassVar[Mapping[str, Any]] = {"image_grid_pinpoints": GRID}

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Tiles of 56 pixels."""
        super().small_pictures(config)
        config["image_grid_pinpoints"] = GRID


FAMILY = LlavaNext()
