"""Pixtral in the layout of transformers: LLaVA's class with Pixtral's vision part."""

from __future__ import annotations

from typing import Any

from vlmhb_hf.twins.mistral_vision import MistralVision


class Pixtral(MistralVision):
    """Every patch is a token."""

    merge = 1

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Features of the last layer, all of them."""
        super().small_pictures(config)
        config.update(vision_feature_layer=-1, vision_feature_select_strategy="full")


FAMILY = Pixtral()
