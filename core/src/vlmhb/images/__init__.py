"""The only place where images are decoded, so that every engine receives the same pixels."""

from __future__ import annotations

from vlmhb.images.decode import DEFAULT_LIMITS, DecodedImage, ImageLimits, image_size, open_image
from vlmhb.images.modes import to_rgb

__all__ = ["DEFAULT_LIMITS", "DecodedImage", "ImageLimits", "image_size", "open_image", "to_rgb"]
