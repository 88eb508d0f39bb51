"""Which kind of device an environment is made for."""

from __future__ import annotations

import functools
import shutil
import subprocess

from vlmhb.errors import ManagedEnvironmentError

DEVICES = ("cpu", "cuda")


@functools.cache
def has_cuda() -> bool:
    """Whether an NVIDIA driver with at least one device is there; asks the driver's own tool, once, imports nothing."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    done = subprocess.run([tool, "-L"], capture_output=True, text=True, check=False)
    return done.returncode == 0 and "GPU" in done.stdout


def resolve_device(device: str) -> str:
    """``cpu`` or ``cuda`` for what the user wrote; ``auto`` is what the machine has.

    Raises:
        ManagedEnvironmentError: it is neither.
    """
    if device == "auto":
        return "cuda" if has_cuda() else "cpu"
    if device not in DEVICES:
        raise ManagedEnvironmentError(f"there is no device {device!r}; write auto, cpu or cuda.")
    return device
