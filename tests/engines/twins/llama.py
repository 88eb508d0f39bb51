"""LLaMA: grouped queries, rotary positions, untied."""

from __future__ import annotations

from pathlib import Path

from . import common


def make(folder: Path) -> Path:
    """Write the twin."""
    from transformers import LlamaConfig

    config = LlamaConfig(
        hidden_size=common.HIDDEN,
        intermediate_size=common.INTERMEDIATE,
        num_hidden_layers=common.LAYERS,
        num_attention_heads=common.HEADS,
        num_key_value_heads=common.KV_HEADS,
        max_position_embeddings=common.CONTEXT,
        tie_word_embeddings=False,
        **common.IDS,
    )
    return common.write(folder, "LlamaForCausalLM", config)
