"""Phi-3-Vision: CLIP over squares of a picture, Phi-3; by code that the folder brings."""

from __future__ import annotations

from typing import Any, ClassVar

from vlmhb_hf.twins.code.phi3_v.processing_phi3_v import Phi3VImageProcessor, Phi3VProcessor
from vlmhb_hf.twins.family import PATCH, PICTURE, Family
from vlmhb_hf.twins.tokens import template_of_strings


class Phi3V(Family):
    """At most four squares of 56 pixels, each of four tokens; the chat template knows nothing of pictures."""

    code = "phi3_v"
    auto_map: ClassVar[dict[str, str]] = {
        "AutoConfig": "configuration_phi3_v.Phi3VConfig",
        "AutoModelForCausalLM": "modeling_phi3_v.Phi3VForCausalLM",
    }
    tokens = ("<|image|>",)

    def shrink(self, config: dict[str, Any]) -> None:
        """CLIP with two layers and one more, which is not used."""
        config["img_processor"].update(image_dim_out=64)
        config["img_processor"]["vision_config"] = {
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 2,
            "image_size": PICTURE, "patch_size": PATCH, "projection_dim": 64,
        }  # fmt: skip

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Of the folder's own classes."""
        tokenizer.chat_template = template_of_strings()
        return Phi3VProcessor(Phi3VImageProcessor(num_crops=4, crop_size=PICTURE), tokenizer)


FAMILY = Phi3V()
