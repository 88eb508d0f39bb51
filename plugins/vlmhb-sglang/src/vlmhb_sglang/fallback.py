"""``model_impl`` native means SGLang's own code; SGLang itself takes that of transformers where it has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vlmhb import ModelSpec
from vlmhb.errors import ModelLoadError

if TYPE_CHECKING:
    from vlmhb.prompting import ModelFolder


def has_own_code(architectures: Sequence[str]) -> bool:
    """Whether SGLang's registry knows one of a model's architectures; imports SGLang's models."""
    from sglang.srt.models.registry import ModelRegistry

    return any(ModelRegistry.is_arch_supported(name) for name in architectures)


def no_own_code(architectures: Sequence[str]) -> ModelLoadError:
    """What there is to say about a model whose architecture SGLang's registry lacks."""
    names = ", ".join(architectures) or "no architecture"
    return ModelLoadError(f"SGLang has no code of its own for {names}; model_impl native takes that of transformers.")


def reason_of_failure(spec: ModelSpec, folder: ModelFolder, told: str) -> str:
    """Why a model was not loaded: that there is no code for it comes before whatever failed for want of it.

    Args:
        spec: what was to be loaded.
        folder: its folder.
        told: the first error, of whichever of SGLang's processes came to it first.

    Returns:
        The reason, without a full stop.
    """
    architectures = folder.config.get("architectures") or ()
    if spec.model_impl == "native" and not has_own_code(architectures):
        told = str(no_own_code(architectures))
    return told.rstrip(".")


def refuse() -> None:
    """Let loading fail in this process where SGLang would take transformers' code without a word."""
    from sglang.srt.model_loader import utils

    def resolve(_: Any, architectures: Sequence[str]) -> None:
        raise no_own_code(architectures)

    utils.resolve_transformers_arch = resolve
