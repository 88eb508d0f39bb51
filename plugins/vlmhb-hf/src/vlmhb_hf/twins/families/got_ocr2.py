"""GOT-OCR 2: SAM's vision part, windows and all, then Qwen2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import Family
from vlmhb_hf.twins.shrink import HIDDEN

_SIDE = 1024


class GotOcr2(Family):
    """256 tokens a picture of 1024 pixels: its processor always counts so many."""

    image_text = "<img><imgpad></img>"
    tokens = ("<img>", "</img>", "<imgpad>")
    named: ClassVar[Mapping[str, str]] = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "image_token": "<imgpad>",
    }
    ids: ClassVar[Mapping[str, str]] = {"image_token_id": "<imgpad>"}

    def shrink(self, config: dict[str, Any]) -> None:
        """The last layer looks at everything, the others through windows."""
        config["vision_config"].update(
            image_size=_SIDE, output_channels=32, window_size=14, global_attn_indexes=[2], mlp_dim=128, hidden_size=64
        )
        config["text_config"]["hidden_size"] = HIDDEN

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Pictures in one piece."""
        from transformers import GotOcr2ImageProcessor, GotOcr2Processor

        return GotOcr2Processor(
            GotOcr2ImageProcessor(size={"height": _SIDE, "width": _SIDE}),
            tokenizer,
            chat_template=tokenizer.chat_template,
        )


FAMILY = GotOcr2()
