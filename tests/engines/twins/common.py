"""What the twins share: the tokenizer, sizes, and weights with clear winners."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HIDDEN = 128
LAYERS = 4
HEADS = 4
KV_HEADS = 2
INTERMEDIATE = 256
CONTEXT = 512
VOCABULARY = 704
END_OF_TURN = 658
PADDING = 656

IDS = {"vocab_size": VOCABULARY, "eos_token_id": END_OF_TURN, "pad_token_id": PADDING, "bos_token_id": PADDING}
"""Entries that every config of a twin has."""


def write(
    folder: Path, model_class: str, config: Any, *, embedding: float = 1.0, gain: float = 1.4, seed: int = 11
) -> Path:
    """Write a twin's folder: the tokenizer and random weights of ``transformers.<model_class>``.

    Args:
        folder: made if it is not there.
        model_class: the class's name in transformers.
        config: its config.
        embedding: standard deviation of the embeddings; below 1 for models that read and write with the same ones,
            which otherwise repeat a token for ever.
        gain: of the linear layers: standard deviation times the root of the inputs.
        seed: of the weights.
    """
    import torch
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder)
    model = getattr(transformers, model_class)(config).eval()
    draw = torch.Generator().manual_seed(seed)
    tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    with torch.no_grad():
        for module in model.modules():
            _fill(module, draw, embedding, gain)
        if not tied:
            head = model.get_output_embeddings().weight
            head.normal_(0, 2 / head.shape[1] ** 0.5, generator=draw)
            head[PADDING:VOCABULARY] = 0
            head[END_OF_TURN].normal_(0, 2 / head.shape[1] ** 0.5, generator=draw)
    model.save_pretrained(folder)
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": END_OF_TURN, "pad_token_id": PADDING}), encoding="utf-8"
    )
    return folder


def write_tokenizer(folder: Path) -> None:
    """Write the demo model's tokenizer, under the class that is nobody's own."""
    from vlmhb_demo.tiny_model import tokenizer

    tokenizer.build().write(folder, CONTEXT)
    file = folder / "tokenizer_config.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**settings, "tokenizer_class": "PreTrainedTokenizerFast"}), encoding="utf-8")


def _fill(module: Any, draw: Any, embedding: float, gain: float) -> None:
    """Draw one layer's weights; norms stay as they are."""
    kind = type(module).__name__
    if kind == "Embedding":
        module.weight.normal_(0, embedding, generator=draw)
    elif kind.endswith("Linear") or kind == "Conv1D":
        inputs = module.weight.shape[0 if kind == "Conv1D" else 1]
        module.weight.normal_(0, gain / inputs**0.5, generator=draw)
        if module.bias is not None:
            module.bias.normal_(0, 0.1, generator=draw)
