"""``model_impl`` native means SGLang's own code; SGLang itself takes that of transformers where it has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vlmhb.errors import ModelLoadError


def no_own_code(architectures: Sequence[str]) -> ModelLoadError:
    """What there is to say about a model whose architecture SGLang's registry lacks."""
    names = ", ".join(architectures) or "no architecture"
    return ModelLoadError(f"SGLang has no code of its own for {names}; model_impl native takes that of transformers.")


def refuse() -> None:
    """Let loading fail in this process where SGLang would take transformers' code without a word."""
    from sglang.srt.model_loader import utils

    def resolve(_: Any, architectures: Sequence[str]) -> None:
        raise no_own_code(architectures)

    utils.resolve_transformers_arch = resolve
