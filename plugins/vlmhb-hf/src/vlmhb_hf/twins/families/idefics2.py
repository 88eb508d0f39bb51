"""Idefics2: a perceiver makes a fixed number of tokens of each picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import Family, siglip_sized
from vlmhb_hf.twins.shrink import HEAD_SIZE, HIDDEN


class Idefics2(Family):
    """8 tokens a picture."""

    tokens = ("<fake_token_around_image>", "<image>", "<end_of_utterance>")
    ids: ClassVar[Mapping[str, str]] = {"image_token_id": "<image>"}

    def shrink(self, config: dict[str, Any]) -> None:
        """The perceiver is as wide as the language part."""
        config["perceiver_config"].update(
            hidden_size=HIDDEN,
            resampler_depth=2,
            resampler_n_heads=4,
            resampler_head_dim=HEAD_SIZE,
            num_key_value_heads=2,
        )

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Squares of 56 pixels at most."""
        siglip_sized(config["vision_config"])
        config["perceiver_config"]["resampler_n_latents"] = 8

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Pictures in one piece."""
        from transformers import Idefics2ImageProcessor, Idefics2Processor

        return Idefics2Processor(
            Idefics2ImageProcessor(do_image_splitting=False, size={"shortest_edge": 28, "longest_edge": 56}),
            tokenizer,
            image_seq_len=8,
            chat_template=tokenizer.chat_template,
        )


FAMILY = Idefics2()
