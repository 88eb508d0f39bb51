"""The calls to one worker process: its requests are fed as it wants them, its messages heard, and it may not hang."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator
from typing import Any

from vlmhb.contract.model import GenerationControl
from vlmhb.contract.result import GenerationResult
from vlmhb.errors import PluginError
from vlmhb.worker import protocol as p
from vlmhb.worker.process import WorkerDiedError, WorkerProcess
from vlmhb.worker.recovery import Item, Round

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

    def __init__(self, round: Round) -> None:
        self.number = 0
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


class Calls:
    """One call after another to a process that has a model loaded."""

    def __init__(self, process: WorkerProcess, backend: str, hang_timeout: float) -> None:
        """Args: the process; its backend's name; how long it may get on with nothing, in seconds."""
        self.process = process
        self._backend = backend
        self._hang_timeout = hang_timeout
        self._number = 0
        self._open: int | None = None

    @property
    def _is_open(self) -> bool:
        """Whether more is to come of the latest call; nothing is once the process was ended, as by ``close``."""
        return self._open is not None and not self.process.ended

    def answers(self, flight: Flight, control: GenerationControl) -> Generator[GenerationResult]:
        """Feed the worker and yield results until the round is over.

        Raises:
            WorkerDiedError: the process is gone, hangs or is not to be trusted; ``flight`` says what it left behind.
        """
        process = self.process
        process.check()
        self._finish_abandoned()
        self._number += 1
        flight.number = self._open = self._number
        process.send(p.Begin(flight.number, control.on_text is not None, control.ready is not None))
        try:
            while self._is_open:
                if control.stop.is_set() and not flight.stopped:
                    flight.stopped = True
                    process.send(p.Stop(flight.number, abort=False))
                wanted = flight.credits and not flight.sent_all and not flight.stopped
                ready = wanted and control.may_read(busy=bool(flight.items))
                if ready:
                    yield from self._feed(flight, control)
                message = process.receive(0.0 if ready else PACED_POLL if wanted else POLL)
                while message is not None:
                    result = self._hear(message, flight, control)
                    if result is not None:
                        yield result
                    message = process.receive(0.0) if self._is_open else None
                if flight.idle_for() > self._hang_timeout:
                    raise WorkerDiedError(f"got on with nothing for {self._hang_timeout:g} s (taken for a hang)")
        finally:
            if self._is_open:  # the caller has left the loop
                with contextlib.suppress(WorkerDiedError):
                    process.send(p.Stop(flight.number, abort=True))
        yield from self._unanswered(flight)

    def _feed(self, flight: Flight, control: GenerationControl) -> list[GenerationResult]:
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
                frames.append(self.process.channel.frame(p.NoMore(flight.number)))
                break
            try:
                frames.append(self._frame(flight, item))
            except (ValueError, TypeError, OverflowError) as error:
                refused.append(item.failed(f"the request cannot be passed to the worker: {error}", "invalid_request"))
                continue
            flight.items[item.request.id] = item
            flight.credits -= 1
            if time.monotonic() > deadline or not control.may_read(busy=True):
                break
        self.process.write(b"".join(frames))
        return refused

    def _frame(self, flight: Flight, item: Item) -> bytes:
        if item.request.id in flight.items:
            raise ValueError(f"another request with the id {item.request.id!r} is not answered yet")
        return self.process.channel.frame(p.Ask(flight.number, item.request))

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
            self._open = None
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

    def _finish_abandoned(self) -> None:
        """Wait for the end of a call that its caller left early."""
        deadline = time.monotonic() + self._hang_timeout
        while self._open is not None:
            message = self.process.receive(max(0.0, deadline - time.monotonic()))
            if message is None:
                raise WorkerDiedError("did not end a call that was abandoned")
            if isinstance(message, p.EngineFailed):
                raise EngineFailedError(f"failed ({message.message})")
            if isinstance(message, p.Done) and message.call == self._open:
                self._open = None
