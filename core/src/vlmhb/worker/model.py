"""A model in a worker process that looks like any other model."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

from vlmhb import errors
from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.model import GenerationControl, ModelInterface, ModelSpec
from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.result import GenerationResult
from vlmhb.errors import ErrorKind, ModelLoadError, PluginError, VlmhbError, WorkerError
from vlmhb.worker import protocol as p
from vlmhb.worker.launch import Launch, WorkerOptions
from vlmhb.worker.process import WorkerDiedError, WorkerProcess
from vlmhb.worker.recovery import Item, Queue, Restarts, Round

FEED = 0.001
"""Seconds that requests are read from the caller's iterable before those at hand are sent."""
POLL = 0.1
"""Seconds between two looks at ``control.stop`` while the worker is silent."""
PACED_POLL = 0.002
"""Seconds between two looks whether a paced request is due."""


class EngineFailedError(WorkerDiedError):
    """The engine raised; its process lives, but is not to be trusted any more."""


class Flight:
    """The requests of one round that are with the worker."""

    def __init__(self, number: int, round: Round) -> None:
        self.number = number
        self.round = round
        self.items: dict[str, Item] = {}
        self.taken: dict[str, Item] = {}
        self.credits = 0
        self.sent_all = False
        self.stopped = False
        self.progress = time.monotonic()
        self.steps = -1

    def split(self) -> tuple[list[Item], list[Item]]:
        """The unanswered requests: those that the engine has taken, and the others."""
        return list(self.taken.values()), [item for id, item in self.items.items() if id not in self.taken]

    def idle_for(self) -> float:
        """Seconds since the worker last got on with something; 0 while it has nothing to do."""
        if not self.items:
            self.progress = time.monotonic()
        return time.monotonic() - self.progress


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
        self._process: WorkerProcess | None = None
        self._info: BackendInfo | None = None
        self._spec: ModelSpec | None = None
        self._facts: dict[str, Any] = {}
        self._log: Path | None = None
        self._calls = 0
        self._open_call: int | None = None
        self._opened = False
        self._ahead = False
        self._seconds: dict[str, float] = {}

    # --- the interface of every model

    def backend_info(self) -> BackendInfo:
        """What the backend says about itself in its own environment; starts the worker, imports no engine."""
        if self._info is None:
            self._start()
        assert self._info is not None
        return self._info

    def prepare(self, spec: ModelSpec) -> None:
        """Start the worker and let it import what this model needs, without waiting for it.

        Whatever goes wrong with that goes wrong again in :meth:`load_spec`, and is told there.
        """
        self._spawn()
        assert self._process is not None
        self._process.send(p.Prepare(spec))
        self._ahead = True

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
            self._replace_dead()
            self._load()
            self._seconds["waited"] = time.monotonic() - started
        except WorkerDiedError as death:
            message = self._report(f"the worker {death.reason} while it loaded {spec.model_path}")
            self._drop(0.0)
            self._spec = None
            raise ModelLoadError(message) from None
        except VlmhbError:
            self._drop(self._options.close_timeout)
            self._spec = None
            raise

    def startup(self) -> dict[str, Any]:
        """Where the time went until the model was there, in seconds.

        ``worker`` (until Python ran), ``plugin``, ``imports`` and ``load`` are the worker's own; ``waited`` is how long
        :meth:`load_spec` took, which is less than their sum where the worker was prepared (``prepared_ahead``).
        """
        return {"prepared_ahead": self._ahead, **{name: round(value, 3) for name, value in self._seconds.items()}}

    @property
    def pid(self) -> int | None:
        """The worker's process; everything that its engine starts is below it. None while there is none."""
        return self._process.pid if self._process is not None else None

    def facts(self) -> dict[str, Any]:
        """What the engine decided while loading, and the environment it runs in."""
        return {**self._facts, "environment": self._launch.environment, "freeze": list(self._launch.freeze)}

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
            self._calls += 1
            flight = Flight(self._calls, round)
            try:
                self._ensure_loaded(restarts)
                with contextlib.closing(self._answers(flight, control)) as results:
                    for result in results:
                        if result.ok:
                            restarts.answered()
                        yield result
            except WorkerDiedError as death:
                report = self._report(f"the worker of {self._backend} {death.reason}")
                self._drop(0.0)
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
        self._drop(self._options.close_timeout)

    def abandon(self) -> None:
        """End a worker that was prepared and is not wanted any more, whatever it is doing."""
        self._drop(0.0)

    # --- starting, loading, ending

    def _spawn(self) -> None:
        if self._process is None:
            self._process = WorkerProcess(self._launch, self._log_file())
            self._process.send(p.Open(self._backend))
            self._opened = self._ahead = False
            self._seconds = {}

    def _replace_dead(self) -> None:
        """A worker that died while it was prepared beside another model gets its chance without that one."""
        if self._ahead and self._process is not None:
            try:
                self._process.check()
            except WorkerDiedError:
                self._drop(0.0)

    def _start(self) -> None:
        self._spawn()
        if not self._opened:
            assert self._process is not None
            try:
                self._seconds["worker"] = self._process.greet(self._options.start_timeout)
                self._info = self._await(self._options.start_timeout).info
                self._opened = True
            except WorkerDiedError as death:
                message = self._report(f"the worker {death.reason} while it imported backend {self._backend}")
                self._drop(0.0)
                raise WorkerError(message) from None
            except VlmhbError:
                self._drop(0.0)
                raise

    def _load(self) -> None:
        self._start()
        assert self._spec is not None
        assert self._process is not None
        self._process.send(p.Load(self._spec))
        loaded = self._await(self._options.load_timeout)
        self._facts, self._info = loaded.facts, loaded.info
        self._seconds.update(loaded.seconds)

    def _ensure_loaded(self, restarts: Restarts) -> None:
        """Start and load again after a death; a failure to do so counts as one more."""
        while self._process is None:
            try:
                self._load()
            except (WorkerDiedError, VlmhbError) as problem:
                report = self._report(f"the worker of {self._backend} could not be started again: {problem}")
                self._drop(0.0)
                self._count_restart(restarts, report)

    def _count_restart(self, restarts: Restarts, report: str) -> None:
        self._tell(report)
        if not restarts.another():
            raise WorkerError(
                f"given up, since the worker was started again {restarts.limit} times in a row without an answer in "
                f"between (max_restarts): {report}"
            )
        self._tell(f"starting the worker of {self._backend} again")

    def _await(self, timeout: float) -> Any:
        """Wait for what answers an order; a refusal is raised as the error it was."""
        assert self._process is not None
        deadline = time.monotonic() + timeout
        while (remaining := deadline - time.monotonic()) > 0:
            message = self._process.receive(remaining)
            if isinstance(message, p.Refused):
                kind = getattr(errors, message.error, PluginError)
                raise kind(message.message) if issubclass(kind, VlmhbError) else PluginError(message.message)
            if isinstance(message, p.Opened | p.Loaded):
                return message
        raise WorkerDiedError(f"did not finish within {timeout:.0f} s")

    def _drop(self, patience: float) -> None:
        """End the process: ask, wait, terminate, kill."""
        process, self._process, self._open_call = self._process, None, None
        if process is None:
            return
        clean = patience > 0 and self._closed_in_time(process, patience)
        process.end(min(2.0, max(1.0, patience)))
        if clean and self._options.log_path is None:
            process.log_path.unlink(missing_ok=True)
            self._log = None

    def _closed_in_time(self, process: WorkerProcess, patience: float) -> bool:
        deadline = time.monotonic() + patience
        closed = False
        try:
            process.send(p.Close())
            while (remaining := deadline - time.monotonic()) > 0:
                closed = isinstance(process.receive(remaining), p.Closed) or closed
        except (WorkerDiedError, WorkerError):
            return closed
        return False

    def _log_file(self) -> Path:
        if self._log is None and self._options.log_path is not None:
            self._log = Path(self._options.log_path)
            self._log.parent.mkdir(parents=True, exist_ok=True)
        elif self._log is None:
            with tempfile.NamedTemporaryFile(prefix=f"vlmhb-{self._backend}-", suffix=".log", delete=False) as file:
                self._log = Path(file.name)
        return self._log

    def _report(self, sentence: str) -> str:
        return self._process.report(sentence) if self._process else sentence

    def _tell(self, sentence: str) -> None:
        if self._options.on_event is not None:
            self._options.on_event(sentence)

    # --- one round of requests

    def _answers(self, flight: Flight, control: GenerationControl) -> Generator[GenerationResult]:
        """Feed the worker and yield results until the round is over."""
        process = self._process
        assert process is not None
        process.check()
        self._finish_abandoned(process)
        paced = control.ready is not None
        process.send(p.Begin(flight.number, control.on_text is not None, paced))
        self._open_call = flight.number
        try:
            while self._open_call is not None:
                if control.stop.is_set() and not flight.stopped:
                    flight.stopped = True
                    process.send(p.Stop(flight.number, abort=False))
                wanted = flight.credits and not flight.sent_all and not flight.stopped
                ready = wanted and control.may_read(busy=bool(flight.items))
                if ready:
                    yield from self._feed(process, flight, control)
                message = process.receive(0.0 if ready else PACED_POLL if wanted else POLL)
                while message is not None:
                    result = self._hear(message, flight, control)
                    if result is not None:
                        yield result
                    message = process.receive(0.0) if self._open_call is not None else None
                if flight.idle_for() > self._options.hang_timeout:
                    raise WorkerDiedError(
                        f"got on with nothing for {self._options.hang_timeout:g} s (taken for a hang)"
                    )
        finally:
            if self._open_call is not None and self._process is not None:  # the caller has left the loop
                with contextlib.suppress(WorkerDiedError):
                    process.send(p.Stop(flight.number, abort=True))
        yield from self._unanswered(flight)

    def _feed(self, process: WorkerProcess, flight: Flight, control: GenerationControl) -> list[GenerationResult]:
        """Send requests that the worker wants, for at most ``FEED`` seconds when the iterable is slow.

        Returns:
            Results of requests that cannot be sent.
        """
        if not flight.items:
            flight.progress = time.monotonic()
        frames: list[bytes] = []
        refused: list[GenerationResult] = []
        deadline = time.monotonic() + FEED
        while flight.credits:
            item = next(flight.round.items, None)
            if item is None:
                flight.sent_all = True
                frames.append(process.channel.frame(p.NoMore(flight.number)))
                break
            try:
                frames.append(self._frame(process, flight, item))
            except (ValueError, TypeError, OverflowError) as error:
                refused.append(item.failed(f"the request cannot be passed to the worker: {error}", "invalid_request"))
                continue
            flight.items[item.request.id] = item
            flight.credits -= 1
            if time.monotonic() > deadline or not control.may_read(busy=True):
                break
        process.write(b"".join(frames))
        return refused

    def _frame(self, process: WorkerProcess, flight: Flight, item: Item) -> bytes:
        if item.request.id in flight.items:
            raise ValueError(f"another request with the id {item.request.id!r} is not answered yet")
        return process.channel.frame(p.Ask(flight.number, item.request))

    def _hear(self, message: Any, flight: Flight, control: GenerationControl) -> GenerationResult | None:
        """Take in one message; returns a result when it was one."""
        if isinstance(message, p.Heartbeat):
            if message.steps != flight.steps:
                flight.steps = message.steps
                control.steps += 1
                flight.progress = time.monotonic()
            return None
        if getattr(message, "call", None) != flight.number:
            return None  # of a call that was abandoned
        flight.progress = time.monotonic()
        if isinstance(message, p.Answer):
            flight.taken.pop(message.result.id, None)
            item = flight.items.pop(message.result.id, None)
            if item is None:
                raise PluginError(f"backend {self._backend} answered {message.result.id!r}, which nobody had asked")
            return item.finish(message.result)
        if isinstance(message, p.Credits):
            flight.credits += message.count
        elif isinstance(message, p.Taken):
            if message.id in flight.items:
                flight.taken[message.id] = flight.items[message.id]
        elif isinstance(message, p.TextDelta):
            item = flight.items.get(message.id)
            fresh = item.new_text(message.text) if item else ""
            if fresh and control.on_text is not None:
                control.on_text(message.id, fresh)
        elif isinstance(message, p.Done):
            self._open_call = None
        elif isinstance(message, p.EngineFailed):
            raise EngineFailedError(f"failed ({message.message})")
        return None

    def _unanswered(self, flight: Flight) -> Iterator[GenerationResult]:
        """Results for what the engine left behind at the end of a round; what it had read and not started, too."""
        for item in flight.items.values():
            if flight.stopped:
                yield item.skipped()
            else:
                yield item.failed(f"backend {self._backend} ended without answering this request", "engine")
        if flight.stopped and flight.round.suspects:
            yield from (item.skipped() for item in flight.round.items)

    def _finish_abandoned(self, process: WorkerProcess) -> None:
        """Wait for the end of a call that its caller left early."""
        deadline = time.monotonic() + self._options.hang_timeout
        while self._open_call is not None:
            message = process.receive(max(0.0, deadline - time.monotonic()))
            if message is None:
                raise WorkerDiedError("did not end a call that was abandoned")
            if isinstance(message, p.EngineFailed):
                raise EngineFailedError(f"failed ({message.message})")
            if isinstance(message, p.Done) and message.call == self._open_call:
                self._open_call = None


def _kind(death: WorkerDiedError) -> ErrorKind:
    return "engine" if isinstance(death, EngineFailedError) else "worker_died"


def describe(backend: str, launch: Launch, options: WorkerOptions | None = None) -> BackendInfo:
    """What a backend says about itself in another environment; starts a worker there for a moment.

    Raises:
        PluginError, BackendNotFoundError, WorkerError: it cannot be used there; the message says why.
    """
    with WorkerModel(backend, launch, options) as model:
        return model.backend_info()
