"""A model in a worker process that looks like any other model."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import Any

from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.model import GenerationControl, ModelInterface, ModelSpec
from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.result import GenerationResult
from vlmhb.errors import ErrorKind, ModelLoadError, VlmhbError, WorkerError
from vlmhb.worker.calls import Calls, EngineFailedError, Flight
from vlmhb.worker.handle import WorkerHandle
from vlmhb.worker.launch import Launch, WorkerOptions
from vlmhb.worker.process import TAIL_LINES, WorkerDiedError
from vlmhb.worker.recovery import Queue, Restarts


class WorkerModel(ModelInterface):
    """A model whose engine runs in a process of its own, in the environment that holds the engine.

    A worker that dies or hangs is started again and asked again (:mod:`vlmhb.worker.recovery`); each request that
    was asked again says so in its ``notes``. When :attr:`WorkerOptions.max_restarts` restarts in a row brought no
    answer, ``generate_requests`` raises :class:`vlmhb.errors.WorkerError` with the log's tail.
    """

    def __init__(self, backend: str, launch: Launch | None = None, options: WorkerOptions | None = None) -> None:
        """Nothing is started yet.

        Args:
            backend: the backend's name.
            launch: the environment that holds it; this one when left out.
            options: limits and the log's path.
        """
        self._backend = backend
        self._launch = launch or Launch.here()
        self._options = options or WorkerOptions()
        self._worker = WorkerHandle(backend, self._launch, self._options)
        self._calls: Calls | None = None
        self._spec: ModelSpec | None = None

    def backend_info(self) -> BackendInfo:
        """What the backend says about itself in its own environment; starts the worker, imports no engine."""
        return self._worker.info or self._worker.open()

    def prepare(self, spec: ModelSpec) -> None:
        """Start the worker and let it import what this model needs, without waiting for it.

        Whatever goes wrong with that goes wrong again in :meth:`load_spec`, and is told there.
        """
        self._worker.prepare(spec)

    def load_spec(self, spec: ModelSpec) -> None:
        """Load a model in the worker.

        Raises:
            ModelLoadError: the engine refused the model, died of it, or took longer than ``load_timeout``.
            PluginError, BackendNotFoundError, WorkerError: there is no such engine in that environment.
        """
        if self._spec is not None and not self._options.same_process:
            self.close()
        self._spec = spec
        started = time.monotonic()
        try:
            self._worker.replace_dead()
            self._worker.load(spec)
            self._worker.seconds["waited"] = time.monotonic() - started
        except WorkerDiedError as death:
            message = self._worker.report(f"the worker {death.reason} while it loaded {spec.model_path}")
            self._worker.end(0.0)
            self._spec = None
            raise ModelLoadError(message) from None
        except VlmhbError:
            self._worker.end(self._options.close_timeout)
            self._spec = None
            raise

    def startup(self) -> dict[str, Any]:
        """Where the time went until the model was there, in seconds.

        ``worker`` (until Python ran), ``plugin``, ``imports`` and ``load`` are the worker's own; ``waited`` is how long
        :meth:`load_spec` took, which is less than their sum where the worker was prepared (``prepared_ahead``).
        """
        seconds = {name: round(value, 3) for name, value in self._worker.seconds.items()}
        return {"prepared_ahead": self._worker.prepared, **seconds}

    @property
    def pid(self) -> int | None:
        """The worker's process; everything that its engine starts is below it. None while there is none."""
        return self._worker.process.pid if self._worker.process is not None else None

    def facts(self) -> dict[str, Any]:
        """What the engine decided while loading, and the environment it runs in."""
        return {**self._worker.facts, "environment": self._launch.environment, "freeze": list(self._launch.freeze)}

    def generate_requests(
        self, requests: Iterable[GenerationRequest], control: GenerationControl | None = None
    ) -> Iterator[GenerationResult]:
        """Answer requests in the worker.

        The iterable is read in the caller's thread, up to 64 requests ahead of the engine. Of the requests that
        were read, those not answered after ``control.stop`` is set come back with the finish reason ``skipped``.

        Raises:
            WorkerError: the worker was restarted ``max_restarts`` times in a row without an answer in between.
        """
        if self._spec is None:
            raise WorkerError("no model is loaded; call load first")
        control = control or GenerationControl()
        queue = Queue(requests)
        restarts = Restarts(self._options.max_restarts)
        while queue.has_more():
            round = queue.next_round()
            flight = Flight(round)
            try:
                calls = self._loaded(restarts)
                with contextlib.closing(calls.answers(flight, control)) as results:
                    for result in results:
                        if result.ok:
                            restarts.answered()
                        yield result
            except WorkerDiedError as death:
                told = isinstance(death, EngineFailedError)  # why, by the engine itself; the log has its traceback
                report = self._worker.report(f"the worker of {self._backend} {death.reason}", 0 if told else TAIL_LINES)
                self._worker.end(0.0)
                for result in queue.died(round, *flight.split(), death.reason, _kind(death)):
                    restarts.culprit_found()
                    yield result
                if not control.stop.is_set():
                    self._count_restart(restarts, report)
            else:
                if not round.suspects:
                    return
            if control.stop.is_set():
                yield from queue.skip_all()
                return

    def close(self) -> None:
        """Close the model and end the worker and all its children; does nothing on a closed model."""
        self._spec = None
        self._worker.end(self._options.close_timeout)

    def abandon(self) -> None:
        """End a worker that was prepared and is not wanted any more, whatever it is doing."""
        self._worker.end(0.0)

    # --- starting again

    def _loaded(self, restarts: Restarts) -> Calls:
        """What asks the worker, which is started and loaded again after a death; a failure to do so is one more."""
        while self._worker.process is None:
            if self._spec is None:
                raise WorkerError("the model was closed while it was asked")
            try:
                self._worker.load(self._spec)
            except (WorkerDiedError, VlmhbError) as problem:
                report = self._worker.report(f"the worker of {self._backend} could not be started again: {problem}")
                self._worker.end(0.0)
                self._count_restart(restarts, report)
        if self._calls is None or self._calls.process is not self._worker.process:
            self._calls = Calls(self._worker.process, self._backend, self._options.hang_timeout)
        return self._calls

    def _count_restart(self, restarts: Restarts, report: str) -> None:
        self._tell(report)
        if not restarts.another():
            raise WorkerError(
                f"given up, since the worker was started again {restarts.limit} times in a row without an answer in "
                f"between (max_restarts): {report}"
            )
        self._tell(f"starting the worker of {self._backend} again")

    def _tell(self, sentence: str) -> None:
        if self._options.on_event is not None:
            self._options.on_event(sentence)


def _kind(death: WorkerDiedError) -> ErrorKind:
    return "engine" if isinstance(death, EngineFailedError) else "worker_died"


def describe(backend: str, launch: Launch, options: WorkerOptions | None = None) -> BackendInfo:
    """What a backend says about itself in another environment; starts a worker there for a moment.

    Raises:
        PluginError, BackendNotFoundError, WorkerError: it cannot be used there; the message says why.
    """
    with WorkerModel(backend, launch, options) as model:
        return model.backend_info()
