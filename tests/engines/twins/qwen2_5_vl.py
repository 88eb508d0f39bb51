"""Qwen2.5-VL: windows in the vision part, three-part rotary positions."""

from __future__ import annotations

from pathlib import Path

from . import common, visual

MIN_PIXELS, MAX_PIXELS = 3136, 50176


def make(folder: Path) -> Path:
    """Write the twin."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor
    from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLTextConfig

    tokens = visual.tokenizer(folder, "<|vision_start|><|image_pad|><|vision_end|>")
    names = ("image_pad", "video_pad", "vision_start", "vision_end")
    ids = {name: tokens.convert_tokens_to_ids(f"<|{name}|>") for name in names}
    config = Qwen2_5_VLConfig(
        vision_config={
            "depth": 3,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_heads": 2,
            "out_hidden_size": common.HIDDEN,
            "fullatt_block_indexes": [1],
            "window_size": 56,
        },
        text_config=visual.text_config(
            Qwen2_5_VLTextConfig,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]},
        ).to_dict(),
        image_token_id=ids["image_pad"],
        video_token_id=ids["video_pad"],
        vision_start_token_id=ids["vision_start"],
        vision_end_token_id=ids["vision_end"],
        tie_word_embeddings=False,
    )
    size = {"shortest_edge": MIN_PIXELS, "longest_edge": MAX_PIXELS}
    return visual.write(
        folder,
        "Qwen2_5_VLForConditionalGeneration",
        config,
        lambda: Qwen2_5_VLProcessor(
            image_processor=Qwen2VLImageProcessor(size=size),
            tokenizer=tokens,
            video_processor=Qwen2VLVideoProcessor(size=size),
            chat_template=tokens.chat_template,
        ),
    )
