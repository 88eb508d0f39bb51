"""The JSON files that describe the model to an engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlmhb_demo.tiny_model import jsonfile, shape
from vlmhb_demo.tiny_model.tokenizer import END_OF_TEXT, END_OF_TURN, Tokenizer

CLIP_MEAN = [0.48145466, 0.4578275, 0.40821073]
CLIP_STD = [0.26862954, 0.26130258, 0.27577711]
"""Mean and spread of a colour channel, as Qwen2-VL takes them over from CLIP (arXiv:2103.00020)."""


def write(folder: Path, words: Tokenizer, context_length: int, generation: Mapping[str, Any]) -> None:
    """Write ``config.json``, ``preprocessor_config.json`` and ``generation_config.json``."""
    jsonfile.write(folder / "config.json", _model(words, context_length))
    jsonfile.write(folder / "preprocessor_config.json", _images())
    usual = {
        "bos_token_id": words.special[END_OF_TEXT],
        "do_sample": False,
        "eos_token_id": [words.special[END_OF_TURN], words.special[END_OF_TEXT]],
        "pad_token_id": words.special[END_OF_TEXT],
    }
    jsonfile.write(folder / "generation_config.json", {**usual, **generation})


def _model(words: Tokenizer, context_length: int) -> dict[str, Any]:
    special = words.special
    return {
        "architectures": ["Qwen2VLForConditionalGeneration"],
        "attention_dropout": 0.0,
        "bos_token_id": special[END_OF_TEXT],
        "eos_token_id": special[END_OF_TURN],
        "hidden_act": "silu",
        "hidden_size": shape.HIDDEN,
        "image_token_id": special["<|image_pad|>"],
        "initializer_range": 0.02,
        "intermediate_size": shape.INTERMEDIATE,
        "max_position_embeddings": context_length,
        "max_window_layers": shape.LAYERS,
        "model_type": "qwen2_vl",
        "num_attention_heads": shape.HEADS,
        "num_hidden_layers": shape.LAYERS,
        "num_key_value_heads": shape.KV_HEADS,
        "pad_token_id": special[END_OF_TEXT],
        "rms_norm_eps": 1e-06,
        "rope_scaling": {"type": "mrope", "mrope_section": list(shape.ROPE_SECTIONS)},
        "rope_theta": 10000.0,
        "sliding_window": context_length,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "use_cache": True,
        "use_sliding_window": False,
        "video_token_id": special["<|video_pad|>"],
        "vision_config": _vision(),
        "vision_end_token_id": special["<|vision_end|>"],
        "vision_start_token_id": special["<|vision_start|>"],
        "vision_token_id": special["<|vision_pad|>"],
        "vocab_size": words.size,
    }


def _vision() -> dict[str, Any]:
    # in_chans is the published name; newer engines read in_channels. hidden_size is the language model's.
    return {
        "depth": shape.VISION_DEPTH,
        "embed_dim": shape.VISION_WIDTH,
        "hidden_act": "quick_gelu",
        "hidden_size": shape.HIDDEN,
        "in_channels": shape.CHANNELS,
        "in_chans": shape.CHANNELS,
        "mlp_ratio": shape.VISION_MLP_RATIO,
        "num_heads": shape.VISION_HEADS,
        "patch_size": shape.PATCH,
        "spatial_merge_size": shape.MERGE,
        "spatial_patch_size": shape.PATCH,
        "temporal_patch_size": shape.TEMPORAL_PATCH,
    }


def _images() -> dict[str, Any]:
    return {
        "image_mean": CLIP_MEAN,
        "image_processor_type": "Qwen2VLImageProcessor",
        "image_std": CLIP_STD,
        "max_pixels": shape.MAX_PIXELS,
        "merge_size": shape.MERGE,
        "min_pixels": shape.MIN_PIXELS,
        "patch_size": shape.PATCH,
        "processor_class": "Qwen2VLProcessor",
        "size": {"longest_edge": shape.MAX_PIXELS, "shortest_edge": shape.MIN_PIXELS},
        "temporal_patch_size": shape.TEMPORAL_PATCH,
    }
