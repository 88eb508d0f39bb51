"""Qwen2.5-VL: windows in the vision part."""

from __future__ import annotations

from typing import Any

from vlmhb_hf.twins.qwen_vl import QwenVL


class Qwen25VL(QwenVL):
    """Windows of two steps a side, so that small pictures have several."""

    processor_class = "Qwen2_5_VLProcessor"

    def shrink(self, config: dict[str, Any]) -> None:
        """The layer in the middle sees everything."""
        super().shrink(config)
        vision = config["vision_config"]
        vision.update(window_size=4 * vision["patch_size"], fullatt_block_indexes=[1])


FAMILY = Qwen25VL()
