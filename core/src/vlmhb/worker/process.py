"""One worker process as its owner sees it: start it, talk to it, learn how it ended, end it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from vlmhb.contract import CONTRACT_VERSION
from vlmhb.errors import WorkerError, WorkerStartError
from vlmhb.worker import supervisor
from vlmhb.worker.launch import Launch
from vlmhb.worker.protocol import PROTOCOL_VERSION, Channel, FromWorker, Hello, wait_readable

TAIL_LINES = 40
TAIL_BYTES = 8192

_SIGNAL_WORDS = {
    signal.SIGSEGV: "a crash in native code",
    signal.SIGABRT: "native code gave up",
    signal.SIGKILL: "out of memory is the usual reason when nobody sent it",
    signal.SIGBUS: "often a full /dev/shm",
    signal.SIGILL: "native code built for another processor",
}


class WorkerDiedError(Exception):
    """The worker is of no use any more; ``reason`` is a clause with the worker as its subject."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def exit_words(code: int) -> str:
    """How a process ended, as a clause: ``was killed by SIGSEGV (a crash in native code)``."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        number = signal.Signals(-code)
    except ValueError:
        return f"was killed by signal {-code}"
    words = _SIGNAL_WORDS.get(number)
    return f"was killed by {number.name}" + (f" ({words})" if words else "")


class WorkerProcess:
    """A running worker. Not safe for use from several threads at once."""

    def __init__(self, launch: Launch, log_path: Path) -> None:
        """Start it. What is sent from now on waits for it."""
        self.launch = launch
        self.log_path = log_path
        self.pid: int | None = None
        self.ended = False
        self._exit: str | None = None
        self._lines = b""
        self._log_start = log_path.stat().st_size if log_path.exists() else 0
        ours, theirs = socket.socketpair()
        self._control, control = socket.socketpair()
        script = [sys.executable, "-I", "-S", supervisor.__file__]
        script += ["--control", str(control.fileno()), "--parent", str(os.getpid()), "--keep", str(theirs.fileno())]
        with theirs, control, log_path.open("a+b") as log:
            self._supervisor = subprocess.Popen(
                [*script, "--", *launch.command(["--socket", str(theirs.fileno())])],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=launch.environ(),
                pass_fds=(theirs.fileno(), control.fileno()),
                start_new_session=True,
            )
        self.channel = Channel(ours, FromWorker)
        self._started = time.monotonic()

    def greet(self, timeout: float) -> float:
        """Wait until it is there, and check that both sides speak the same language.

        Returns:
            Seconds that it took to start.

        Raises:
            WorkerStartError: it could not be started, or it holds another version of vlmhb.
        """
        try:
            hello = self.receive(timeout)
        except WorkerDiedError as death:
            raise WorkerStartError(self.report(f"the worker in {self.launch.environment} {death.reason}")) from None
        if not isinstance(hello, Hello):
            what = "said nothing" if hello is None else f"sent {type(hello).__name__} first"
            raise WorkerStartError(
                self.report(f"the worker in {self.launch.environment} {what} within {timeout:.0f} s")
            )
        if (hello.protocol, hello.contract) != (PROTOCOL_VERSION, CONTRACT_VERSION):
            from vlmhb import __version__

            raise WorkerStartError(
                f"{self.launch.environment} holds vlmhb {hello.core} (protocol {hello.protocol}, contract "
                f"{hello.contract}), and this is vlmhb {__version__} (protocol {PROTOCOL_VERSION}, contract "
                f"{CONTRACT_VERSION}). Install the same version in both."
            )
        return hello.at - self._started

    def send(self, message: msgspec.Struct) -> None:
        """Send a message. That the worker is gone is told by :meth:`receive`, after everything it had sent.

        Raises:
            ValueError, TypeError, OverflowError: the message cannot be encoded.
        """
        self.write(self.channel.frame(message))

    def write(self, frames: bytes) -> None:
        """Send frames that were made before, as :meth:`send`."""
        with contextlib.suppress(OSError):
            self.channel.write(frames)

    def receive(self, timeout: float) -> Any:
        """The next message, or None when none came within ``timeout`` seconds.

        Raises:
            WorkerDiedError: the worker is gone, and everything it had sent is read.
        """
        deadline = time.monotonic() + timeout
        while True:
            try:
                message = self.channel.receive(0.0)
                if message is not None:
                    return message
                if self._exit is not None:  # nothing more can come, though a child may hold the socket open
                    raise self._death()
            except EOFError:
                raise self._death() from None
            except WorkerError as error:
                raise WorkerDiedError(f"broke the protocol ({error})") from error
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return None
            ready = wait_readable([self.channel.fileno(), self._control.fileno()], remaining)
            if self._control.fileno() in ready:
                self._read_control()

    def check(self) -> None:
        """Look whether the worker is still watched over.

        Raises:
            WorkerDiedError: it is gone, or its supervisor is, and the worker with it.
        """
        while self._exit is None and wait_readable([self._control.fileno()], 0.0):
            self._read_control()
        if self._exit is not None:
            raise self._death()

    def report(self, sentence: str, lines: int = TAIL_LINES) -> str:
        """A sentence followed by the log's name and last lines, if there are to be any."""
        if lines == 0:
            return f"{sentence}. Its log is {self.log_path}."
        tail = self.log_tail(lines)
        return f"{sentence}. Its log is {self.log_path}" + (f"; it ends with:\n{tail}" if tail else " (empty).")

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines that this process and its children wrote."""
        with contextlib.suppress(OSError), self.log_path.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            start = self._log_start if self._log_start <= end else 0  # it was cut
            log.seek(max(start, end - TAIL_BYTES))
            text = log.read().decode(errors="replace")
            return "\n".join(f"    {line[:300]}" for line in text.splitlines()[-lines:] if line.strip())
        return ""

    def end(self, grace: float) -> None:
        """End the worker and everything below it, politely for ``grace`` seconds, then by force. Does not raise."""
        self.ended = True
        with contextlib.suppress(OSError):
            self._control.sendall(f"end {grace}".encode())
        try:
            self._supervisor.wait(grace + 10.0)
        except subprocess.TimeoutExpired:
            supervisor.kill_descendants(self._supervisor.pid)
            self._supervisor.kill()
            self._supervisor.wait()
        while self._exit is None:
            self._read_control()
        self.channel.close()
        self._control.close()

    def _death(self) -> WorkerDiedError:
        """Find out how the worker ended; the supervisor says it within moments."""
        deadline = time.monotonic() + 5.0
        while self._exit is None and (remaining := deadline - time.monotonic()) > 0:
            if wait_readable([self._control.fileno()], remaining):
                self._read_control()
        return WorkerDiedError(self._exit or "closed its socket without ending")

    def _read_control(self) -> None:
        """Take in what the supervisor said; at its end without a word about the worker, do its work."""
        try:
            data = self._control.recv(4096)
        except OSError:
            data = b""
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode(errors="replace").partition(" ")
            if word == "started":
                self.pid = int(rest)
            elif word == "failed":
                self._exit = f"could not be started: {rest}"
            elif word == "exit":
                self._exit = exit_words(int(rest))
        if not data and self._exit is None:
            self._exit = "lost the process that watched over it"
            if self.pid is not None:
                supervisor.kill_descendants(self.pid)
                supervisor.send_signal([self.pid], signal.SIGKILL)
