"""Where a run's model lives: in a worker process, started from the environment that holds its engine."""

from __future__ import annotations

from collections.abc import Callable

from vlmhb.contract.model import ModelInterface, ModelSpec
from vlmhb.run.folder import RunFolder
from vlmhb.worker.launch import Launch, WorkerOptions
from vlmhb.worker.model import WorkerModel


def open_engine(backend: str, spec: ModelSpec, home: RunFolder, on_event: Callable[[str], None]) -> ModelInterface:
    """Load a model for a run.

    Args:
        backend: the engine.
        spec: the model.
        home: the run's folder; what the engine prints goes into a file of its ``logs``.
        on_event: told in a sentence when the worker died and was started again.

    Raises:
        PluginError, BackendNotFoundError: the backend cannot be used.
        ModelLoadError: the engine refused the model.
        WorkerError: the worker could not be started.
    """
    log = home.logs / f"{backend}.log"
    model = WorkerModel(backend, Launch.here(), WorkerOptions(log_path=str(log), on_event=on_event))
    model.load_spec(spec)
    return model
