"""Qwen3-VL: features of several vision layers are fed into the language part."""

from __future__ import annotations

from typing import Any

from vlmhb_hf.twins.qwen_vl import QwenVL


class Qwen3VL(QwenVL):
    """Positions interleaved; learned positions of the vision part as a square."""

    processor_class = "Qwen3VLProcessor"
    video_class = "Qwen3VLVideoProcessor"

    def shrink(self, config: dict[str, Any]) -> None:
        """Two of the three vision layers feed the language part."""
        rope = config["text_config"]["rope_parameters"]
        rope.update(mrope_section=[6, 5, 5], mrope_interleaved=True)
        super().shrink(config)
        config["vision_config"].update(num_position_embeddings=64, deepstack_visual_indexes=[1, 2])


FAMILY = Qwen3VL()
