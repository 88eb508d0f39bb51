"""Pictures ready for the model, kept for a while: several questions are usually asked about one page."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from vlmhb.contract.request import ImageInput
from vlmhb.images import DecodedImage, open_image

if TYPE_CHECKING:
    from vlmhb.prompting.families import ModelFamily

_KEPT_PIXELS = 64_000_000
"""Pixels of ready pictures to keep, 192 MB in RGB."""

Key = tuple[str, int, int] | bytes


class ReadyImages:
    """Decodes and resizes images, and keeps the last ones by file (path, size, time of change) or by content.

    Safe to use from several threads.
    """

    def __init__(self, family: ModelFamily, kept_pixels: int = _KEPT_PIXELS) -> None:
        self._family = family
        self._kept_pixels = kept_pixels
        self._ready: OrderedDict[Key, DecodedImage] = OrderedDict()
        self._pixels = 0
        self._lock = threading.Lock()

    def get(self, image: ImageInput) -> DecodedImage:
        """The image as the model's family wants it.

        Raises:
            ImageError: it cannot be read, or the family cannot take it.
        """
        key = _key(image)
        if key is None:
            return self._make(image)
        with self._lock:
            known = self._ready.get(key)
            if known is not None:
                self._ready.move_to_end(key)
                return known
        ready = self._make(image)
        with self._lock:
            if key not in self._ready:
                self._ready[key] = ready
                self._pixels += ready.image.width * ready.image.height
            while self._pixels > self._kept_pixels:
                _, old = self._ready.popitem(last=False)
                self._pixels -= old.image.width * old.image.height
        return ready

    def _make(self, image: ImageInput) -> DecodedImage:
        decoded = open_image(image)
        return DecodedImage(self._family.resize(decoded.image, image.label), decoded.notes)


def _key(image: ImageInput) -> Key | None:
    if image.data is not None:
        return image.data
    path = image.path or ""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None  # open_image says what is wrong
    return path, status.st_size, status.st_mtime_ns
