"""BLOOM: ALiBi positions, one embedding for reading and writing."""

from __future__ import annotations

from pathlib import Path

from . import common


def make(folder: Path) -> Path:
    """Write the twin."""
    from transformers import BloomConfig

    config = BloomConfig(
        hidden_size=common.HIDDEN,
        n_layer=common.LAYERS,
        n_head=common.HEADS,
        seq_length=common.CONTEXT,
        tie_word_embeddings=True,
        **common.IDS,
    )
    return common.write(folder, "BloomForCausalLM", config, embedding=0.2, gain=4.0, seed=8)
