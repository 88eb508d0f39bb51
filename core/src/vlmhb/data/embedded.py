"""Images that a dataset holds as bytes: written once into a cache under their own digest, and found there again."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from pathlib import Path

from vlmhb.errors import ImageError
from vlmhb.whole import written_whole

PREFIX = "embedded:"
"""What a sample's image begins with when it is no path but the name of such an image."""

_DATA_ADDRESS = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)
_KINDS = (
    (b"\x89PNG", "png"),
    (b"\xff\xd8\xff", "jpg"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
    (b"II*\0", "tif"),
    (b"MM\0*", "tif"),
)


def cache_folder() -> Path:
    """Where such images lie: the user's cache, or ``cache`` under ``$VLMHB_HOME``. It may be deleted at any time."""
    import platformdirs

    home = os.environ.get("VLMHB_HOME")
    return (Path(home).expanduser() / "cache" if home else platformdirs.user_cache_path("vlmhb")) / "images"


def keep_image(content: bytes) -> str:
    """Write an encoded image into the cache, unless it is there, and return its name for ``Sample.images``.

    Raises:
        ImageError: there are no bytes, or the cache cannot be written.
    """
    if not content:
        raise ImageError("an image of the dataset has 0 bytes")
    kind = next((kind for start, kind in _KINDS if content.startswith(start)), None)
    kind = kind or ("webp" if content[8:12] == b"WEBP" else "img")
    name = f"{hashlib.sha256(content).hexdigest()}.{kind}"
    write_once(_path(name), content)
    return PREFIX + name


def write_once(path: Path, content: bytes) -> None:
    """Write a file of the cache if it is not there; readers see it whole or not at all.

    Raises:
        ImageError: it cannot be written.
    """
    if path.is_file():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as beside:
            beside.write_bytes(content)
    except OSError as error:
        raise ImageError(f"the cache {path.parent} cannot be written: {error.strerror or error}") from error


def embedded_file(written: str) -> Path | None:
    """The file of an image that :func:`keep_image` has named, or None for any other image.

    Raises:
        ImageError: it is not in the cache any more.
    """
    if not written.startswith(PREFIX):
        return None
    path = _path(written.removeprefix(PREFIX))
    if re.fullmatch(r"[0-9a-f]{64}\.\w+", path.name) is None or not path.is_file():
        raise ImageError(f"image {written}: it is not in the cache {cache_folder()}; open the dataset again")
    return path


def from_base64(text: str) -> bytes:
    """The bytes of an image written as base64, bare or as a ``data:`` address.

    Raises:
        ImageError: the text is no base64.
    """
    match = _DATA_ADDRESS.match(text)
    bare = text[match.end() :] if match else text
    try:
        return base64.b64decode("".join(bare.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageError(f"an image of the dataset is no base64 ({error}): {text[:40]}...") from error


def is_data_address(text: str) -> bool:
    """Whether a text is an image as a ``data:`` address."""
    return _DATA_ADDRESS.match(text) is not None


def _path(name: str) -> Path:
    return cache_folder() / name[:2] / name
