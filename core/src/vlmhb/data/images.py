"""From an image path as a dataset's author wrote it to a file inside the dataset's folder."""

from __future__ import annotations

import os
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

from vlmhb.contract.dataset import Dataset, Sample
from vlmhb.errors import ImageError, RequestError

_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|data:")


def find_image(dataset: Dataset, written: str) -> Path:
    """The file of one of a dataset's images, wherever it lies.

    Raises:
        ImageError: there is none; see :func:`resolve_image`.
    """
    return dataset.image_file(written) or resolve_image(dataset.root, written)


def page_files(dataset: Dataset, sample: Sample) -> tuple[Path, ...]:
    """The image files of a row, absolute.

    Raises:
        RequestError: the row cannot be asked: something is wrong with it, or a file is not there.
    """
    if sample.problem:
        raise RequestError(sample.problem)
    return tuple(find_image(dataset, written).absolute() for written in sample.images)


def resolve_image(dataset_root: Path, written: str) -> Path:
    """Find the file that an image path of a dataset means.

    Both slashes separate folders, whichever system the path was written on; spaces around it do not count.

    Args:
        dataset_root: the folder that the path is relative to, and may not leave, not even through a link.
        written: the path as it stands in the dataset.

    Raises:
        ImageError: the path is empty, absolute or leaves the folder, or there is no such file. The message names the
            file, and a file of nearly the same name where there is one.
    """
    text = written.strip()
    if not text or "\0" in text:
        raise ImageError(f"{written!r} is no image path")
    if _ADDRESS.match(text):
        raise ImageError(f"image {text}: images are not fetched from the network; give a path inside the dataset")
    parts = [part for part in re.split(r"[/\\]", text) if part not in ("", ".")]
    if _ABSOLUTE.match(text) or ".." in parts or not parts:
        raise ImageError(f"image {text}: the path must be relative and may not leave the dataset's folder")
    path = dataset_root.joinpath(*parts)
    real, root = Path(os.path.realpath(path)), Path(os.path.realpath(dataset_root))
    if not real.is_relative_to(root):
        raise ImageError(f"image {text}: it is a link to {real}, outside the dataset's folder {root}; copy it there")
    try:
        found = path.is_file()
    except OSError as error:
        raise ImageError(f"image {text}: {error.strerror or error}") from error
    if not found:
        raise ImageError(_missing(path, text))
    return path


def _missing(path: Path, text: str) -> str:
    if path.is_dir():
        return f"image {text}: this is a folder, not a file"
    near = _near(path)
    return f"image {text}: there is no such file" + (f"; there is {near}" if near else "")


def _near(path: Path) -> str | None:
    """A file of the same folder whose name differs only in case, Unicode form or extension."""
    try:
        names = _names_in(str(path.parent), path.parent.stat().st_mtime_ns)
    except OSError:
        return None
    return names.get(_fold(path.name)) or names.get(_fold(path.stem))


@lru_cache(maxsize=16)
def _names_in(folder: str, _changed: int) -> dict[str, str]:
    """File names of a folder by their folded name and, after those, by their folded stem."""
    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    by_stem = {_fold(Path(name).stem): name for name in reversed(names)}
    return by_stem | {_fold(name): name for name in names}


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
