"""What to ask again after a worker died, and in which company, so that the culprit is found and nobody else pays.

Requests that the engine had not taken are innocent and simply asked again. Those it had taken are suspects. They
are asked again in groups of about the square root of their number, apart from all others; when a group kills the
worker again, its members are asked one by one. A request that was alone in flight when the worker died, and had
been in flight at a death before, gets a failure as its result. So a culprit among 256 suspects costs three deaths
(256, 16, 1), and its neighbours nothing but the time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.result import GenerationResult
from vlmhb.errors import ErrorKind, RequestError


class Item(msgspec.Struct, kw_only=True, eq=False):
    """One request on its way to an answer.

    Attributes:
        request: what is asked.
        deaths: how often the worker died while the engine had it.
        streamed: how many characters of its answer were passed on, in all attempts together.
        position: how many came in this attempt.
        notes: what happened to it, for its result.
    """

    request: GenerationRequest
    deaths: int = 0
    streamed: int = 0
    position: int = 0
    notes: tuple[str, ...] = ()

    def finish(self, result: GenerationResult) -> GenerationResult:
        """The result with this item's notes."""
        return msgspec.structs.replace(result, notes=result.notes + self.notes) if self.notes else result

    def failed(self, message: str, kind: ErrorKind) -> GenerationResult:
        """The result of a request that got no answer."""
        return GenerationResult.failed(self.request.id, RequestError(message, kind), self.notes)

    def new_text(self, piece: str) -> str:
        """What of a piece of the answer was not passed on in an attempt before."""
        fresh = piece[max(0, self.streamed - self.position) :]
        self.position += len(piece)
        self.streamed = max(self.streamed, self.position)
        return fresh

    def skipped(self) -> GenerationResult:
        """The result of a request that was not started since the caller said stop."""
        return GenerationResult(id=self.request.id, finish_reason="skipped", notes=self.notes)


class Round(msgspec.Struct, eq=False):
    """Requests that are asked in one company.

    Attributes:
        items: what to ask, read as the worker wants more.
        suspects: whether these are a group of suspects, and no others.
    """

    items: Iterator[Item]
    suspects: bool


class Queue:
    """The requests of one call: those still in the caller's iterable, those to be asked again, and the suspects."""

    def __init__(self, requests: Iterable[GenerationRequest]) -> None:
        self._source = iter(requests)
        self._again: deque[Item] = deque()
        self._groups: deque[list[Item]] = deque()
        self._exhausted = False

    def has_more(self) -> bool:
        """Whether anything is left to ask; reads one request ahead to know it."""
        if not (self._groups or self._again or self._exhausted):
            request = next(self._source, None)
            if request is None:
                self._exhausted = True
            else:
                self._again.append(Item(request=request))
        return bool(self._groups or self._again)

    def next_round(self) -> Round:
        """One group of suspects or, when there is none, everybody else, lazily."""
        if self._groups:
            return Round(iter(self._groups.popleft()), True)
        return Round(self._others(), False)

    def _others(self) -> Iterator[Item]:
        while self._again:
            yield self._again.popleft()
        for request in self._source:
            yield Item(request=request)
        self._exhausted = True

    def died(
        self, round: Round, taken: list[Item], untaken: list[Item], reason: str, kind: ErrorKind
    ) -> list[GenerationResult]:
        """Sort the requests of a round that a death ended; returns the results of those that are given up.

        Args:
            round: the round.
            taken: those the engine had and did not answer, in the order taken.
            untaken: those sent to the worker that the engine did not have.
            reason: how the worker ended, as a clause.
            kind: kind of the failure when a request is given up.
        """
        if not round.suspects:
            self._again.extendleft(reversed(untaken))
        elif left := [*untaken, *round.items]:  # not cleared yet, so they stay among themselves
            self._groups.appendleft(left)
        for item in taken:
            item.deaths += 1
            item.position = 0
        if len(taken) == 1 and taken[0].deaths >= 2:
            times = taken[0].deaths
            message = f"the worker {reason} each of the {times} times it had this request, the last time with no other"
            return [taken[0].failed(message, kind)]
        size = 1 if any(item.deaths >= 2 for item in taken) else max(1, math.isqrt(len(taken)))
        for item in taken:
            item.notes = (*item.notes, f"asked again: the worker {reason} while it had this request")
        groups = [taken[start : start + size] for start in range(0, len(taken), size)]
        self._groups.extendleft(reversed(groups))
        return []

    def skip_all(self) -> list[GenerationResult]:
        """The results of all that were read from the caller and are not to be asked any more."""
        items = [item for group in self._groups for item in group] + list(self._again)
        self._groups.clear()
        self._again.clear()
        return [item.skipped() for item in items]


class Restarts:
    """Counts restarts in a row without an answered request in between.

    Finding a culprit is an outcome too, so the deaths that it took do not count any more; but more culprits in a row
    than ``limit``, with no answer in between, show that it is the engine and not the requests.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._deaths = 0
        self._culprits = 0

    def answered(self) -> None:
        """The engine answered a request: the worker is good."""
        self._deaths = self._culprits = 0

    def culprit_found(self) -> None:
        """A request got a failure as its result."""
        self._deaths = 0
        self._culprits += 1

    def another(self) -> bool:
        """Whether one more restart is allowed; it counts from then on."""
        self._deaths += 1
        return self._deaths <= self.limit and self._culprits <= self.limit
