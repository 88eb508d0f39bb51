"""What goes over the socket between vlmhb and a worker.

A frame is its length (four bytes, big-endian) and one message in MessagePack; a message is one of the structs
below, told apart by its tag. Nothing is pickled and nothing is executed, so neither side trusts the other more
than its types say. ``Hello`` comes first and never changes, so that two versions can refuse each other in words.

One ``generate_requests`` call is one *call* with a number. The worker grants *credits*; each lets the caller send
one more request. So an endless iterable is read only as fast as the engine takes it, and a few requests always
wait in the worker for an engine that wants one.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Iterable
from typing import Any

import msgspec

from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.model import ModelSpec
from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.result import GenerationResult
from vlmhb.errors import WorkerError

PROTOCOL_VERSION = 3
"""Raised with every change to the messages."""

MAX_FRAME = 2**32 - 1
_READ = 1 << 18


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """Worker, first of all: who it is. Fields may be added, never taken away.

    ``at`` is its ``time.monotonic()``, which all processes of a machine share.
    """

    protocol: int
    contract: int
    core: str
    python: str
    pid: int
    at: float = 0.0


class Open(msgspec.Struct, frozen=True, tag="open"):
    """To the worker: import this backend's plugin."""

    backend: str


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """Worker: the plugin is there."""

    info: BackendInfo


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """To the worker: import what loading this model needs. Not answered; what fails is told when it is loaded."""

    spec: ModelSpec


class Load(msgspec.Struct, frozen=True, tag="load"):
    """To the worker: load a model."""

    spec: ModelSpec


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """Worker: the model is ready; ``seconds`` is what the steps to it took."""

    facts: dict[str, Any]
    info: BackendInfo
    seconds: dict[str, float] = {}


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Worker: ``Open`` or ``Load`` failed; ``error`` is the name of a class of :mod:`vlmhb.errors`."""

    error: str
    message: str


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """To the worker: requests of a new call follow.

    ``stream`` asks for text as it is made; ``paced`` says that the requests come over time.
    """

    call: int
    stream: bool
    paced: bool = False


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """To the worker: one request."""

    call: int
    request: GenerationRequest


class NoMore(msgspec.Struct, frozen=True, tag="no_more"):
    """To the worker: the call has no further requests."""

    call: int


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """To the worker: start no further request; with ``abort``, do not even finish those that were started."""

    call: int
    abort: bool


class Credits(msgspec.Struct, frozen=True, tag="credits"):
    """Worker: so many more requests may be sent."""

    call: int
    count: int


class Taken(msgspec.Struct, frozen=True, tag="taken"):
    """Worker: the engine has taken this request; sent before the engine sees it."""

    call: int
    id: str


class TextDelta(msgspec.Struct, frozen=True, tag="text"):
    """Worker: a new piece of an answer."""

    call: int
    id: str
    text: str


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """Worker: one result."""

    call: int
    result: GenerationResult


class Done(msgspec.Struct, frozen=True, tag="done"):
    """Worker: the call is over; requests it had been sent and did not answer were not started."""

    call: int


class EngineFailed(msgspec.Struct, frozen=True, tag="engine_failed"):
    """Worker: the engine raised; its traceback is in the log."""

    call: int
    message: str


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat"):
    """Worker, all the time: it lives; ``steps`` is the engine's own count of its progress."""

    steps: int


class Close(msgspec.Struct, frozen=True, tag="close"):
    """To the worker: give the model back and end."""


class Closed(msgspec.Struct, frozen=True, tag="closed"):
    """Worker: the model is closed; the process ends now."""


ToWorker = Open | Prepare | Load | Begin | Ask | NoMore | Stop | Close
FromWorker = (
    Hello | Opened | Loaded | Refused | Credits | Taken | TextDelta | Answer | Done | EngineFailed | Heartbeat | Closed
)


def wait_readable(files: Iterable[int], timeout: float) -> list[int]:
    """Which of these file descriptors can be read within ``timeout`` seconds; numbers above 1023 are no problem."""
    poll = select.poll()
    for number in files:
        poll.register(number, select.POLLIN)
    return [number for number, _ in poll.poll(max(0.0, timeout) * 1000)]


class Channel:
    """One end of the socket. Sending is safe from several threads, receiving is for one."""

    def __init__(self, sock: socket.socket, receives: Any) -> None:
        """Take over a connected socket on which messages of type ``receives`` (a union of structs) arrive."""
        self._sock = sock
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(receives)
        self._buffer = bytearray()
        self._start = 0
        self._lock = threading.Lock()

    def fileno(self) -> int:
        """The socket's file descriptor, for ``select``."""
        return self._sock.fileno()

    def frame(self, message: msgspec.Struct) -> bytes:
        """The bytes of one message.

        Raises:
            ValueError, TypeError, OverflowError: the message holds what MessagePack cannot.
        """
        body = self._encoder.encode(message)
        if len(body) > MAX_FRAME:
            raise ValueError(f"a message of {len(body)} bytes is too large (at most {MAX_FRAME})")
        return struct.pack(">I", len(body)) + body

    def send(self, message: msgspec.Struct) -> None:
        """Send one message; blocks while the other side does not read.

        Raises:
            ValueError, TypeError, OverflowError: the message holds what MessagePack cannot; nothing was sent.
            OSError: the other side is gone.
        """
        self.write(self.frame(message))

    def write(self, frames: bytes) -> None:
        """Send frames that were made before, all at once; blocks and raises like :meth:`send`."""
        with self._lock:
            self._sock.sendall(frames)

    def receive(self, timeout: float | None = None) -> Any:
        """The next message, or None when none came within ``timeout`` seconds (None waits for ever).

        Raises:
            EOFError: the other side is gone.
            WorkerError: what came is no message of this protocol.
        """
        while True:
            message = self._next_frame()
            if message is not None:
                return message
            if timeout and not wait_readable([self.fileno()], timeout):
                return None
            try:
                data = self._sock.recv(_READ, 0 if timeout is None else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            except ConnectionError:
                data = b""
            if not data:
                raise EOFError
            self._buffer += data

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def _next_frame(self) -> Any:
        available = len(self._buffer) - self._start
        if available < 4:
            return None
        (length,) = struct.unpack_from(">I", self._buffer, self._start)
        if available < 4 + length:
            if self._start:
                del self._buffer[: self._start]
                self._start = 0
            return None
        begin = self._start + 4
        self._start = begin + length
        with memoryview(self._buffer) as view:
            try:
                message = self._decoder.decode(view[begin : self._start])
            except msgspec.DecodeError as error:
                raise WorkerError(f"a message between vlmhb and its worker is not valid: {error}") from error
        if self._start == len(self._buffer):
            self._buffer.clear()
            self._start = 0
        return message
