"""Mllama (LLaMA 3.2 Vision): some layers look across at the picture, which takes no place in the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PATCH, PICTURE, Family
from vlmhb_hf.twins.shrink import HIDDEN
from vlmhb_hf.twins.tokens import END_OF_TEXT

_GATE = 0.7


class Mllama(Family):
    """Up to four tiles a picture; the prompt begins with the token that the processor would put there."""

    image_text = "<|image|>"
    opening = END_OF_TEXT
    named: ClassVar[Mapping[str, str]] = {"image_token": "<|image|>"}
    ids: ClassVar[Mapping[str, str]] = {"image_token_index": "<|image|>", "image_token_id": "<|image|>"}

    def shrink(self, config: dict[str, Any]) -> None:
        """Two layers of four look across; features of two of the vision layers stand beside the last one's."""
        config["text_config"]["cross_attention_layers"] = [1, 3]
        config["vision_config"].update(
            intermediate_layers_indices=[0, 1], num_global_layers=2, vision_output_dim=64 * 3
        )
        config["text_config"]["hidden_size"] = HIDDEN

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Tiles of 56 pixels."""
        config["vision_config"].update(image_size=PICTURE, patch_size=PATCH)

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """The tokenizer's begin token is the one that the chat template writes."""
        from transformers import MllamaImageProcessor, MllamaProcessor

        tokenizer.bos_token = END_OF_TEXT
        return MllamaProcessor(
            MllamaImageProcessor(size={"height": PICTURE, "width": PICTURE}, max_image_tiles=4),
            tokenizer,
            chat_template=tokenizer.chat_template,
        )

    def finish(self, model: Any) -> None:
        """Closed gates would hide the picture."""
        for name, values in model.named_parameters():
            if "gate" in name.rpartition(".")[2] and values.numel() == 1:
                values.fill_(_GATE)


FAMILY = Mllama()
