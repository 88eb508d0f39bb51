"""How many CPU threads torch gets."""

from __future__ import annotations

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def choose_threads(wish: int | None) -> tuple[int | None, str]:
    """The number of threads, None for torch's own choice, and why.

    A thread that must share its core holds the others up at every operation, so cores that are busy are left out.

    Args:
        wish: the option ``threads``.
    """
    if wish is not None:
        return wish, "asked for"
    if os.environ.get("OMP_NUM_THREADS"):
        return None, "OMP_NUM_THREADS"
    if not hasattr(os, "getloadavg"):  # Windows
        return None, "torch's own choice"
    cores, load = usable_cores(), os.getloadavg()[0]
    return max(1, round(cores - load)), f"{cores} cores with a load of {load:.1f}"


def usable_cores(quota: Path = _QUOTA) -> int:
    """Cores that this process may use: its affinity, and its control group's quota rounded down; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        most, period = quota.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return cores
    return cores if most == "max" else max(1, min(cores, int(most) // int(period)))
