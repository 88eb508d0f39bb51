"""What runs in SGLang's own processes: the scheduler and the detokenizer, each under a small roof.

Imports nothing of SGLang at module level: a child imports this module to find its target.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

REPORT = "VLMHB_SGLANG_REPORT"
"""Environment variable: the file to which the children write the errors that end them."""

CRASH = "hit an exception"
"""What SGLang logs, with a traceback, when one of its processes ends by an exception."""


def run_scheduler(environment: Mapping[str, str], *args: Any, **kwargs: Any) -> None:
    """Target of a scheduler's process; ``args`` are those of SGLang's own target."""
    _run(_scheduler, environment, args, kwargs)


def run_detokenizer(environment: Mapping[str, str], *args: Any, **kwargs: Any) -> None:
    """Target of the detokenizer's process; ``args`` are those of SGLang's own target."""
    _run(_detokenizer, environment, args, kwargs)


def _scheduler(server_args: Any, port_args: Any, *args: Any, **kwargs: Any) -> None:
    from sglang.srt.managers.load_snapshot import shm_path_for
    from sglang.srt.managers.scheduler import run_scheduler_process

    from vlmhb_sglang import fallback
    from vlmhb_sglang.grammar import write_compact_json
    from vlmhb_sglang.settings import MODEL_IMPL

    write_compact_json()
    if server_args.model_impl == MODEL_IMPL["native"]:
        fallback.refuse()
    try:
        run_scheduler_process(server_args, port_args, *args, **kwargs)
    finally:
        Path(shm_path_for(port_args.instance_id)).unlink(missing_ok=True)


def _detokenizer(*args: Any, **kwargs: Any) -> None:
    from sglang.srt.managers.detokenizer_manager import run_detokenizer_process

    run_detokenizer_process(*args, **kwargs)


def _run(target: Callable[..., None], environment: Mapping[str, str], args: Any, kwargs: Any) -> None:
    _take_environment(environment)
    threading.Thread(target=_end_with_parent, name="vlmhb-parent-watch", daemon=True).start()
    report = Report(os.environ[REPORT])
    logging.getLogger("sglang").addHandler(report)
    try:
        target(*args, **kwargs)
    except BaseException as error:
        report.write(f"{type(error).__name__}: {error}")
        logging.getLogger("sglang").exception("%s ended", target.__name__)
        raise
    finally:
        # SGLang's targets swallow their exception and return; threads that they leave would keep the process alive.
        logging.shutdown()
        os._exit(1)


def _take_environment(environment: Mapping[str, str]) -> None:
    """A process made by the fork server has the environment of the time when that server was started.

    Only differences are written: the process's title is kept where its first environment lies.
    """
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _end_with_parent() -> None:
    """End this process when the one that started SGLang has ended, however it ended.

    SGLang asks the kernel for that, but of a process made by the fork server the kernel knows the server as parent.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class Report(logging.Handler):
    """Keeps the reason of a crash in a file, since the exception itself does not leave SGLang's process."""

    def __init__(self, path: str) -> None:
        super().__init__(logging.ERROR)
        self._path = Path(path)

    def emit(self, record: logging.LogRecord) -> None:
        """Write down the last line of a crash's traceback; other records are for the log only."""
        message = record.getMessage()
        if CRASH in message:
            self.write(last_words(message))

    def write(self, reason: str) -> None:
        """Add a reason to the file."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(reason.strip() + "\n")


def last_words(traceback: str) -> str:
    """The exception at the end of a formatted traceback, with the lines of its message."""
    lines = traceback.rstrip().splitlines()
    start = max((index for index, line in enumerate(lines) if line.startswith(" ")), default=-1)
    return " ".join(line.strip() for line in lines[start + 1 :])
