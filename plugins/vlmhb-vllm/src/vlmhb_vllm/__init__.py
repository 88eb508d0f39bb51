"""vLLM as an engine of vlmhb.

Importing this module is cheap; vLLM itself is imported when a model is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmhb import hookimpl

if TYPE_CHECKING:
    from vlmhb import BackendInfo, EnvironmentRecipe, ModelCheck, ModelInterface, ModelSpec

    from vlmhb_vllm.model import VLLMModel

__version__ = "0.1.0"
__all__ = ["VLLMModel", "vlmhb_contract"]

vlmhb_contract = 1


@hookimpl
def vlmhb_backend_info(backend: str) -> BackendInfo | None:
    """Describe vLLM as it is installed here."""
    if backend != "vllm":
        return None
    from vlmhb_vllm.info import backend_info

    return backend_info()


@hookimpl
def vlmhb_environment(backend: str, device: str) -> EnvironmentRecipe | None:
    """Say what an environment for vLLM must hold."""
    if backend != "vllm":
        return None
    from vlmhb_vllm.environment import recipe

    return recipe(device)


@hookimpl
def vlmhb_check_model(backend: str, spec: ModelSpec) -> ModelCheck | None:
    """Say whether vLLM could load a model."""
    if backend != "vllm":
        return None
    from vlmhb_vllm.check import check_model

    return check_model(spec)


@hookimpl
def vlmhb_prepare(backend: str, spec: ModelSpec) -> bool | None:
    """Set vLLM's environment variables and import it."""
    if backend != "vllm":
        return None
    from vlmhb_vllm.model import import_engine

    import_engine(spec)
    return True


@hookimpl
def vlmhb_load(backend: str, spec: ModelSpec) -> ModelInterface | None:
    """Load a model on vLLM."""
    if backend != "vllm":
        return None
    from vlmhb_vllm.model import VLLMModel

    model = VLLMModel()
    model.load_spec(spec)
    return model


def __getattr__(name: str) -> object:
    if name == "VLLMModel":
        from vlmhb_vllm.model import VLLMModel

        return VLLMModel
    raise AttributeError(f"module 'vlmhb_vllm' has no attribute {name!r}")
