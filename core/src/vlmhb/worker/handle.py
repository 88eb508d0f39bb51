"""One backend's worker process from its start to its end: started, prepared, opened, a model loaded, ended."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from vlmhb import errors
from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.model import ModelSpec
from vlmhb.errors import PluginError, VlmhbError, WorkerError
from vlmhb.worker import protocol as p
from vlmhb.worker.launch import Launch, WorkerOptions
from vlmhb.worker.process import TAIL_LINES, WorkerDiedError, WorkerProcess


class WorkerHandle:
    """The process that is there, if one is, and what it said about itself. After :meth:`end` another may be started.

    Attributes:
        process: None while there is none.
        info: what the backend said about itself the last time.
        facts: what the engine decided when it loaded its model.
        seconds: where the time went until it was there, by step.
        prepared: whether its engine was imported ahead.
    """

    def __init__(self, backend: str, launch: Launch, options: WorkerOptions) -> None:
        """Nothing is started yet. Args as those of :class:`vlmhb.worker.model.WorkerModel`."""
        self._backend = backend
        self._launch = launch
        self._options = options
        self._log: Path | None = None
        self._opened = False
        self.process: WorkerProcess | None = None
        self.info: BackendInfo | None = None
        self.facts: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.prepared = False

    def prepare(self, spec: ModelSpec) -> None:
        """Start it and let it import what a model needs; waits for nothing, and no failure is told."""
        self._spawn().send(p.Prepare(spec))
        self.prepared = True

    def open(self) -> BackendInfo:
        """Start it, unless it is there, and wait until its plugin is imported.

        Raises:
            WorkerError: it died, or could not be started.
            VlmhbError: its plugin cannot be used.
        """
        process = self._spawn()
        if not self._opened:
            try:
                self.seconds["worker"] = process.greet(self._options.start_timeout)
                self.info = self._await(process, self._options.start_timeout).info
                self._opened = True
            except WorkerDiedError as death:
                message = self.report(f"the worker {death.reason} while it imported backend {self._backend}")
                self.end(0.0)
                raise WorkerError(message) from None
            except VlmhbError:
                self.end(0.0)
                raise
        assert self.info is not None
        return self.info

    def load(self, spec: ModelSpec) -> None:
        """Load a model, in the process that is there or in a new one.

        Raises:
            WorkerDiedError: it died of it, or took longer than ``load_timeout``.
            VlmhbError: the engine refused the model, or as :meth:`open`.
        """
        self.open()
        assert self.process is not None
        self.process.send(p.Load(spec))
        loaded = self._await(self.process, self._options.load_timeout)
        self.facts, self.info = loaded.facts, loaded.info
        self.seconds.update(loaded.seconds)

    def replace_dead(self) -> None:
        """A worker that died while it was prepared beside another model gets its chance without that one."""
        if self.prepared and self.process is not None:
            try:
                self.process.check()
            except WorkerDiedError:
                self.end(0.0)

    def end(self, patience: float) -> None:
        """End the process and all below it: ask, wait for ``patience`` seconds, terminate, kill."""
        process, self.process = self.process, None
        if process is None:
            return
        clean = patience > 0 and _closed_in_time(process, patience)
        process.end(min(2.0, max(1.0, patience)))
        if clean and self._options.log_path is None:
            process.log_path.unlink(missing_ok=True)
            self._log = None

    def report(self, sentence: str, lines: int = TAIL_LINES) -> str:
        """The sentence with the log's name and last lines, while there is a process."""
        return self.process.report(sentence, lines) if self.process else sentence

    def _spawn(self) -> WorkerProcess:
        if self.process is None:
            self.process = WorkerProcess(self._launch, self._log_file())
            self.process.send(p.Open(self._backend))
            self._opened = self.prepared = False
            self.seconds = {}
        return self.process

    def _log_file(self) -> Path:
        if self._log is None and self._options.log_path is not None:
            self._log = Path(self._options.log_path)
            self._log.parent.mkdir(parents=True, exist_ok=True)
        elif self._log is None:
            with tempfile.NamedTemporaryFile(prefix=f"vlmhb-{self._backend}-", suffix=".log", delete=False) as file:
                self._log = Path(file.name)
        return self._log

    def _await(self, process: WorkerProcess, timeout: float) -> Any:
        """Wait for what answers an order; a refusal is raised as the error it was."""
        deadline = time.monotonic() + timeout
        while (remaining := deadline - time.monotonic()) > 0:
            message = process.receive(remaining)
            if isinstance(message, p.Refused):
                kind = getattr(errors, message.error, PluginError)
                raise kind(message.message) if issubclass(kind, VlmhbError) else PluginError(message.message)
            if isinstance(message, p.Opened | p.Loaded):
                return message
        raise WorkerDiedError(f"did not finish within {timeout:.0f} s")


def _closed_in_time(process: WorkerProcess, patience: float) -> bool:
    deadline = time.monotonic() + patience
    closed = False
    try:
        process.send(p.Close())
        while (remaining := deadline - time.monotonic()) > 0:
            closed = isinstance(process.receive(remaining), p.Closed) or closed
    except (WorkerDiedError, WorkerError):
        return closed
    return False
