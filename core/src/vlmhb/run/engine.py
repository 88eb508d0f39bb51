"""Where a run's model lives: in this process, or in a worker."""

from __future__ import annotations

from vlmhb.contract.model import ModelInterface, ModelSpec
from vlmhb.discovery.hooked import HookedModel
from vlmhb.discovery.registry import Registry
from vlmhb.errors import ModelLoadError, VlmhbError
from vlmhb.run.folder import RunFolder


def open_engine(registry: Registry, backend: str, spec: ModelSpec, home: RunFolder) -> ModelInterface:
    """Load a model for a run.

    Raises:
        PluginError: the backend's plugin is broken.
        ModelLoadError: the engine refused the model, or its plugin failed while loading it.
    """
    model = HookedModel(registry, backend)
    try:
        model.load_spec(spec)
    except VlmhbError:
        raise
    except Exception as error:  # an engine may raise anything; the run's other models go on
        raise ModelLoadError(f"{type(error).__name__}: {error}") from error
    return model
