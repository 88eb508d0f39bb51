"""Where a run's model lives: in a worker process, started from the environment that holds its engine."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from vlmhb.contract.model import ModelInterface, ModelSpec
from vlmhb.engines import Engines
from vlmhb.run.folder import RunFolder
from vlmhb.worker.launch import WorkerOptions
from vlmhb.worker.model import WorkerModel


def open_engine(
    engines: Engines, backend: str, spec: ModelSpec, most_images: int, home: RunFolder, on_event: Callable[[str], None]
) -> ModelInterface:
    """Load a model for a run.

    Args:
        engines: knows where the engine is.
        backend: its name.
        spec: the model.
        most_images: most images in one of the prompts that will be asked. Where the spec has no ``max_images``, room
            for so many is enough: some engines set memory aside for as many as they are told.
        home: the run's folder; what the engine prints goes into a file of its ``logs``.
        on_event: told in a sentence when the worker died and was started again, or its environment is made again.

    Raises:
        PluginError, BackendNotFoundError: the backend cannot be used.
        ModelLoadError: the engine refused the model.
        ManagedEnvironmentError: the engine's environment is of no use.
        WorkerError: the worker could not be started.
    """
    if spec.max_images is None:
        spec = msgspec.structs.replace(spec, max_images=max(1, most_images))
    log = home.logs / f"{backend}.log"
    launch = engines.launch(backend, on_event)
    model = WorkerModel(backend, launch, WorkerOptions(log_path=str(log), on_event=on_event))
    model.load_spec(spec)
    return model
