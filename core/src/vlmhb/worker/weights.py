"""A model's weights, read into the system's file cache before an engine wants them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from vlmhb.memory import free_memory

SPARE = 4 << 30
"""Bytes of memory that stay free, whatever is prepared ahead."""
_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".gguf")


def read_ahead(model_path: str) -> int:
    """Ask the system to read a model's weight files ahead, if memory clearly allows.

    Cached files take memory that the system gives back whenever a process wants it, and none of a GPU. Nothing is read
    when the files, taken twice, would leave less than :data:`SPARE`.

    Returns:
        The files' bytes; 0 when nothing is read, as for a model that is no folder on disk.
    """
    if not hasattr(os, "posix_fadvise") or not os.path.isdir(model_path):  # noqa: PTH112 - any text may stand there
        return 0
    files = [path for path in Path(model_path).iterdir() if path.suffix in _SUFFIXES and path.is_file()]
    size = sum(path.stat().st_size for path in files)
    if 2 * size + SPARE > free_memory():
        return 0
    for path in files:
        with contextlib.suppress(OSError), path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
    return size
