"""The worker's side: hold one model, answer what comes over the socket.

The engine runs in the main thread, since some engines install signal handlers. One thread reads the socket, so
that a stop is heard while the engine computes; one sends heartbeats.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import signal
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterator

import msgspec

from vlmhb import __version__
from vlmhb.contract import CONTRACT_VERSION
from vlmhb.contract.model import GenerationControl, ModelInterface, ModelSpec
from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.result import GenerationResult
from vlmhb.discovery.registry import Registry
from vlmhb.errors import PluginError, RequestError, VlmhbError
from vlmhb.worker import protocol as p
from vlmhb.worker import supervisor
from vlmhb.worker.weights import read_ahead

HEARTBEAT = 0.5
"""Seconds between two heartbeats."""
WINDOW = 64
"""Most requests that wait in the worker for the engine, sent or granted."""
GRANT = 32
"""Credits are granted in such portions."""
WAITING_BYTES = 64 << 20
"""No credits are granted while the waiting requests hold more bytes of images than this."""
LOT_PATIENCE = 0.02
"""Seconds without a further request that close a lot of paced requests."""


class Call:
    """One ``generate_requests`` call: the requests that wait for the engine, and the orders about it."""

    def __init__(self, number: int, stream: bool, paced: bool = False) -> None:
        self.number = number
        self.stream = stream
        self.paced = paced
        self.control = GenerationControl()
        if paced:
            self.control.ready = self.ready
        self.aborted = False
        self._waiting: deque[GenerationRequest] = deque()
        self._bytes = 0
        self._granted = 0
        self._ended = False
        self._changed = threading.Condition()

    def hear(self, order: p.Ask | p.NoMore | p.Stop) -> None:
        """Take in what the caller says about this call."""
        if isinstance(order, p.Stop):
            self.stop(order.abort)
            return
        with self._changed:
            if isinstance(order, p.Ask):
                self._waiting.append(order.request)
                self._bytes += _size(order.request)
                self._granted -= 1
            else:
                self._ended = True
            self._changed.notify()

    def stop(self, abort: bool) -> None:
        """Start nothing more; with ``abort``, drop what was started too."""
        self.aborted = self.aborted or abort
        with self._changed:
            self.control.stop.set()
            self._changed.notify()

    def credits(self) -> int:
        """How many credits to grant now; they count as granted from then on."""
        with self._changed:
            room = WINDOW - len(self._waiting) - self._granted
            if self._ended or self.control.stop.is_set() or room < GRANT or self._bytes > WAITING_BYTES:
                return 0
            self._granted += room
            return room

    def ready(self) -> bool:
        """Whether :meth:`take` would not wait."""
        return bool(self._waiting or self._ended or self.control.stop.is_set())

    def over(self) -> bool:
        """Whether there is nothing more to take, now or later."""
        return self.control.stop.is_set() or (self._ended and not self._waiting)

    def take(self, patience: float | None = None) -> GenerationRequest | None:
        """The next request for the engine, waited for, at most ``patience`` seconds; None when there is none."""
        with self._changed:
            self._changed.wait_for(self.ready, patience)
            if self.control.stop.is_set() or not self._waiting:
                return None
            request = self._waiting.popleft()
            self._bytes -= _size(request)
            return request


class Server:
    """Answers one caller until it is told to close."""

    def __init__(self, channel: p.Channel) -> None:
        self._channel = channel
        self._orders: deque[p.ToWorker] = deque()
        self._order_came = threading.Semaphore(0)
        self._calls: dict[int, Call] = {}
        self._registry = Registry()
        self._model: ModelInterface | None = None
        self._backend = ""
        self._steps = 0
        self._seconds: dict[str, float] = {}
        self._failure: Exception | None = None

    def run(self) -> None:
        """Say hello, then work until ``Close``."""
        python = platform.python_version()
        hello = p.Hello(p.PROTOCOL_VERSION, CONTRACT_VERSION, __version__, python, os.getpid(), time.monotonic())
        self._channel.send(hello)
        threading.Thread(target=self._read, name="vlmhb-worker-read", daemon=True).start()
        threading.Thread(target=self._beat, name="vlmhb-worker-heartbeat", daemon=True).start()
        while True:
            self._order_came.acquire()
            order = self._orders.popleft()
            if isinstance(order, p.Open | p.Load):
                self._channel.send(self._obey(order))
            elif isinstance(order, p.Prepare):
                self._prepare(order.spec)
                read_ahead(order.spec.model_path)
            elif isinstance(order, p.Begin):
                self._generate(self._calls[order.call])
            elif isinstance(order, p.Close):
                break
        if self._model is not None:
            gc.freeze()  # closing looks for garbage, and the interpreter ends anyway
            self._model.close()
        self._channel.send(p.Closed())
        # The model is closed; taking torch's interpreter down piece by piece would only keep the caller waiting.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    # --- other threads

    def _read(self) -> None:
        try:
            while True:
                self._hear(self._channel.receive())
        except EOFError:
            pass
        finally:
            end_with_everything()

    def _hear(self, order: p.ToWorker) -> None:
        if isinstance(order, p.Ask | p.NoMore | p.Stop):
            call = self._calls.get(order.call)
            if call is not None:  # else the engine has ended the call already
                call.hear(order)
            return
        if isinstance(order, p.Begin):
            self._calls[order.call] = Call(order.call, order.stream, order.paced)
        elif isinstance(order, p.Close):
            for call in list(self._calls.values()):
                call.stop(abort=True)
        self._orders.append(order)
        self._order_came.release()

    def _beat(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                time.sleep(HEARTBEAT)
                steps = self._steps + sum(call.control.steps for call in list(self._calls.values()))
                self._channel.send(p.Heartbeat(steps))

    # --- the main thread

    def _obey(self, order: p.Open | p.Load) -> p.Opened | p.Loaded | p.Refused:
        try:
            if isinstance(order, p.Load):
                return self._load(order.spec)
            self._backend = order.backend
            with self._timed("plugin"):
                return p.Opened(self._registry.backend_info(order.backend))
        except VlmhbError as error:
            return p.Refused(type(error).__name__, str(error))
        except Exception as error:  # noqa: BLE001 - the worker's boundary: a plugin may raise anything
            traceback.print_exc()
            message = f"the plugin of backend {self._backend} failed: {type(error).__name__}: {error}"
            return p.Refused(PluginError.__name__, message)

    def _prepare(self, spec: ModelSpec) -> None:
        """Import the engine, the first time; what goes wrong is kept until the model is to be loaded."""
        if "imports" not in self._seconds:
            with self._timed("imports"), _no_garbage():
                try:
                    self._registry.prepare(self._backend, spec)
                except Exception as error:  # noqa: BLE001 - the worker's boundary: a plugin may raise anything
                    self._failure = error

    def _load(self, spec: ModelSpec) -> p.Loaded:
        if self._model is not None:
            model, self._model = self._model, None
            model.close()
        self._prepare(spec)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        with self._timed("load"):
            self._model = self._registry.load_model(self._backend, spec)
        facts = msgspec.to_builtins(self._model.facts(), str_keys=True, enc_hook=str)
        return p.Loaded(facts, self._model.backend_info(), self._seconds)

    @contextlib.contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[step] = time.monotonic() - started

    def _generate(self, call: Call) -> None:
        assert self._model is not None
        if call.stream:
            call.control.on_text = lambda id, text: self._channel.send(p.TextDelta(call.number, id, text))
        self._grant(call)
        results: Iterator[GenerationResult] = iter(())
        try:
            results = self._results(call, self._model)
            for result in results:
                if call.aborted:
                    break
                self._send_answer(call, result)
            self._channel.send(p.Done(call.number))
        except OSError:  # the caller is gone; the reading thread ends this process
            time.sleep(60.0)
        except Exception as error:  # noqa: BLE001 - the worker's boundary: an engine may raise anything
            traceback.print_exc()
            self._channel.send(p.EngineFailed(call.number, f"{type(error).__name__}: {error}"))
        finally:
            if isinstance(results, Generator):
                results.close()
            self._steps += call.control.steps
            del self._calls[call.number]

    def _results(self, call: Call, model: ModelInterface) -> Generator[GenerationResult]:
        """The engine's results. To an engine that is not continuous paced requests come in lots: all that wait."""
        in_lots = call.paced and not model.backend_info().capabilities.continuous
        while True:
            requests = self._requests(call, LOT_PATIENCE if in_lots else None)
            yield from self._registry.generate(self._backend, model, requests, call.control)
            if not in_lots or call.over():
                return

    def _requests(self, call: Call, patience: float | None) -> Iterator[GenerationRequest]:
        """The requests as they come; ends early when none has come for ``patience`` seconds after another."""
        request = call.take()
        while request is not None:
            self._channel.send(p.Taken(call.number, request.id))
            self._grant(call)
            yield request
            request = call.take(patience)

    def _grant(self, call: Call) -> None:
        count = call.credits()
        if count:
            self._channel.send(p.Credits(call.number, count))

    def _send_answer(self, call: Call, result: GenerationResult) -> None:
        try:
            self._channel.send(p.Answer(call.number, result))
        except (ValueError, TypeError, OverflowError) as error:
            problem = RequestError(f"the engine's answer cannot be passed on: {error}", kind="engine")
            self._channel.send(p.Answer(call.number, GenerationResult.failed(result.id, problem)))


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """Look for no garbage while something is imported, nor later in what that left: a tenth of the time of imports."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _size(request: GenerationRequest) -> int:
    return sum(len(image.data) for image in request.images if image.data)


def end_with_everything() -> None:
    """The caller is gone: end this process and all below it. The supervisor does the same, and cleans up better."""
    supervised_by = os.getppid()
    deadline = time.monotonic() + 3.0
    while time.monotonic() < deadline and os.getppid() == supervised_by:
        time.sleep(0.1)
    supervisor.kill_descendants(os.getpid())
    os.kill(os.getpid(), signal.SIGKILL)


def serve(number: int) -> None:
    """Run a worker on an inherited socket.

    Engines fork; a child must not hold the socket, or its owner would not notice this process's end. Daemons that
    they start stay below this process, so that they are found even when the supervisor is killed.
    """
    supervisor.become_subreaper()
    os.set_inheritable(number, False)
    sock = socket.socket(fileno=number)
    os.register_at_fork(after_in_child=sock.close)
    Server(p.Channel(sock, p.ToWorker)).run()
