"""SGLang as an engine of vlmhb.

Importing this module is cheap; SGLang itself is imported when a model is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmhb import hookimpl

if TYPE_CHECKING:
    from vlmhb import BackendInfo, EnvironmentRecipe, ModelCheck, ModelInterface, ModelSpec

    from vlmhb_sglang.model import SGLangModel

__version__ = "0.1.0"
__all__ = ["SGLangModel", "vlmhb_contract"]

vlmhb_contract = 1


@hookimpl
def vlmhb_backend_info(backend: str) -> BackendInfo | None:
    """Describe SGLang as it is installed here."""
    if backend != "sglang":
        return None
    from vlmhb_sglang.info import backend_info

    return backend_info()


@hookimpl
def vlmhb_environment(backend: str, device: str) -> EnvironmentRecipe | None:
    """Say what an environment for SGLang must hold."""
    if backend != "sglang":
        return None
    from vlmhb_sglang.recipe import recipe

    return recipe(device)


@hookimpl
def vlmhb_check_model(backend: str, spec: ModelSpec) -> ModelCheck | None:
    """Say whether SGLang could load a model."""
    if backend != "sglang":
        return None
    from vlmhb_sglang.examine import check_model

    return check_model(spec)


@hookimpl
def vlmhb_prepare(backend: str, spec: ModelSpec) -> bool | None:
    """Set SGLang's environment variables and import it, in the server of its processes as well."""
    if backend != "sglang":
        return None
    from vlmhb_sglang.model import import_engine

    import_engine(spec)
    return True


@hookimpl
def vlmhb_load(backend: str, spec: ModelSpec) -> ModelInterface | None:
    """Load a model on SGLang."""
    if backend != "sglang":
        return None
    from vlmhb_sglang.model import SGLangModel

    model = SGLangModel()
    model.load_spec(spec)
    return model


def __getattr__(name: str) -> object:
    if name == "SGLangModel":
        from vlmhb_sglang.model import SGLangModel

        return SGLangModel
    raise AttributeError(f"module 'vlmhb_sglang' has no attribute {name!r}")
