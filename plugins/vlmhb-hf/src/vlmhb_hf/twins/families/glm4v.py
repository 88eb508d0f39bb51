"""GLM-4V (4.1V): pictures of any size, positions of three parts over half of each head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import PATCH, PICTURE, Family
from vlmhb_hf.twins.shrink import HIDDEN, INTERMEDIATE


class Glm4v(Family):
    """Between 4 and 64 steps of two patches a picture."""

    image_text = "<|begin_of_image|><|image|><|end_of_image|>"
    tokens = ("<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>")
    named: ClassVar[Mapping[str, str]] = {"image_token": "<|image|>", "video_token": "<|video|>"}
    ids: ClassVar[Mapping[str, str]] = {
        "image_token_id": "<|image|>",
        "video_token_id": "<|video|>",
        "image_start_token_id": "<|begin_of_image|>",
        "image_end_token_id": "<|end_of_image|>",
        "video_start_token_id": "<|begin_of_video|>",
        "video_end_token_id": "<|end_of_video|>",
    }

    def shrink(self, config: dict[str, Any]) -> None:
        """The published models have attention_bias; transformers has the biases whatever it says, vLLM does not."""
        text = config["text_config"]
        text["attention_bias"] = True
        text["rope_parameters"].update(partial_rotary_factor=0.5, mrope_section=[2, 3, 3])
        config["vision_config"].update(out_hidden_size=HIDDEN, intermediate_size=INTERMEDIATE)

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Learned positions of 16 patches; pictures of other sizes take what lies between."""
        config["vision_config"].update(image_size=PICTURE, patch_size=PATCH)

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """The size is of two frames, as the family counts it."""
        from transformers import Glm4vImageProcessor, Glm4vProcessor, Glm4vVideoProcessor

        size = {"shortest_edge": 3136, "longest_edge": 50176}
        return Glm4vProcessor(
            image_processor=Glm4vImageProcessor(size=size),
            tokenizer=tokenizer,
            video_processor=Glm4vVideoProcessor(size=size),
            chat_template=tokenizer.chat_template,
        )


FAMILY = Glm4v()
