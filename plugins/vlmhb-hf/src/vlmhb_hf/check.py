"""Whether transformers could load a model: everything that loading does, but on a model without memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from transformers import initialization
from transformers.quantizers.auto import get_hf_quantizer
from vlmhb import ModelCheck, ModelSpec, Support
from vlmhb.errors import ModelLoadError
from vlmhb.prompting import ModelFolder, PromptBuilder, open_model_folder
from vlmhb.prompting.examine import model_facts, obstacle, refused, weight_shapes

from vlmhb_hf.loading import (
    LOAD_ERRORS,
    auto_class,
    check_weights,
    default_attention,
    device_map,
    first_lines,
    read_config,
)


class _Skeleton(NamedTuple):
    """What was found without weights."""

    config: Any
    builder: PromptBuilder
    parameters: int


def check_model(spec: ModelSpec) -> ModelCheck:
    """The verdict of the one implementation that there is.

    Args:
        spec: the model's folder, and what it is to be loaded with.
    """
    folder = open_model_folder(spec)
    try:
        skeleton = _skeleton(folder, spec)
    except (ModelLoadError, *LOAD_ERRORS) as error:
        reason = str(error) if isinstance(error, ModelLoadError) else f"{type(error).__name__}: {first_lines(error)}"
        stop = obstacle(error, reason, folder, spec)
        return ModelCheck(supports=(refused("transformers", stop),), auto="transformers")
    facts, notes = model_facts(skeleton.builder, skeleton.config, skeleton.parameters)
    support = Support(implementation="transformers", verdict="supported", notes=tuple(notes))
    return ModelCheck(supports=(support,), auto="transformers", facts=facts)


def _skeleton(folder: ModelFolder, spec: ModelSpec) -> _Skeleton:
    """Go the way of loading: config, processor, quantizer, class, attention, names and shapes of the weights.

    The model is made on the device ``meta``. Of quantized weights the shapes are not held against it.

    Raises:
        ModelLoadError: the folder's processor or config cannot be used.
    """
    config = read_config(folder, spec)
    builder = PromptBuilder(spec, folder)
    auto = auto_class(config, spec, takes_images=builder.takes_images)
    quantizer, config, _ = get_hf_quantizer(config, None, device_map(spec.device), True, {})
    attention = spec.options.get("attn_implementation") or default_attention(auto, config)
    with torch.device("meta"), initialization.meta_device_safe_creation_ops():
        model = auto.from_config(
            config, attn_implementation=attention, trust_remote_code=spec.trust_remote_code, dtype=torch.float32
        )
    shapes = dict(weight_shapes(folder))
    if shapes and quantizer is None:
        _, report = type(model).from_pretrained(
            None,
            config=config,
            state_dict=shapes,
            device_map={"": "meta"},
            dtype=torch.float32,
            attn_implementation=attention,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
        check_weights(folder.path.name, report)
    return _Skeleton(config, builder, sum(parameter.numel() for parameter in model.parameters()))
