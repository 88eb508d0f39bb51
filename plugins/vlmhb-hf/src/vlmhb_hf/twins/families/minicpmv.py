"""MiniCPM-V 2.6: SigLIP over slices of a picture, a resampler, Qwen2; by code that the folder brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.code.minicpmv.image_processing_minicpmv import MiniCPMVImageProcessor
from vlmhb_hf.twins.code.minicpmv.processing_minicpmv import MiniCPMVProcessor
from vlmhb_hf.twins.family import PATCH, PICTURE, Family
from vlmhb_hf.twins.tokens import template_of_strings

_QUERIES = 4


class MiniCPMV(Family):
    """Four tokens a slice, slices of about 56 x 56 pixels, at most four of them."""

    code = "minicpmv"
    auto_map: ClassVar[Mapping[str, str]] = {
        "AutoConfig": "configuration_minicpm.MiniCPMVConfig",
        "AutoModelForCausalLM": "modeling_minicpmv.MiniCPMV",
    }
    named: ClassVar[Mapping[str, str]] = {
        "im_start": "<image>",
        "im_end": "</image>",
        "slice_start": "<slice>",
        "slice_end": "</slice>",
        "im_id_start": "<image_id>",
        "im_id_end": "</image_id>",
        "unk": "<unk>",
    }

    def shrink(self, config: dict[str, Any]) -> None:
        """Few tokens a slice."""
        config["query_num"] = _QUERIES

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Positions in a square of 8 x 8 patches."""
        config["vision_config"].update(image_size=2 * PICTURE, patch_size=PATCH)

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Of the folder's own classes."""
        tokenizer.bos_token, tokenizer.unk_token = "<|im_start|>", "<unk>"
        tokenizer.chat_template = template_of_strings()
        pictures = MiniCPMVImageProcessor(max_slice_nums=4, scale_resolution=PICTURE, image_feature_size=_QUERIES)
        return MiniCPMVProcessor(pictures, tokenizer)


FAMILY = MiniCPMV()
