"""A tiny Qwen2-VL with random weights, in the layout of a published checkpoint.

Every engine that loads Qwen2-VL loads it, unchanged. It is for trying an engine out and for tests: it tells
nothing about accuracy. The same seed gives the same bytes on every machine (see :mod:`.weights`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

VERSION = "1"
"""Raised whenever the bytes of the default model change; part of its folder's name in the cache."""

DEFAULT_SEED = 20

FILES = (
    "chat_template.json",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "model.safetensors",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)
"""What :func:`make` writes."""


def make(
    folder: str | Path,
    *,
    seed: int = DEFAULT_SEED,
    context_length: int = 2048,
    generation_config: Mapping[str, Any] | None = None,
) -> Path:
    """Write the model (5 MB) and return its folder.

    Greedy answers depend on the prompt and on the image; some end by themselves, others run until they are cut.
    An image takes up to 64 tokens of the prompt.

    Args:
        folder: made if it is not there; files of the same names are overwritten.
        seed: of the weights; the tokenizer is always the same.
        context_length: longest prompt and answer together, in tokens.
        generation_config: entries put into ``generation_config.json`` over the usual ones (token ids, greedy),
            for example ``{"do_sample": True, "temperature": 0.01, "repetition_penalty": 1.05}``.

    Raises:
        OSError: the folder cannot be written.
    """
    from vlmhb_demo.tiny_model import config, tokenizer, weights

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    words = tokenizer.build()
    words.write(target, context_length)
    config.write(target, words, context_length, generation_config or {})
    weights.write(target, words, seed)
    return target
