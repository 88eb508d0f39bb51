"""Idefics3: pictures cut into tiles, 4 tokens a tile, with words around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PICTURE, Family, siglip_sized

_ROWS = 2
_TILES = tuple(f"<row_{row}_col_{column}>" for row in range(1, _ROWS + 1) for column in range(1, _ROWS + 1))


class Idefics3(Family):
    """At most four tiles and the whole."""

    tokens = ("<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>", *_TILES)
    ids: ClassVar[Mapping[str, str]] = {"image_token_id": "<image>"}
    sizes: ClassVar[dict[str, Any]] = {
        "size": {"longest_edge": 2 * PICTURE},
        "max_image_size": {"longest_edge": PICTURE},
    }

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Tiles of 56 pixels."""
        siglip_sized(config["vision_config"])
        config["scale_factor"] = 2

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Four patches a token."""
        from transformers import Idefics3ImageProcessor, Idefics3Processor

        return Idefics3Processor(
            Idefics3ImageProcessor(**self.sizes), tokenizer, image_seq_len=4, chat_template=tokenizer.chat_template
        )


FAMILY = Idefics3()
