"""Every Pillow mode to RGB: alpha on white, deep greys scaled, colour spaces converted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image

WHITE = (255, 255, 255)

_SIXTEEN_BIT = ("I;16", "I;16L", "I;16B", "I;16N")
_ALPHA_FIRST = {"La": "LA", "RGBa": "RGBA"}
"""Modes with premultiplied alpha, and the mode in which Pillow undoes the multiplication."""


def to_rgb(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    """Convert a loaded image of any mode to RGB.

    - Transparency of every kind (an alpha band, a palette with alpha, a transparent colour) is composed on white.
    - 16-bit greys are scaled to 8 bits (0, 32768, 65535 become 0, 128, 255), not cut off at 255.
    - 32-bit integers and floats have no fixed range: the narrowest of 0..1 (floats), 0..255 and 0..65535 that holds
      all values is taken, or else the range of the values themselves; a note says which.
    - CMYK, YCbCr, LAB and HSV are converted by Pillow's formulas; embedded colour profiles are not applied.

    Returns:
        The image in mode RGB, of the same size, and notes about what a reader would not expect.
    """
    if image.mode in _SIXTEEN_BIT:
        return _from_sixteen_bit(image), ()
    if image.mode in ("I", "F"):
        return _from_wide(image)
    if image.mode in _ALPHA_FIRST:
        image = image.convert(_ALPHA_FIRST[image.mode])
    if image.has_transparency_data:
        return _on_white(image), ()
    # An RGB picture is copied, so that the result never depends on the file it came from.
    return (image.copy() if image.mode == "RGB" else image.convert("RGB")), ()


def _on_white(image: Image.Image) -> Image.Image:
    transparent = image.info.get("transparency")
    if image.mode == "RGB" and isinstance(transparent, tuple) and max(transparent) > 255:
        # PNG gives the transparent colour at the file's 16 bits, Pillow the pixels at 8.
        image = image.copy()
        image.info["transparency"] = tuple(value >> 8 for value in transparent)
    rgba = image if image.mode == "RGBA" else image.convert("RGBA")
    page = Image.new("RGB", rgba.size, WHITE)
    page.paste(rgba.convert("RGB"), mask=rgba.getchannel("A"))
    return page


def _from_sixteen_bit(image: Image.Image) -> Image.Image:
    values = np.asarray(image).astype(np.uint32)
    # 65535 = 255 * 257; the half is added to round to the nearest.
    grey = ((values + 128) // 257).astype(np.uint8)
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        grey[values == transparent] = 255
    return Image.fromarray(grey).convert("RGB")


def _from_wide(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    values = np.nan_to_num(np.asarray(image).astype(np.float64))
    low, high = _range_of(values, floats=image.mode == "F")
    scaled = (values - low) * (255.0 / (high - low))
    kind = "floating-point" if image.mode == "F" else "32-bit integer"
    note = f"the image has {kind} greys; {low:g} was taken as black and {high:g} as white."
    grey = np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB"), (note,)


def _range_of(values: npt.NDArray[np.float64], *, floats: bool) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    tops = (1.0, 255.0, 65535.0) if floats else (255.0, 65535.0)
    if low >= 0.0:
        for top in tops:
            if high <= top:
                return 0.0, top
    return low, high if high > low else low + 1.0
