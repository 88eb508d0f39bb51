"""Hugging Face transformers as a vlmhb backend. Importing this module imports neither torch nor transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlmhb import BackendInfo, EnvironmentRecipe, ModelCheck, ModelSpec, Twin, hookimpl

if TYPE_CHECKING:
    from vlmhb_hf.model import HuggingFaceModel

__all__ = [
    "HuggingFaceModel",
    "vlmhb_backend_info",
    "vlmhb_check_model",
    "vlmhb_environment",
    "vlmhb_load",
    "vlmhb_make_twin",
    "vlmhb_prepare",
]

vlmhb_contract = 1


@hookimpl
def vlmhb_backend_info(backend: str) -> BackendInfo | None:
    """What this backend can do and what it accepts."""
    from vlmhb_hf.info import describe

    return describe(backend)


@hookimpl
def vlmhb_environment(backend: str, device: str) -> EnvironmentRecipe | None:
    """What an environment for transformers must hold."""
    if backend != "hf":
        return None
    from vlmhb_hf.recipe import recipe

    return recipe(device)


@hookimpl
def vlmhb_check_model(backend: str, spec: ModelSpec) -> ModelCheck | None:
    """Say whether transformers could load a model."""
    from vlmhb_hf.check import check_model

    return check_model(spec)


@hookimpl
def vlmhb_make_twin(backend: str, spec: ModelSpec, out: str) -> Twin | None:
    """Write a tiny random model of a folder's architecture."""
    from pathlib import Path

    from vlmhb_hf.twins.build import make_twin

    return make_twin(spec, Path(out))


@hookimpl
def vlmhb_prepare(backend: str, spec: ModelSpec) -> bool | None:
    """Import torch, transformers and this backend's model."""
    import vlmhb_hf.model

    return bool(vlmhb_hf.model)


@hookimpl
def vlmhb_load(backend: str, spec: ModelSpec) -> HuggingFaceModel | None:
    """Load a model folder with transformers."""
    from vlmhb_hf.model import HuggingFaceModel

    model = HuggingFaceModel(backend)
    model.load_spec(spec)
    return model


def __getattr__(name: str) -> Any:
    if name == "HuggingFaceModel":
        from vlmhb_hf.model import HuggingFaceModel

        return HuggingFaceModel
    raise AttributeError(f"module 'vlmhb_hf' has no attribute {name!r}")
