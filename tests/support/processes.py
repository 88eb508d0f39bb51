"""Watching real processes come and go."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil


def family(pid: int) -> list[psutil.Process]:
    """Everything below a process, children that left their session included."""
    return psutil.Process(pid).children(recursive=True)


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run (a zombie does not)."""
    found = []
    for process in processes:
        try:
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def wait_until(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    """Whether a condition came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def assert_gone(processes: list[psutil.Process], seconds: float = 8.0) -> None:
    """Fail with the survivors when not all have ended in time."""
    assert processes, "there was nothing to watch"
    wait_until(lambda: not alive(processes), seconds)
    assert [(p.pid, p.cmdline()) for p in alive(processes)] == []
