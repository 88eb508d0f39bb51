"""Mistral: LLaMA's layout with attention to a sliding window of 16 tokens, shorter than every prompt."""

from __future__ import annotations

from pathlib import Path

from . import common


def make(folder: Path) -> Path:
    """Write the twin."""
    from transformers import MistralConfig

    config = MistralConfig(
        hidden_size=common.HIDDEN,
        intermediate_size=common.INTERMEDIATE,
        num_hidden_layers=common.LAYERS,
        num_attention_heads=common.HEADS,
        num_key_value_heads=common.KV_HEADS,
        head_dim=common.HIDDEN // common.HEADS,
        max_position_embeddings=common.CONTEXT,
        sliding_window=16,
        tie_word_embeddings=False,
        **common.IDS,
    )
    return common.write(folder, "MistralForCausalLM", config, seed=13)
