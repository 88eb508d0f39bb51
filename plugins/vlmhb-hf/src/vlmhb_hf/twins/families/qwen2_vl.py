"""Qwen2-VL."""

from __future__ import annotations

from vlmhb_hf.twins.qwen_vl import QwenVL


class Qwen2VL(QwenVL):
    """As the family's base."""

    processor_class = "Qwen2VLProcessor"


FAMILY = Qwen2VL()
