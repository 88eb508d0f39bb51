"""One pass over requests: into the engine as there is room, out of it the moment each is finished."""

from __future__ import annotations

import itertools
import os
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from vlmhb import GenerationControl, GenerationRequest, GenerationResult
from vlmhb.errors import RequestError

from vlmhb_sglang.answers import refused, to_result
from vlmhb_sglang.asking import Asking, Question
from vlmhb_sglang.engine import HostedEngine
from vlmhb_sglang.pump import Pump

_POLL = 0.1
"""Seconds after which a pass that waits for the engine looks whether it should stop."""
_PACED_POLL = 0.002
"""The same while requests may come that are not there yet."""

_numbers = itertools.count()


class EngineDiedError(RuntimeError):
    """A process of the engine has ended; the model must be loaded again."""


@dataclass(eq=False)
class Flight:
    """A request on its way.

    Attributes:
        request: what is asked.
        name: the engine's name for it.
        dropped: the caller does not want it any more.
        started: the engine has made a token of it.
        shown: characters of its answer that were passed on.
    """

    request: GenerationRequest
    name: str
    dropped: bool = False
    started: bool = False
    shown: int = 0


class Piece(NamedTuple):
    """New text of an answer."""

    id: str
    text: str


Event = Piece | GenerationResult | EngineDiedError


class Serving:
    """Answers the requests of one call.

    Three threads take part: the caller's reads requests and yields results, one prepares prompts, and the pump's
    talks to the engine. Only the caller's runs the caller's code.

    Args:
        engine: the engine.
        pump: its event loop.
        asking: makes the engine's questions; used by one thread.
        answer_text: request, output ids -> the answer's text.
        control: when to stop, and where text goes as it appears.
        limit: most requests that are unfinished at a time.
    """

    def __init__(
        self,
        engine: HostedEngine,
        pump: Pump,
        asking: Asking,
        answer_text: Callable[[GenerationRequest, list[int]], str],
        control: GenerationControl,
        limit: int,
    ) -> None:
        self._engine = engine
        self._pump = pump
        self._asking = asking
        self._answer_text = answer_text
        self._control = control
        self._limit = limit
        self._streaming = control.on_text is not None
        self._flights: dict[str, Flight] = {}
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._preparing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vlmhb-prepare")

    def answer(self, requests: Iterable[GenerationRequest]) -> Iterator[GenerationResult]:
        """Yield each request's result when it is finished; see ``ModelInterface.generate_requests``."""
        source = iter(requests)
        ended = False
        try:
            while True:
                if self._control.stop.is_set():
                    ended = True
                    self._drop(only_unstarted=True)
                room = not ended and len(self._flights) < self._limit
                if room and self._events.empty() and self._control.may_read(busy=bool(self._flights)):
                    request = next(source, None)
                    ended = request is None
                    if request is not None:
                        self._begin(request)
                elif self._flights:
                    yield from self._next_result(_PACED_POLL if room and self._control.ready else _POLL)
                else:
                    return
        finally:
            self._drop(only_unstarted=False)
            self._preparing.shutdown(wait=True, cancel_futures=True)

    def engine_died(self, reason: str) -> None:
        """Tell the caller that the engine has ended. Called from the pump's thread."""
        self._events.put(EngineDiedError(f"SGLang has ended: {reason}"))

    # --- the caller's thread

    def _begin(self, request: GenerationRequest) -> None:
        # SGLang takes back every request whose name begins with the one it is told: hence the dot at the end.
        flight = Flight(request, f"vlmhb-{os.getpid()}-{next(_numbers)}.")
        self._flights[request.id] = flight
        self._preparing.submit(self._prepare, flight)

    def _next_result(self, timeout: float) -> Iterator[GenerationResult]:
        try:
            event = self._events.get(timeout=timeout)
        except queue.Empty:
            return
        if isinstance(event, EngineDiedError):
            raise event
        if isinstance(event, Piece):
            if self._control.on_text is not None:
                self._control.on_text(event.id, event.text)
            return
        del self._flights[event.id]
        yield event

    def _drop(self, *, only_unstarted: bool) -> None:
        """Take requests back from the engine; each still gets an event."""
        for flight in self._flights.values():
            if not flight.dropped and not (only_unstarted and flight.started):
                flight.dropped = True
                self._pump.call(self._engine.tokenizer_manager.abort_request, flight.name)

    # --- the preparing thread

    def _prepare(self, flight: Flight) -> None:
        try:
            if flight.dropped:
                self._events.put(_skipped(flight))
                return
            question = self._asking.question(flight.request, flight.name, streaming=self._streaming)
        except RequestError as error:
            self._events.put(GenerationResult.failed(flight.request.id, error))
        except Exception as error:  # noqa: BLE001 - a processor's own code runs in there, and may raise anything
            problem = RequestError(f"the prompt cannot be made: {type(error).__name__}: {error}", "engine")
            self._events.put(GenerationResult.failed(flight.request.id, problem))
        else:
            self._pump.submit(self._ask(flight, question))

    # --- the pump's thread

    async def _ask(self, flight: Flight, question: Question) -> None:
        try:
            output = await self._listen(flight, question)
            result = self._result(flight, question, output)
        except RequestError as error:
            result = GenerationResult.failed(flight.request.id, error, question.notes)
        except Exception as error:  # noqa: BLE001 - SGLang raises many kinds for requests that it does not take
            result = GenerationResult.failed(flight.request.id, refused(str(error)), question.notes)
        self._events.put(_skipped(flight) if flight.dropped and not result.ok else result)

    async def _listen(self, flight: Flight, question: Question) -> dict[str, Any]:
        """The engine's last output for a question."""
        if flight.dropped:
            raise RequestError("it was taken back", "engine")
        output: dict[str, Any] = {}
        async for output in await self._engine.async_generate(**question.arguments):
            flight.started = True
            self._control.step()
            if self._streaming:
                self._show(flight, output["text"])
        return output

    def _result(self, flight: Flight, question: Question, output: dict[str, Any]) -> GenerationResult:
        text = self._answer_text(flight.request, list(output["output_ids"]))
        result = to_result(flight.request, question, output, text=text)
        if self._streaming:
            self._show(flight, text)
        return result

    def _show(self, flight: Flight, text: str) -> None:
        piece = text[flight.shown :]
        if piece:
            flight.shown = len(text)
            self._events.put(Piece(flight.request.id, piece))


def _skipped(flight: Flight) -> GenerationResult:
    return GenerationResult(id=flight.request.id, finish_reason="skipped")
