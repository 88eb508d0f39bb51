"""Where a run's model lives: in a worker process, started from the environment that holds its engine."""

from __future__ import annotations

from collections.abc import Callable

from vlmhb.contract.model import ModelInterface, ModelSpec
from vlmhb.engines import Engines
from vlmhb.run.folder import RunFolder
from vlmhb.worker.launch import WorkerOptions
from vlmhb.worker.model import WorkerModel


def open_engine(
    engines: Engines, backend: str, spec: ModelSpec, home: RunFolder, on_event: Callable[[str], None]
) -> ModelInterface:
    """Load a model for a run.

    Args:
        engines: knows where the engine is.
        backend: its name.
        spec: the model.
        home: the run's folder; what the engine prints goes into a file of its ``logs``.
        on_event: told in a sentence when the worker died and was started again, or its environment is made again.

    Raises:
        PluginError, BackendNotFoundError: the backend cannot be used.
        ModelLoadError: the engine refused the model.
        ManagedEnvironmentError: the engine's environment is of no use.
        WorkerError: the worker could not be started.
    """
    log = home.logs / f"{backend}.log"
    launch = engines.launch(backend, on_event)
    model = WorkerModel(backend, launch, WorkerOptions(log_path=str(log), on_event=on_event))
    model.load_spec(spec)
    return model
