"""Loading the torch model: class, dtype, device, attention; and plain words when that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    GenerationConfig,
    PreTrainedConfig,
)
from transformers.utils import logging as transformers_logging
from vlmhb import ModelSpec
from vlmhb.errors import ModelLoadError
from vlmhb.prompting import ModelFolder

LOAD_ERRORS = (OSError, ValueError, ImportError, RuntimeError, KeyError, AttributeError, TypeError, SafetensorError)
_PARTS = (AutoModel, AutoModelForCausalLM)
"""What makes the parts of a model that is put together from others."""
_STRUCTURAL = ("bos_token_id", "pad_token_id", "decoder_start_token_id")
"""Settings of a generation config that belong to the architecture and do not choose tokens."""


class LoadedModel(NamedTuple):
    """A torch model ready to generate, and what was decided on the way."""

    model: Any
    facts: dict[str, Any]


def load_torch_model(folder: ModelFolder, spec: ModelSpec, *, takes_images: bool) -> LoadedModel:
    """Load the weights.

    Args:
        folder: the model's folder.
        spec: dtype, device, remote code and the option ``attn_implementation``.
        takes_images: whether the folder has a processor for images.

    Raises:
        ModelLoadError: says in plain words what is wrong with the folder or the wish.
    """
    name = folder.path.name
    config = read_config(folder, spec)
    auto = auto_class(config, spec, takes_images=takes_images)
    wanted = spec.options.get("attn_implementation")
    attention = wanted or default_attention(auto, config)
    try:
        with _no_progress_bars():
            model, report = auto.from_pretrained(
                str(folder.path),
                config=config,
                dtype="auto" if spec.dtype == "auto" else getattr(torch, spec.dtype),
                attn_implementation=attention,
                device_map=device_map(spec.device),
                trust_remote_code=spec.trust_remote_code,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # check_weights refuses them in words
            )
    except torch.OutOfMemoryError as error:
        raise ModelLoadError(f"{name} does not fit into the memory of {spec.device}: {error}") from error
    except LOAD_ERRORS as error:
        with_what = f" with attn_implementation {wanted}" if wanted is not None else ""
        raise ModelLoadError(f"{name} cannot be loaded{with_what}: {first_lines(error)}") from error
    check_weights(name, report)
    used = attention_of(model)
    if wanted is not None and set(used.values()) != {wanted}:
        raise ModelLoadError(f"{name} cannot run with attn_implementation {wanted} alone; it would use {used}.")
    model.eval()
    _neutralise(model)
    facts = {
        "class": type(model).__name__,
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": str(model.device),
        "attention": used,
        "unused_weights": sorted(report["unexpected_keys"])[:20],
    }
    if hasattr(model, "hf_device_map"):
        facts["device_map"] = {part: str(device) for part, device in model.hf_device_map.items()}
    return LoadedModel(model, facts)


def attention_of(model: Any) -> dict[str, str]:
    """The attention implementation that each part of a loaded model uses, by the part's model type."""
    used: dict[str, str] = {}
    for module in model.modules():
        config = getattr(module, "config", None)
        implementation = getattr(config, "_attn_implementation", None)
        if implementation is not None:
            used[str(getattr(config, "model_type", type(module).__name__))] = str(implementation)
    return used


def read_config(folder: ModelFolder, spec: ModelSpec) -> Any:
    """The model's config.

    Raises:
        ModelLoadError: its architecture is unknown, or it is made by the folder's own code, which the spec forbids.
    """
    try:
        return AutoConfig.from_pretrained(str(folder.path), trust_remote_code=spec.trust_remote_code)
    except LOAD_ERRORS as error:
        if "auto_map" in folder.config and not spec.trust_remote_code:
            raise ModelLoadError(
                f"{folder.path.name} brings its own Python code, which is not run unless you say so: "
                "set trust_remote_code to true if you trust it."
            ) from error
        raise ModelLoadError(
            f"{folder.path.name}: the installed transformers does not know the architecture "
            f"{folder.model_type or '(no model_type in config.json)'!r}: {first_lines(error)}"
        ) from error


def auto_class(config: Any, spec: ModelSpec, *, takes_images: bool) -> Any:
    """The class of transformers that picks the model's class by its config."""
    if not takes_images:
        return AutoModelForCausalLM
    remote = (getattr(config, "auto_map", None) or {}) if spec.trust_remote_code else {}
    known = type(config) in AutoModelForImageTextToText._model_mapping or "AutoModelForImageTextToText" in remote
    return AutoModelForImageTextToText if known else AutoModelForCausalLM


def default_attention(auto: Any, config: Any) -> str | None:
    """``sdpa`` where the class has it; a class from remote code is asked to say so itself.

    None, which lets transformers choose for each part, where a model put together from others has parts without it.
    """
    if not _has_sdpa(auto, config):
        return "eager"
    parts = [part for part in vars(config).values() if isinstance(part, PreTrainedConfig)]
    return "sdpa" if all(_has_sdpa(kind, part) for kind in _PARTS for part in parts) else None


def _has_sdpa(auto: Any, config: Any) -> bool:
    known = auto._model_mapping.get(type(config), ())
    classes = known if isinstance(known, tuple | list) else (known,)
    return all(model_class._supports_sdpa for model_class in classes)


def device_map(device: str) -> Any:
    """Where transformers puts the weights, by the spec's device."""
    if device == "auto":
        return "auto" if torch.cuda.is_available() else {"": "cpu"}
    return {"": device}


def check_weights(name: str, report: dict[str, Any]) -> None:
    """Refuse a model whose weights would be random in part.

    Args:
        name: of the model.
        report: what loading it reported.

    Raises:
        ModelLoadError: weights are missing, or of another size.
    """
    if report["mismatched_keys"]:
        weight, found, wanted = sorted(report["mismatched_keys"])[0]
        raise ModelLoadError(
            f"{name} holds {len(report['mismatched_keys'])} weights of other sizes than its config says: {weight} is "
            f"{tuple(found)} and should be {tuple(wanted)}."
        )
    missing = sorted(report["missing_keys"])
    if missing:
        listed = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise ModelLoadError(
            f"{name} lacks {len(missing)} of the weights that its architecture needs ({listed}); "
            "they would be random. Is the download complete?"
        )


def _neutralise(model: Any) -> None:
    """Forget what the folder's generation_config.json says about choosing tokens; requests alone decide."""
    own = getattr(model, "generation_config", None)  # a folder's own class may have none
    kept = {name: getattr(own, name, None) for name in _STRUCTURAL}
    model.generation_config = GenerationConfig(**kept)


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def first_lines(error: BaseException, count: int = 3) -> str:
    """The beginning of an exception's message, on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:count]) or type(error).__name__
