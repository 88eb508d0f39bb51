"""How a worker is started: which Python, which limits, which log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The environment that a worker is started from.

    Attributes:
        python: its Python executable.
        env: environment variables that its recipe sets.
        environment: what to call it in messages and in the run's manifest.
        freeze: exact versions of what it holds, one ``name==version`` each; empty when nobody recorded them.
    """

    python: str
    env: dict[str, str] = {}
    environment: str = "this environment"
    freeze: tuple[str, ...] = ()

    @classmethod
    def here(cls) -> Launch:
        """The environment that this process runs in."""
        return cls(python=sys.executable)

    def command(self, arguments: list[str]) -> list[str]:
        """The command line of ``vlmhb.worker``; ``-P`` keeps modules of the working directory out."""
        return [self.python, "-P", "-m", "vlmhb.worker", *arguments]

    def environ(self) -> dict[str, str]:
        """The environment variables of the worker.

        Output is not buffered and crashes leave a Python traceback, so that the log ends with what happened. The
        environment's own programs (compilers' helpers that engines call, such as ninja) come first in ``PATH``.
        """
        values = {**os.environ, **self.env, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
        root = Path(self.python).parent
        values["PATH"] = f"{root}{os.pathsep}{values.get('PATH', os.defpath)}"
        if self.python != sys.executable:
            for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"):
                values.pop(name, None)
            values["VIRTUAL_ENV"] = str(root.parent)
        return values


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a worker, in seconds where they are times.

    Attributes:
        log_path: file that everything the worker and its children print is appended to; above 64 MiB its older part
            is dropped. None takes a file in the temporary folder, removed when the model is closed without trouble.
        max_restarts: how often a dead worker is started again in a row without one request answered in between;
            also how many requests in a row may be found to be what kills it.
        hang_timeout: a worker that has work and gives no result, text or step for so long counts as dead.
        load_timeout: most time for loading the model, downloads included.
        start_timeout: most time for starting Python and importing the plugin.
        close_timeout: time to give the model back before the processes are ended by force.
        same_process: load another model into the process that is there already, which imports nothing anew.
        on_event: told in one sentence what happens (a death, a restart), for a progress display.
    """

    log_path: str | None = None
    max_restarts: int = 3
    hang_timeout: float = 600.0
    load_timeout: float = 3600.0
    start_timeout: float = 180.0
    close_timeout: float = 20.0
    same_process: bool = False
    on_event: Callable[[str], None] | None = None
