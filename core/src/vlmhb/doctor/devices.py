"""The devices of this machine and their memory, without importing an engine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec

_MIB = 1 << 20
_QUERY = ["--query-gpu=index,name,memory.total,memory.free", "--format=csv,noheader,nounits"]


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One device; memory in bytes."""

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


def _cpu(meminfo: Path = Path("/proc/meminfo"), limit: Path = Path("/sys/fs/cgroup/memory.max")) -> Device:
    """The machine's memory; what a container may take, where that is less."""
    lines = (line.split() for line in meminfo.read_text(encoding="ascii").splitlines())
    sizes = {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines if len(line) > 1}
    allowed = limit.read_text(encoding="ascii").strip() if limit.is_file() else "max"
    total = min(sizes["MemTotal"], int(allowed)) if allowed.isdigit() else sizes["MemTotal"]
    return Device(name="cpu", title="CPU", total=total, free=min(total, sizes["MemAvailable"]))
