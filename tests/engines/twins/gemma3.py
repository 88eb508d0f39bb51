"""Gemma 3: the tokens of a picture see each other, so the side arrays of a batch matter."""

from __future__ import annotations

from pathlib import Path

from . import common, visual

NAMED = {"image_token": "<image_soft_token>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"}


def make(folder: Path) -> Path:
    """Write the twin."""
    from transformers import Gemma3Config, Gemma3ImageProcessor, Gemma3Processor, Gemma3TextConfig, SiglipVisionConfig

    tokens = visual.tokenizer(folder, NAMED["boi_token"], named=NAMED)
    ids = {name: tokens.convert_tokens_to_ids(text) for name, text in NAMED.items()}
    config = Gemma3Config(
        vision_config=SiglipVisionConfig(**visual.VISION, vision_use_head=False).to_dict(),
        text_config=visual.text_config(
            Gemma3TextConfig, query_pre_attn_scalar=32, sliding_window=64, tie_word_embeddings=True
        ).to_dict(),
        image_token_index=ids["image_token"],
        boi_token_index=ids["boi_token"],
        eoi_token_index=ids["eoi_token"],
        mm_tokens_per_image=4,
    )
    size = {"height": 56, "width": 56}
    visual.write(
        folder,
        "Gemma3ForConditionalGeneration",
        config,
        lambda: Gemma3Processor(
            Gemma3ImageProcessor(size=size), tokens, image_seq_length=4, chat_template=tokens.chat_template
        ),
        embedding=1 / common.HIDDEN**0.5,
        gain=2.0,
    )
    _raise_norms(folder / "model.safetensors")
    return folder


def _raise_norms(file: Path) -> None:
    """Its norms multiply by 1 + weight, and those after each block damp it: with 0 the embedding wins every step."""
    from safetensors.torch import load_file, save_file

    weights = load_file(file)
    for name, values in weights.items():
        if name.endswith(("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")):
            values.fill_(1.0)
        elif name.endswith(("q_norm.weight", "k_norm.weight")):
            values.fill_(1.5)
    save_file(weights, file, metadata={"format": "pt"})
