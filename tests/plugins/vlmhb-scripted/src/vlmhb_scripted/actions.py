"""The ways to misbehave that a script can ask for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import shared_memory

from vlmhb.errors import ModelLoadError, RequestError

SLEEPER = "import time; time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def perform(name: str) -> None:
    """Do what a rule says; returns for those that only make noise or leave something behind."""
    ACTIONS[name]()


def _die(number: int) -> None:
    print("the engine's last words", flush=True)
    os.kill(os.getpid(), number)
    time.sleep(60)


def _hang() -> None:
    time.sleep(600)


def _exit() -> None:
    os._exit(3)


def _raise() -> None:
    raise RuntimeError("the engine's own bug")


def _refuse() -> None:
    raise ModelLoadError("the script refuses this model")


def _out_of_memory() -> None:
    raise RequestError("not enough memory for this request", kind="out_of_memory")


def _error() -> None:
    raise RequestError("the script refuses this request")


def _garbage() -> None:
    os.write(1, b"\x00\x00\x00\x05garbage\xff on stdout\n" * 100)


def _flood() -> None:
    for _ in range(100):
        os.write(2, b"x" * 1023 + b"\n" + (b"y" * 1023 + b"\n") * 1023)


def _spawn() -> None:
    subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=True)


def _spawn_stubborn() -> None:
    """A daemon: its own session, its starter gone, deaf to SIGTERM."""
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}], start_new_session=True)"
    subprocess.run([sys.executable, "-c", code], check=True)


def _fork() -> None:
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)


def _shared_memory() -> None:
    from multiprocessing import resource_tracker

    block = shared_memory.SharedMemory(create=True, size=4096)
    resource_tracker.unregister(block._name, "shared_memory")  # so that nobody but the supervisor removes it
    _KEPT.append(block)


_KEPT: list[shared_memory.SharedMemory] = []

ACTIONS = {
    "segfault": lambda: _die(signal.SIGSEGV),
    "kill": lambda: _die(signal.SIGKILL),
    "exit": _exit,
    "hang": _hang,
    "raise": _raise,
    "refuse": _refuse,
    "out_of_memory": _out_of_memory,
    "error": _error,
    "garbage": _garbage,
    "flood": _flood,
    "spawn": _spawn,
    "spawn_stubborn": _spawn_stubborn,
    "fork": _fork,
    "shared_memory": _shared_memory,
}
