"""Where environments lie on disk, and the lock that keeps two processes from making one at once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from vlmhb.errors import ManagedEnvironmentError

Progress = Callable[[str], None]
"""Told in one sentence what is being done."""

HOME_VARIABLE = "VLMHB_HOME"


def home() -> Path:
    """The folder of everything that vlmhb keeps for this user; ``$VLMHB_HOME`` moves it."""
    import platformdirs

    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else platformdirs.user_data_path("vlmhb")


def environments_folder() -> Path:
    """The folder that holds one folder for each managed environment."""
    return home() / "environments"


def environment_path(name: str) -> Path:
    """The folder of a managed environment, which need not exist."""
    return environments_folder() / name


def building_path(name: str) -> Path:
    """Where an environment is made before it gets its name; on the same filesystem, so that a rename suffices."""
    return environments_folder() / ".building" / name


def environment_name(backend: str, device: str) -> str:
    """The name of the managed environment of a backend for a device: ``vllm-cpu``."""
    return f"{backend}-{device}"


def python_of(path: Path) -> Path:
    """The Python executable of a virtual environment."""
    return path / "bin" / "python"


def discard(path: Path) -> None:
    """Remove an environment so that it is either there whole or not at all: rename first, then delete."""
    if not path.exists() and not path.is_symlink():
        return
    trash = environments_folder() / ".removed" / f"{path.name}-{os.getpid()}-{time.monotonic_ns()}"
    trash.parent.mkdir(parents=True, exist_ok=True)
    path.rename(trash)
    for left in trash.parent.iterdir():  # what a process that was killed here left, too
        shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def locked(name: str, progress: Progress) -> Iterator[None]:
    """Hold the lock of one environment; waits for another process that holds it, and says so.

    The lock is the kernel's (``flock``), so it ends with its process, however that ends.
    """
    folder = environments_folder() / ".locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / f"{name}.lock").open("a+")
    except OSError as error:
        raise ManagedEnvironmentError(f"the folder {folder} cannot be used: {error.strerror}") from error
    with file:
        said = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not said:
                    file.seek(0)
                    progress(f"another process ({file.read().strip() or 'unknown'}) works on {name}; waiting for it")
                    said = True
                time.sleep(0.2)
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
