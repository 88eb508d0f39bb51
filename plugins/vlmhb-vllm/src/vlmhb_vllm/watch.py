"""A killed engine process is noticed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

LOOK = 0.5
"""Seconds between two looks at the engine's process."""


@contextlib.contextmanager
def death_watch(client: Any) -> Iterator[None]:
    """While the body runs, end a wait for the outputs of an engine process that is gone.

    vLLM's own monitor marks the engine as dead, but the thread that waits for its next outputs would wait for ever:
    nothing comes through a socket whose other side was killed. An engine in this process needs no watch.

    Args:
        client: vLLM's engine core client (``LLMEngine.engine_core``).
    """
    outputs = getattr(client, "outputs_queue", None)
    if outputs is None:
        yield
        return
    from vllm.v1.engine.exceptions import EngineDeadError

    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK):
            if client.resources.engine_dead:
                outputs.put_nowait(EngineDeadError())
                return

    thread = threading.Thread(target=watch, name="vlmhb-vllm-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
