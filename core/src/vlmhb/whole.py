"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a path beside a file; what is written there takes the file's name at the end, in one step.

    So readers see the old file or the new one, never a part, and an error leaves the old one. Processes and threads do
    not share the path beside it.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        yield beside
        beside.replace(path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
