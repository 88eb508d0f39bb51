"""Falcon: one key and value head for all queries, attention and MLP side by side."""

from __future__ import annotations

from pathlib import Path

from . import common


def make(folder: Path) -> Path:
    """Write the twin."""
    from transformers import FalconConfig

    config = FalconConfig(
        hidden_size=common.HIDDEN,
        num_hidden_layers=common.LAYERS,
        num_attention_heads=common.HEADS,
        multi_query=True,
        new_decoder_architecture=False,
        parallel_attn=True,
        bias=False,
        alibi=False,
        max_position_embeddings=common.CONTEXT,
        tie_word_embeddings=False,
        **common.IDS,
    )
    return common.write(folder, "FalconForCausalLM", config, seed=1)
