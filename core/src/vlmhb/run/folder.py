"""The run's folder: names of its files, and the lock that keeps a second process out."""

from __future__ import annotations

import fcntl
import itertools
import re
from collections.abc import Container
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from vlmhb.errors import RunError
from vlmhb.whole import written_whole

_LONGEST_NAME = 60
"""Most characters of a log's name: of up to four bytes each, and file systems take 255."""


class RunFolder:
    """A run's folder, held exclusively while used as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "run.sqlite"
        self.answers = path / "answers.csv"
        self.metrics = path / "metrics"
        self.report = path / "report"
        self.manifest = path / "manifest.json"
        self.logs = path / "logs"
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        """Make the folder and lock it.

        Raises:
            RunError: it cannot be made, or another process is using it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = (self.path / ".lock").open("a+")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(f"another process is using the run folder {self.path}; wait for it, or use --out") from error
        except OSError as error:
            raise RunError(f"the run folder {self.path} cannot be used: {error.strerror}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def log(self, *names: str, taken: Container[Path] = ()) -> Path:
        """The file for what a worker prints, called by its backend's and its model's name.

        Args:
            names: what to call it; characters that a file's name cannot have become dashes.
            taken: files of others; where one of them has the name, a number is put behind it.
        """
        name = re.sub(r"[^\w.]+", "-", "-".join(names))[:_LONGEST_NAME].strip("-")
        numbered = (self.logs / f"{name}-{number}.log" for number in itertools.count(2))
        return next(path for path in itertools.chain([self.logs / f"{name}.log"], numbered) if path not in taken)

    def replace_text(self, path: Path, text: str) -> None:
        """Write a text file so that it is either the old one or the new one, never half.

        Raises:
            RunError: it cannot be written.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with written_whole(path) as beside:
                beside.write_text(text, encoding="utf-8")
        except OSError as error:
            raise RunError(f"{path} cannot be written: {error.strerror}") from error
