"""LLaVA-1.5: CLIP, a projector, LLaMA; every picture becomes 16 tokens."""

from __future__ import annotations

from pathlib import Path

from . import visual

IMAGE = "<image>"


def make(folder: Path) -> Path:
    """Write the twin."""
    from transformers import CLIPImageProcessor, CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaProcessor

    tokens = visual.tokenizer(folder, IMAGE + "\\n", [IMAGE])
    size = visual.VISION["image_size"]
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**visual.VISION),
        text_config=visual.text_config(LlamaConfig),
        image_token_index=tokens.convert_tokens_to_ids(IMAGE),
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
        tie_word_embeddings=False,
    )
    return visual.write(
        folder,
        "LlavaForConditionalGeneration",
        config,
        lambda: LlavaProcessor(
            CLIPImageProcessor(size={"shortest_edge": size}, crop_size={"height": size, "width": size}),
            tokens,
            patch_size=14,
            vision_feature_select_strategy="default",
            image_token=IMAGE,
            num_additional_image_tokens=1,
            chat_template=tokens.chat_template,
        ),
    )
