"""SmolVLM: Idefics3 with named tokens and a video processor, which needs the package num2words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.families.idefics3 import Idefics3


class SmolVLM(Idefics3):
    """At most four tiles and the whole."""

    named: ClassVar[Mapping[str, str]] = {
        "fake_image_token": "<fake_token_around_image>",
        "image_token": "<image>",
        "global_image_token": "<global-img>",
        "end_of_utterance_token": "<end_of_utterance>",
    }

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Four patches a token."""
        from transformers import SmolVLMImageProcessor, SmolVLMProcessor, SmolVLMVideoProcessor

        return SmolVLMProcessor(
            SmolVLMImageProcessor(**self.sizes),
            tokenizer,
            SmolVLMVideoProcessor(**self.sizes),
            image_seq_len=4,
            chat_template=tokenizer.chat_template,
        )


FAMILY = SmolVLM()
