"""Requests on their way to the engine: read lazily, prepared in a thread of their own, one image's together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from vlmhb import GenerationRequest

if TYPE_CHECKING:
    from vlmhb.prompting import PreparedPrompt

PATIENCE = 0.05
"""Seconds that reading may take in one go while the engine has work to do."""


class Waiting(NamedTuple):
    """A request that is being prepared, or is ready."""

    request: GenerationRequest
    prepared: Future[PreparedPrompt]


class Queue:
    """Reads requests when there is room, and prepares them while the engine computes.

    One thread prepares, since a tokenizer is not safe in two; the iterable itself is read in the caller's thread.

    Args:
        requests: what is asked; it may be endless, or slow.
        prepare: makes of a request what the engine takes; its exceptions come out at :meth:`Future.result`.
        room: how many requests may wait here.
    """

    def __init__(
        self, requests: Iterable[GenerationRequest], prepare: Callable[[GenerationRequest], PreparedPrompt], room: int
    ):
        self._source = iter(requests)
        self._prepare = prepare
        self._room = room
        self._waiting: list[Waiting] = []
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vlmhb-prepare")
        self._last_images: object = None
        self.ended = False

    def __len__(self) -> int:
        return len(self._waiting)

    def read(self, *, busy: bool, may_read: Callable[[], bool] = lambda: True) -> None:
        """Read until there is no room left, or, when there is work to do, until reading gets slow or would wait.

        Args:
            busy: whether the engine has requests.
            may_read: whether the next request can be had now.
        """
        started = time.monotonic()
        while not self.ended and len(self._waiting) < self._room:
            if (busy or self._waiting) and not may_read():
                return
            try:
                request = next(self._source)
            except StopIteration:
                self.ended = True
                return
            self._waiting.append(Waiting(request, self._pool.submit(self._prepare, request)))
            if (busy or self._waiting[0].prepared.done()) and time.monotonic() - started > PATIENCE:
                return

    def take(self, *, wait: bool) -> Waiting | None:
        """The next request: about the images of the one before it if there is one, else the oldest.

        Requests about one image then follow each other, and find its tokens in the prefix cache.

        Args:
            wait: wait for its preparation; otherwise None when it is not ready yet.
        """
        if not self._waiting:
            return None
        same = (i for i, entry in enumerate(self._waiting) if entry.request.images == self._last_images)
        index = next(same, 0)
        if not wait and not self._waiting[index].prepared.done():
            return None
        entry = self._waiting.pop(index)
        self._last_images = entry.request.images
        return entry

    def close(self) -> None:
        """Forget what waits; read nothing more."""
        self.ended = True
        for entry in self._waiting:
            entry.prepared.cancel()
        self._waiting.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)
