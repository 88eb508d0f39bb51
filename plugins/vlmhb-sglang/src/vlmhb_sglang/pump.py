"""An event loop in a thread of its own, for an engine whose interface is asynchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from multiprocessing.process import BaseProcess
from typing import Any

_END_SECONDS = 5.0


class Pump:
    """Runs coroutines in a background thread, and says when one of some processes ends.

    Args:
        processes: whose end to notice.
        on_end: called once, in the background thread, when the first of them has ended.
    """

    def __init__(self, processes: Iterable[BaseProcess], on_end: Callable[[], None]) -> None:
        self._loop = asyncio.new_event_loop()
        self._on_end: Callable[[], None] | None = on_end
        for process in processes:
            self._loop.add_reader(process.sentinel, self._ended, process.sentinel)
        self._thread = threading.Thread(target=self._loop.run_forever, name="vlmhb-sglang-loop", daemon=True)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine; it has to deal with its own exceptions. Callable from any thread."""
        asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def call(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function in the background thread; nothing once it has been stopped. Callable from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    def stop(self) -> None:
        """Cancel what is running and end the thread."""
        self._on_end = None
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result(_END_SECONDS)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_SECONDS)
        if not self._loop.is_running():
            self._loop.close()

    def _ended(self, sentinel: int) -> None:
        self._loop.remove_reader(sentinel)
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
