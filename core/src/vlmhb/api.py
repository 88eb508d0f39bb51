"""The Python API: list backends, load a model."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.model import ModelInterface, make_spec
from vlmhb.discovery.hooked import HookedModel
from vlmhb.discovery.origin import how_to_get
from vlmhb.engines import Engines
from vlmhb.errors import BackendNotFoundError, ConfigError, PluginError
from vlmhb.worker.model import WorkerModel


def backends() -> list[BackendInfo]:
    """The backends that can be used in this environment; a broken plugin is left out (``vlmhb backends`` shows it)."""
    registry = Engines()
    found = []
    for name in registry.backend_names():
        try:
            info = registry.backend_info(name)
        except PluginError:
            continue
        if info.problem is None:
            found.append(info)
    return found


def load(model: str | Path, backend: str | None = None, **kwargs: Any) -> ModelInterface:
    """Load a model on a backend and return it, ready for ``generate``.

    A backend that is installed here runs in this process; one that has an environment of its own runs in a worker
    process, and the model looks the same.

    Args:
        model: a model folder, a hub id, or the name of a model that a plugin ships.
        backend: the backend's name; may be left out when only one is installed.
        **kwargs: fields of :class:`vlmhb.ModelSpec` (``dtype``, ``device``, ``max_pixels``, ...) and engine options.

    Raises:
        ConfigError: no backend was named and there is not exactly one, or an option does not exist.
        BackendNotFoundError: the backend is not installed.
        PluginError: its plugin is broken.
        ModelLoadError: the engine refused the model.
    """
    registry = Engines()
    return open_model(registry, backend or only_backend(registry), model, **kwargs)


def open_model(registry: Engines, backend: str, model: str | Path, **kwargs: Any) -> ModelInterface:
    """As :func:`load`, with the engines and the backend given."""
    info = registry.backend_info(backend)
    if info.problem:
        raise PluginError(f"the backend {backend} cannot be used here: {info.problem}")
    loaded: ModelInterface
    if registry.is_here(backend):
        loaded = HookedModel(registry, backend)
    else:
        loaded = WorkerModel(backend, registry.launch(backend, logging.getLogger("vlmhb").info))
    loaded.load_spec(make_spec(info, registry.model_path(model), **kwargs))
    return loaded


def only_backend(registry: Engines) -> str:
    """The one backend that is installed.

    Raises:
        BackendNotFoundError: there is none.
        ConfigError: there are several.
    """
    names = registry.backend_names()
    if not names:
        raise BackendNotFoundError(
            f"no backend is installed; get one, for example: {how_to_get('hf')} (also: vllm, sglang)."
        )
    if len(names) > 1:
        raise ConfigError(f"several backends are installed ({', '.join(names)}); say which one to use")
    return names[0]
