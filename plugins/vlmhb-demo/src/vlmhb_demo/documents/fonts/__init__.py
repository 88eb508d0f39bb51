"""The fonts of the pages: parts of DejaVu 2.37 (see LICENSE), so that every machine draws the same."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont


@cache
def font(name: str, size: int) -> FreeTypeFont:
    """A font by its file's name without the ending, for example ``DejaVuSans-Bold``; ``size`` in pixels."""
    from PIL import ImageFont

    path = Path(__file__).with_name(f"{name}.ttf")
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)
