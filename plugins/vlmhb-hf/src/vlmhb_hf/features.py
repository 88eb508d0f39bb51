"""What a model's vision encoder makes of pictures, computed once for each page and handed to every row about it.

This is what can still be shared where the beginnings of prompts cannot: layers that keep more than keys and values,
windows shorter than a prompt, an encoder before the decoder.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from transformers import GenerationMixin
from transformers.modeling_outputs import BaseModelOutput


def code_obstacle(model: Any) -> str:
    """Why it is not known what the model's own code does with its inputs; empty where that is transformers' code."""
    kind = type(model)
    if getattr(kind, "generate", None) is not GenerationMixin.generate:
        return f"{kind.__name__} generates in its own way"
    return f"{kind.__name__} is the folder's own code" if model.is_remote_code() else ""


def features_obstacle(model: Any) -> str:
    """Why pictures cannot be encoded apart from the prompts; empty where they can."""
    kind = type(model)
    if obstacle := code_obstacle(model):
        return obstacle
    if _encodes_only_pictures(model):
        return ""
    takes = model._supports_mm_encoder_outputs() or (
        kind._maybe_prepare_encoder_kwargs_for_generation
        is not GenerationMixin._maybe_prepare_encoder_kwargs_for_generation
    )
    if not takes or not hasattr(model.base_model, "get_image_features"):
        return f"{kind.__name__} takes pictures only as pixels"
    return ""


@torch.no_grad()
def encode_once(model: Any, inputs: dict[str, Any], page: Sequence[int], images: Sequence[int]) -> dict[str, Any]:
    """Replace the pixels of pages by what the vision encoder makes of them, repeated for each row.

    Args:
        model: one without a :func:`features_obstacle`.
        inputs: tokens of whole rows, and the processor's other tensors for pages.
        page: for each row, the place of its page.
        images: for each page, how many images it has.

    Returns:
        Inputs of ``generate`` for the rows.

    Raises:
        ValueError: the features are not as many as the places for them in the tokens.
    """
    if _encodes_only_pictures(model):
        seen = model.get_encoder()(pixel_values=inputs["pixel_values"], return_dict=True).last_hidden_state
        rest = {name: value for name, value in inputs.items() if name != "pixel_values"}
        return {**rest, "encoder_outputs": BaseModelOutput(last_hidden_state=seen[list(page)])}
    names = set(inspect.signature(model.base_model.get_image_features).parameters)
    output = model._prepare_multimodal_encoder_kwargs_for_generation(dict(inputs))["mm_encoder_outputs"]["image"]
    tokens = [0] * len(images)
    for place, row in zip(page, inputs["input_ids"], strict=True):
        tokens[place] = int((row == model.config.image_token_id).sum())
    places = _of_rows(page, tokens, inputs["input_ids"].device)
    taken = {"pooler_output": _take(output.pooler_output, places, sum(tokens))}
    if (layers := output.get("deepstack_features")) is not None:
        taken["deepstack_features"] = [_take(layer, places, sum(tokens)) for layer in layers]
    kept = {name: value for name, value in inputs.items() if name not in names}
    # Sizes of images decide about positions; pixels and their masks have done their work.
    of_images = _of_rows(page, images, inputs["input_ids"].device)
    sizes = {name: inputs[name][of_images] for name in names & inputs.keys() if _are_sizes(inputs[name], sum(images))}
    return {**kept, **sizes, "mm_encoder_outputs": {"image": type(output)(**taken)}}


def _encodes_only_pictures(model: Any) -> bool:
    """Whether it is a vision encoder with a text decoder."""
    return bool(model.config.is_encoder_decoder and model.main_input_name == "pixel_values")


def _of_rows(page: Sequence[int], counts: Sequence[int], device: Any) -> torch.Tensor:
    """Places of each row's things, where a page has so many of them and they lie one page after the other."""
    starts = [0, *accumulate(counts)]
    return torch.tensor([index for place in page for index in range(starts[place], starts[place + 1])], device=device)


def _take(features: Any, places: torch.Tensor, total: int) -> Any:
    """Features by place, in the container that they came in: a list of (tokens, width), or (1, tokens, width)."""
    flat = torch.cat([feature.reshape(-1, feature.shape[-1]) for feature in features])
    if len(flat) != total:
        raise ValueError(f"the vision encoder made {len(flat)} features for {total} places in the prompts")
    taken = flat[places.to(flat.device)]
    return taken.unsqueeze(0) if isinstance(features, torch.Tensor) else [taken]


def _are_sizes(value: Any, images: int) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == 2 and len(value) == images
