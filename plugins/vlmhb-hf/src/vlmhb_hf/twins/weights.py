"""Random weights with clear winners: the best token is ahead by a gap, and answers vary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlmhb_hf.twins.family import Family

_TOWERS = ("CLIP", "Siglip")
_TOWER = re.compile(r"^(.*vision_tower\.)(embeddings|encoder|pre_layrnorm|post_layernorm)\.")


def draw(model: Any, family: Family, silent: Sequence[int]) -> None:
    """Fill a model's weights in place; norms stay as they are.

    Args:
        model: a model of transformers.
        family: says how much.
        silent: ids that are never said.
    """
    import torch

    source = torch.Generator().manual_seed(family.seed)
    head, read = model.get_output_embeddings(), model.get_input_embeddings()
    tied = head is not None and head.weight is read.weight
    spread = family.embedding if family.embedding is not None else 0.2 if tied else 1.0
    gain = family.gain if family.gain is not None else 2.0 if tied else 1.4
    with torch.no_grad():
        for module in model.modules():
            if module is not head:
                _fill(module, source, spread if module is read else min(spread, 0.5), gain)
        for name, parameter in model.named_parameters(recurse=True):
            if name.rpartition(".")[2].startswith(("position", "class_embedding", "cls_token", "image_newline")):
                parameter.normal_(0, 0.5, generator=source)
            elif (
                parameter.dim() > 1 and not parameter.any()
            ):  # a projection that is no layer: zeros would hide pictures
                parameter.normal_(0, gain / parameter.shape[-2] ** 0.5, generator=source)
        if head is not None and not tied:
            head.weight.normal_(0, 2 / head.weight.shape[1] ** 0.5, generator=source)
            head.weight[list(silent)] = 0
            if head.bias is not None:
                head.bias.zero_()
        family.finish(model)


def save(model: Any, folder: Path) -> None:
    """Write config and weights, under the names that published folders have."""
    from safetensors.torch import load_file, save_file

    model.save_pretrained(folder)
    if not any(type(module).__name__.startswith(_TOWERS) for module in model.modules()):
        return
    # This transformers writes CLIP's and SigLIP's towers without their inner level; engines know the published names.
    file = folder / "model.safetensors"
    weights = load_file(file)
    save_file(
        {_TOWER.sub(r"\1vision_model.\2.", name): value for name, value in weights.items()}, file, {"format": "pt"}
    )


def _fill(module: Any, source: Any, spread: float, gain: float) -> None:
    kind = type(module).__name__
    weight = getattr(module, "weight", None)
    if kind.endswith("Embedding") and weight is not None and weight.dim() == 2:
        weight.normal_(0, spread, generator=source)
    elif kind.endswith(("Linear", "Conv1D", "Conv2d", "Conv3d")) and weight is not None:
        inputs = weight.shape[0] if kind == "Conv1D" else weight[0].numel()
        weight.normal_(0, gain / inputs**0.5, generator=source)
        if module.bias is not None:
            module.bias.normal_(0, 0.1, generator=source)
