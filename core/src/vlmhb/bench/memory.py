"""The most memory that a worker and everything below it held, looked at from outside in a thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import msgspec

INTERVAL = 0.1
"""Seconds between two looks."""
_GROWTH = 1.01
"""Growth of the resident sets since the last peak from which the shares are read, which takes longer."""


class PeakMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The most memory of a tree of processes, in bytes.

    Attributes:
        host: of the machine's memory; None where no process could be read.
        kind: ``pss``: pages that several processes share count once in all (Linux); ``rss``: once for each.
        gpu: of the GPUs' memory, by NVML; None without nvidia-ml-py, or where the driver names no process of the tree.
        interval: seconds between two looks; what came and went in between was not seen.
    """

    host: int | None
    kind: str
    gpu: int | None
    interval: float = INTERVAL


class MemoryWatch:
    """Watches from entering to leaving it.

    Args:
        root: gives the id of the process on top, or None while there is none.
    """

    def __init__(self, root: Callable[[], int | None]) -> None:
        self._root = root
        self._host = self._gpu = self._largest = 0
        self._kind = "rss"
        self._gpus = _Gpus()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="vlmhb-bench-memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def peak(self) -> PeakMemory:
        """The peak so far."""
        return PeakMemory(host=self._host or None, kind=self._kind, gpu=self._gpu or None)

    def _watch(self) -> None:
        while not self._over.wait(INTERVAL):
            pid = self._root()
            if pid is not None:
                self._look(process_tree(pid))

    def _look(self, processes: list[Any]) -> None:
        resident = sum(_read(process, "memory_info", "rss") for process in processes)
        if resident > self._largest * _GROWTH:
            self._largest = resident
            shares = [_read(process, "memory_full_info", "pss") for process in processes]
            self._kind = "pss" if any(shares) else "rss"
            self._host = max(self._host, sum(shares) or resident)
        self._gpu = max(self._gpu, self._gpus.used_by({process.pid for process in processes}))


def process_tree(pid: int) -> list[Any]:
    """A process and everything below it, as far as they live."""
    import psutil  # type: ignore[import-untyped]

    with contextlib.suppress(psutil.Error):
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    return []


def cpu_seconds(pid: int) -> float:
    """CPU time that a tree of processes has used so far, user and system."""
    times = [[_read(process, "cpu_times", kind) for kind in ("user", "system")] for process in process_tree(pid)]
    return float(sum(map(sum, times)))


def _read(process: Any, method: str, field: str) -> Any:
    """One number of a process; 0 when it has ended, may not be read, or the system does not have it."""
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        return getattr(getattr(process, method)(), field, 0)
    return 0


class _Gpus:
    """Memory of processes on NVIDIA GPUs; nothing where nvidia-ml-py or a GPU is absent."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        try:
            import pynvml  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            return
        self._nvml = pynvml
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(pynvml.nvmlDeviceGetCount())]

    def used_by(self, pids: set[int]) -> int:
        """Bytes that these processes hold on all GPUs."""
        total = 0
        for handle in self._handles:
            with contextlib.suppress(self._nvml.NVMLError):
                running = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
                total += sum(process.usedGpuMemory or 0 for process in running if process.pid in pids)
        return total
