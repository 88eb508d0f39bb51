"""TrOCR: ViT over a line of text, then a decoder that starts with one token."""

from __future__ import annotations

from typing import Any

from vlmhb_hf.twins.family import PICTURE, siglip_sized
from vlmhb_hf.twins.reader import Reader


class TrOcr(Reader):
    """16 patches."""

    picture = 0.1

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Squares of 56 pixels."""
        siglip_sized(config["encoder"])

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """A line is stretched to the square."""
        from transformers import TrOCRProcessor, ViTImageProcessor

        return TrOCRProcessor(ViTImageProcessor(size={"height": PICTURE, "width": PICTURE}), tokenizer)


FAMILY = TrOcr()
