"""How SGLang's processes are made: quickly, and without running the user's script again."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver

PRELOAD = ["sglang.srt.managers.scheduler", "sglang.srt.managers.detokenizer_manager"]


class ForkServer:
    """Python's fork server with SGLang imported, for SGLang's processes on a CPU.

    A spawned process imports SGLang anew, 25 s of computing in each; those that the server makes have it already. It
    imports while this process does. With CUDA processes are spawned as SGLang does it: CUDA does not survive a fork.
    """

    _early = False

    def __init__(self) -> None:
        self._ours = self._start() or ForkServer._early
        ForkServer._early = False

    @classmethod
    def start_early(cls) -> None:
        """Start the server for the next one that is made."""
        cls._early = cls._start() or cls._early

    @staticmethod
    def _start() -> bool:
        """Start the server; False when there is one already."""
        if forkserver._forkserver._forkserver_pid is not None:
            return False
        multiprocessing.set_forkserver_preload(PRELOAD)
        forkserver.ensure_running()
        return True

    def stop(self) -> None:
        """End the server, unless it was there before; the processes that it made must have ended."""
        if self._ours:
            self._ours = False
            multiprocessing.set_forkserver_preload(["__main__"])  # Python's default
            server = forkserver._forkserver
            with contextlib.suppress(ProcessLookupError):
                os.kill(server._forkserver_pid, signal.SIGKILL)  # by itself it takes 4 s, for nothing
            server._stop()


@contextmanager
def guarded_launch() -> Iterator[None]:
    """Around the start of an engine: new processes do not import ``__main__``, and the start method is kept.

    Python would import the user's script in each new process, which starts everything once more unless the script
    has the well-known guard; SGLang's processes need nothing from it. SGLang sets the start method for good.
    """
    main = sys.modules["__main__"]
    file, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    method = multiprocessing.get_start_method(allow_none=True)
    main.__spec__ = None
    main.__dict__.pop("__file__", None)
    try:
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file
        multiprocessing.set_start_method(method, force=True)
