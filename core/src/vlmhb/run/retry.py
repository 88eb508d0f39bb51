"""Asking a model so that one bad request cannot take others down.

Two things are asked again: requests whose result says out of memory, and requests that were in the engine's hands when
it raised an exception. They are asked in ever smaller groups until each is answered or has failed alone, twice. What
was done is in the result's notes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import msgspec

from vlmhb.contract.model import GenerationControl
from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.result import GenerationResult
from vlmhb.errors import RequestError, RunError, WorkerError

Ask = Callable[[Iterable[GenerationRequest]], Iterator[GenerationResult]]

ATTEMPTS_ALONE = 2
"""How often a request is tried alone before it counts as failed."""
FRUITLESS_GROUPS = 20
"""How many groups in a row may end in an exception, without a single answer, before the engine is given up."""


class EngineGivenUpError(RunError):
    """The engine fails on whatever it is given."""


class Retrier:
    """Wraps one loaded model's way of answering. ``ask`` must accept being called again after an exception."""

    def __init__(self, ask: Ask, control: GenerationControl) -> None:
        self._ask = ask
        self._control = control
        self._again: deque[tuple[list[GenerationRequest], str]] = deque()
        self._tried_alone: dict[str, int] = {}
        self._retried: dict[str, str] = {}
        self._fruitless = 0

    def __call__(self, requests: Iterable[GenerationRequest]) -> Iterator[GenerationResult]:
        """Answer all requests, each with exactly one result.

        Raises:
            EngineGivenUpError: the engine fails on whatever it is given.
        """
        tap = _Tap(requests, self._control)
        taken = -1
        while not tap.exhausted and not self._control.stop.is_set() and tap.taken > taken:
            taken = tap.taken
            yield from self._one_pass(tap)
        while self._again and not self._control.stop.is_set():
            group, reason = self._again.popleft()
            if len(group) > 1:
                half = (len(group) + 1) // 2
                self._again.appendleft((group[half:], reason))
                group = group[:half]
            self._retried.update((request.id, reason) for request in group)
            yield from self._one_pass(_Tap(group, self._control))

    def _one_pass(self, tap: _Tap) -> Iterator[GenerationResult]:
        out_of_memory: list[GenerationRequest] = []
        answered = 0
        try:
            for result in self._ask(tap):
                request = tap.in_flight.pop(result.id)
                if result.failure and result.failure.kind == "out_of_memory" and self._worth_trying(request, tap):
                    out_of_memory.append(request)
                    continue
                answered += 1
                yield self._with_notes(result)
        except (RunError, WorkerError, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001 - an engine may raise anything; its requests are asked again
            yield from self._engine_failed(tap, f"{type(error).__name__}: {error}")
        if tap.in_flight and not self._control.stop.is_set():
            yield from self._engine_failed(tap, "it ended without a result")
        if answered:
            self._fruitless = 0
        if out_of_memory:
            self._again.append((out_of_memory, "out of memory"))

    def _engine_failed(self, tap: _Tap, reason: str) -> Iterator[GenerationResult]:
        self._fruitless += 1
        if self._fruitless >= FRUITLESS_GROUPS:
            raise EngineGivenUpError(f"the engine fails on whatever it is asked, last with: {reason}")
        group = list(tap.in_flight.values())
        tap.in_flight.clear()
        if len(group) == 1 and not self._worth_trying(group[0], tap):
            failure = RequestError(f"the engine failed: {reason}", kind="engine")
            yield self._with_notes(GenerationResult.failed(group[0].id, failure))
        elif group:
            self._again.append((group, f"the engine failed ({reason})"))

    def _worth_trying(self, request: GenerationRequest, tap: _Tap) -> bool:
        """Whether a request that failed may be asked again: always after company, a stated number of times alone."""
        if tap.taken > 1:
            return True
        tried = self._tried_alone[request.id] = self._tried_alone.get(request.id, 0) + 1
        return tried < ATTEMPTS_ALONE

    def _with_notes(self, result: GenerationResult) -> GenerationResult:
        reason = self._retried.pop(result.id, None)
        if reason is None:
            return result
        alone = self._tried_alone.get(result.id, 0)
        note = f"asked again after: {reason}" + (f"; tried alone {alone} times" if alone > 1 else "")
        return msgspec.structs.replace(result, notes=(*result.notes, note))


class _Tap(Iterator[GenerationRequest]):
    """Passes requests to the engine and knows which of them it has taken and not answered."""

    def __init__(self, requests: Iterable[GenerationRequest], control: GenerationControl) -> None:
        self._requests = iter(requests)
        self._control = control
        self.in_flight: dict[str, GenerationRequest] = {}
        self.taken = 0
        self.exhausted = False

    def __next__(self) -> GenerationRequest:
        if self._control.stop.is_set():
            raise StopIteration
        try:
            request = next(self._requests)
        except StopIteration:
            self.exhausted = True
            raise
        self.in_flight[request.id] = request
        self.taken += 1
        return request
