"""When requests come: all at once, so many in flight at a time, or so many a second."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from vlmhb.contract.request import GenerationRequest

AT_ONCE = "all at once"
_SEED = 20261202


class Arrivals(msgspec.Struct, frozen=True):
    """A way for requests to come.

    Attributes:
        kind: ``all`` at once, as fast as the engine reads them; ``concurrency``: a further one when another is
            answered; ``rate``: at random moments, whether earlier ones are answered or not.
        value: most requests in flight, or requests a second; 0 for ``all``.
    """

    kind: Literal["all", "concurrency", "rate"] = "all"
    value: float = 0.0

    def __str__(self) -> str:
        return AT_ONCE if self.kind == "all" else f"{self.kind} {self.value:g}"

    def moments(self, count: int) -> list[float] | None:
        """For ``rate`` the moments at which requests come, in seconds: gaps are exponential, equal on every engine."""
        if self.kind != "rate":
            return None
        draw = random.Random(_SEED)
        moments, now = [], 0.0
        for _ in range(count):
            moments.append(now)
            now += draw.expovariate(self.value)
        return moments


class Feed:
    """The requests of one pass, given out as they come; the clock starts when it is made.

    Attributes:
        due: when each request came, by its id: for a rate its moment, though the engine may have read it later, else
            the moment of reading. Seconds since the start.
    """

    def __init__(self, requests: Sequence[GenerationRequest], arrivals: Arrivals) -> None:
        self._requests = requests
        self._moments = arrivals.moments(len(requests))
        self._limit = arrivals.value if arrivals.kind == "concurrency" else None
        self._given = self._answered = 0
        self.paced = arrivals.kind != "all"
        self.due: dict[str, float] = {}
        self._start = time.perf_counter()

    def now(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    def ready(self) -> bool:
        """Whether the next request has come, or there is none."""
        if self._given == len(self._requests):
            return True
        if self._moments is not None:
            return self.now() >= self._moments[self._given]
        return self._limit is None or self._given - self._answered < self._limit

    def answered(self) -> None:
        """One more request has its result."""
        self._answered += 1

    def __iter__(self) -> Iterator[GenerationRequest]:
        return self

    def __next__(self) -> GenerationRequest:
        if self._given == len(self._requests):
            raise StopIteration
        moment = self._moments[self._given] if self._moments is not None else None
        if moment is not None:
            time.sleep(max(0.0, moment - self.now()))
        request = self._requests[self._given]
        self.due[request.id] = self.now() if moment is None else moment
        self._given += 1
        return request


def sweep(concurrency: Sequence[int], rates: Sequence[float]) -> list[Arrivals]:
    """Everything that is measured: all at once first, since that is what runs do."""
    limits = [Arrivals("concurrency", float(limit)) for limit in concurrency]
    return [Arrivals(), *limits, *(Arrivals("rate", rate) for rate in rates)]
