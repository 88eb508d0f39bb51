"""Qwen3-VL: patches of 16 pixels, features of several vision layers fed into the language part."""

from __future__ import annotations

from pathlib import Path

from . import common, visual

MIN_PIXELS, MAX_PIXELS = 4096, 65536


def make(folder: Path) -> Path:
    """Write the twin."""
    from transformers import Qwen2VLImageProcessor, Qwen3VLConfig, Qwen3VLProcessor, Qwen3VLVideoProcessor
    from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLTextConfig

    tokens = visual.tokenizer(folder, "<|vision_start|><|image_pad|><|vision_end|>")
    names = ("image_pad", "video_pad", "vision_start", "vision_end")
    ids = {name: tokens.convert_tokens_to_ids(f"<|{name}|>") for name in names}
    rope = {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "mrope_section": [6, 5, 5],
        "mrope_interleaved": True,
    }
    config = Qwen3VLConfig(
        vision_config={
            "depth": 3,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_heads": 2,
            "out_hidden_size": common.HIDDEN,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [1, 2],
        },
        text_config=visual.text_config(Qwen3VLTextConfig, rope_parameters=rope).to_dict(),
        image_token_id=ids["image_pad"],
        video_token_id=ids["video_pad"],
        vision_start_token_id=ids["vision_start"],
        vision_end_token_id=ids["vision_end"],
        tie_word_embeddings=False,
    )
    size = {"shortest_edge": MIN_PIXELS, "longest_edge": MAX_PIXELS}
    return visual.write(
        folder,
        "Qwen3VLForConditionalGeneration",
        config,
        lambda: Qwen3VLProcessor(
            image_processor=Qwen2VLImageProcessor(size=size, patch_size=16),
            tokenizer=tokens,
            video_processor=Qwen3VLVideoProcessor(size=size),
            chat_template=tokens.chat_template,
        ),
    )
