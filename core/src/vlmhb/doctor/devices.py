"""The devices of this machine and their memory, without importing an engine."""

from __future__ import annotations

import shutil
import subprocess

import msgspec

from vlmhb.memory import free_memory, total_memory

_MIB = 1 << 20
_QUERY = ["--query-gpu=index,name,memory.total,memory.free", "--format=csv,noheader,nounits"]


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One device; memory in bytes.

    Attributes:
        name: as the engines call it.
        title: what it is, for people.
        total: its memory; of the CPU's, what the container may take where that is less.
        free: what can be taken now.
    """

    name: str
    title: str
    total: int
    free: int


def devices() -> list[Device]:
    """The NVIDIA GPUs that the driver shows, then the CPU."""
    return [*_gpus(), _cpu()]


def _gpus() -> list[Device]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    done = subprocess.run([tool, *_QUERY], capture_output=True, text=True, check=False)
    rows = [line.split(", ") for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return [
        Device(name=f"cuda:{index}", title=title, total=int(total) * _MIB, free=int(free) * _MIB)
        for index, title, total, free in (row for row in rows if len(row) == 4)
        if total.isdigit() and free.isdigit()
    ]


def _cpu() -> Device:
    return Device(name="cpu", title="CPU", total=total_memory(), free=free_memory())
