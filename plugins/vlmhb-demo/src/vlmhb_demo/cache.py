"""Folders that are made once and then kept."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from vlmhb.errors import PluginError


def made_once(folder: Path, make: Callable[[Path], object], files: Iterable[str]) -> Path:
    """Return a folder that holds ``files``, calling ``make`` on a temporary neighbour of it if it does not.

    The finished neighbour takes the folder's name in one step. So a reader sees a whole folder or none, an
    interrupted call leaves none, and of several processes that do this at once the first to finish wins.
    A folder of that name that lacks one of the files is replaced.

    Args:
        folder: where the result shall be.
        make: fills the empty folder it is given.
        files: names that a whole folder has.

    Raises:
        PluginError: the folder cannot be written; says why.
    """
    wanted = tuple(files)
    if _is_whole(folder, wanted):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
            fresh = Path(scratch) / "fresh"
            fresh.mkdir()
            make(fresh)
            if not _is_whole(folder, wanted):
                with contextlib.suppress(FileNotFoundError):  # nothing was there, or another process was faster
                    folder.rename(Path(scratch) / "broken")
            _put(fresh, folder, wanted)
    except OSError as error:
        raise PluginError(f"cannot make {folder}: {error}. The folder above it must be writable.") from error
    return folder


def _put(fresh: Path, folder: Path, wanted: tuple[str, ...]) -> None:
    """Give ``fresh`` its final name; that another process was faster is well."""
    try:
        fresh.rename(folder)
    except OSError:
        if not _is_whole(folder, wanted):
            raise


def _is_whole(folder: Path, wanted: tuple[str, ...]) -> bool:
    return all((folder / name).is_file() for name in wanted)
