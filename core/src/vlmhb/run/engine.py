"""Where a run's models live: in worker processes, started from the environments that hold their engines."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec

from vlmhb.contract.model import ModelSpec
from vlmhb.engines import Engines
from vlmhb.errors import VlmhbError
from vlmhb.memory import free_memory
from vlmhb.worker.launch import WorkerOptions
from vlmhb.worker.model import WorkerModel
from vlmhb.worker.weights import SPARE


class Workers:
    """Opens a run's models one after the other; the worker of the next one can be prepared while one answers."""

    def __init__(self, engines: Engines, on_event: Callable[[str], None]) -> None:
        """Args:
        engines: knows where the engines are.
        on_event: told in a sentence when a worker died and was started again, or its environment is made again.
        """
        self._engines = engines
        self._on_event = on_event
        self._next: tuple[str, ModelSpec, WorkerModel] | None = None

    def prepare(self, backend: str, spec: ModelSpec, log: Path) -> None:
        """Start the worker that :meth:`open` will be asked for next, unless memory is short, and wait for nothing.

        It imports its engine and has the weights read into the system's file cache, but loads no model: engines size
        their caches by the memory that is free, and would keep a GPU or the cores from the one that answers. What
        cannot be prepared is left to :meth:`open`, which says why.

        Args:
            backend: its engine's name.
            spec: the model.
            log: the file that what it prints is appended to. It is the worker's own: two print at the same time.
        """
        self.close()
        if free_memory() < SPARE:
            return
        try:
            model = self._worker(backend, log, None)
            model.prepare(spec)
        except (VlmhbError, OSError):
            return
        self._next = backend, spec, model

    def open(self, backend: str, spec: ModelSpec, log: Path, most_images: int) -> tuple[WorkerModel, dict[str, Any]]:
        """Load a model.

        Args:
            backend: its engine's name.
            spec: the model.
            log: the file that what it prints is appended to, also when it is started again.
            most_images: most images in one of the prompts that will be asked. Where the spec has no ``max_images``,
                room for so many is enough: some engines set memory aside for as many as they are told.

        Returns:
            The model, and where the time went until it was there: :meth:`WorkerModel.startup`, and in ``environment``
            the seconds of the look at the engine's environment.

        Raises:
            PluginError, BackendNotFoundError: the backend cannot be used.
            ModelLoadError: the engine refused the model.
            ManagedEnvironmentError: the engine's environment is of no use.
            WorkerError: the worker could not be started.
        """
        started = time.monotonic()
        model = self._take(backend, spec) or self._worker(backend, log, self._on_event)
        checked = time.monotonic() - started
        if spec.max_images is None:
            spec = msgspec.structs.replace(spec, max_images=max(1, most_images))
        model.load_spec(spec)
        return model, {"environment": round(checked, 3), **model.startup()}

    def close(self) -> None:
        """End the worker that was prepared and not asked for."""
        if self._next is not None:
            self._next[2].abandon()
            self._next = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, backend: str, spec: ModelSpec) -> WorkerModel | None:
        """The prepared worker, if it is the one for this model; else it is ended."""
        if self._next is None or self._next[:2] != (backend, spec):
            self.close()
            return None
        model, self._next = self._next[2], None
        return model

    def _worker(self, backend: str, log: Path, rebuild: Callable[[str], None] | None) -> WorkerModel:
        launch = self._engines.launch(backend, rebuild)
        return WorkerModel(backend, launch, WorkerOptions(log_path=str(log), on_event=self._on_event))
