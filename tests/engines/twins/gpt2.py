"""GPT-2: learned positions, one embedding for reading and writing."""

from __future__ import annotations

from pathlib import Path

from . import common


def make(folder: Path) -> Path:
    """Write the twin."""
    from transformers import GPT2Config

    config = GPT2Config(
        n_embd=common.HIDDEN,
        n_layer=common.LAYERS,
        n_head=common.HEADS,
        n_positions=common.CONTEXT,
        tie_word_embeddings=True,
        **common.IDS,
    )
    return common.write(folder, "GPT2LMHeadModel", config, embedding=0.2, gain=2.0)
