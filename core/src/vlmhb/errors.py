"""Every error that vlmhb raises on purpose.

::

    VlmhbError
    ├── ConfigError           a config file, its rows or a command-line value; carries every fault found
    ├── DatasetError          a dataset as a whole cannot be read
    ├── PluginError           a plugin cannot be loaded or broke the contract
    ├── BackendNotFoundError  no installed plugin offers the backend that was asked for
    ├── MissingPackageError   an optional package is needed; says what to install
    ├── ModelLoadError        the engine refused the model
    ├── RequestError          one request cannot be served; becomes that request's result
    │   └── ImageError        one image cannot be read or is out of limits
    ├── GenerationError       ``ModelInterface.generate`` had requests that failed
    ├── WorkerError           a worker process died more often than is allowed
    │   └── WorkerStartError  it cannot be started
    ├── ManagedEnvironmentError  an engine's environment cannot be made or used
    └── RunError              a run folder cannot be used or written

A message is a sentence for the person at the keyboard: what is wrong, where, what to do. The command line
prints it without a traceback; ``--debug`` shows the traceback too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

ErrorKind = Literal["image", "invalid_request", "out_of_memory", "too_long", "unsupported", "engine", "worker_died"]
"""Why one request failed. ``out_of_memory`` is asked again in smaller groups; the others are not."""


_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]")


def printable(text: str) -> str:
    """A message without control characters, which may stand in what it quotes and would reach the terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


class VlmhbError(Exception):
    """Base of all errors that vlmhb raises on purpose."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault in a file that a user wrote.

    ``row`` counts records below the header from 1; ``line`` counts physical lines from 1 (the header's is 1).
    """

    message: str
    file: str | None = None
    row: int | None = None
    line: int | None = None
    column: str | None = None
    value: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = [self.file] if self.file else []
        if self.row is not None:
            place.append(f"row {self.row}" + (f" (line {self.line})" if self.line is not None else ""))
        elif self.line is not None:
            place.append(f"line {self.line}")
        if self.column is not None:
            place.append(f"column {self.column}")
        text = ", ".join(place)
        text += f": {self.message}" if text else self.message
        return f"{text} {self.hint}" if self.hint else text


class ConfigError(VlmhbError):
    """A config was refused; ``faults`` holds every fault that was found, in file order."""

    def __init__(self, faults: Sequence[Fault] | str) -> None:
        self.faults: tuple[Fault, ...] = (Fault(message=faults),) if isinstance(faults, str) else tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class DatasetError(VlmhbError):
    """A dataset as a whole cannot be read (no annotation, a missing column)."""


class PluginError(VlmhbError):
    """A plugin cannot be loaded, or it broke the contract."""


class BackendNotFoundError(VlmhbError):
    """No installed plugin offers the backend that was asked for."""


class MissingPackageError(VlmhbError):
    """An optional package is needed; the message holds the command that installs it."""


class ModelLoadError(VlmhbError):
    """The engine refused the model, or the model's folder is not usable."""


class RequestError(VlmhbError):
    """One request cannot be served. Engines and core helpers raise it; the request's result then carries it."""

    def __init__(self, message: str, kind: ErrorKind = "invalid_request") -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind


class ImageError(RequestError):
    """One image cannot be read or is out of limits; the message names the file."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="image")


class GenerationError(VlmhbError):
    """Some requests of one ``generate`` call failed; ``errors`` maps their index to the reason."""

    def __init__(self, errors: dict[int, str]) -> None:
        self.errors = errors
        lines = [f"prompt {index}: {reason}" for index, reason in errors.items()]
        super().__init__(f"{len(errors)} of the prompts could not be answered:\n" + "\n".join(lines))


class RunError(VlmhbError):
    """A run folder cannot be used or written."""


class WorkerError(VlmhbError):
    """A worker process cannot be started, or died more often than is allowed; the message holds its log's tail."""


class WorkerStartError(WorkerError):
    """A worker process cannot be started, or holds another version of vlmhb; no model has to do with it."""


class ManagedEnvironmentError(VlmhbError):
    """An engine's environment cannot be made, found or used."""
