"""MiniCPM-V 2.6's config: Qwen2's, and that of a SigLIP vision part."""

from __future__ import annotations

from typing import Any

from transformers import Qwen2Config, SiglipVisionConfig


class MiniCPMVConfig(Qwen2Config):
    """``query_num`` is how many tokens a slice of a picture becomes."""

    model_type = "minicpmv"

    def __init__(
        self,
        vision_config: dict[str, Any] | SiglipVisionConfig | None = None,
        query_num: int = 64,
        image_size: int = 448,
        drop_vision_last_layer: bool = False,
        version: float | str = 2.6,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        given = {} if vision_config is None else vision_config
        self.vision_config = given if isinstance(given, SiglipVisionConfig) else SiglipVisionConfig(**given)
        self.query_num = query_num
        self.image_size = image_size
        self.drop_vision_last_layer = drop_vision_last_layer
        self.version = version


MiniCPMVConfig.register_for_auto_class()
