"""What a scanner does to a page: faint grain; for worn pages a slight turn, a soft lens, bad light, pale ink."""

from __future__ import annotations

import io
import math
import random
from dataclasses import replace

import numpy as np
from PIL import Image, ImageFilter

from vlmhb_demo.documents.page import SANS, SERIF, Box, Colour, Page, Style

LID: Colour = (238, 238, 236)
"""What a scanner sees beside a page that lies askew."""
CLEAN_QUALITY = 88
"""JPEG quality of the clean pages."""


def clean_style(rng: random.Random) -> Style:
    """Where a good printer puts the text."""
    return Style(rng.randint(-2, 3), rng.randint(-2, 2))


def worn_style(rng: random.Random) -> Style:
    """As above; half of the worn pages are set in another font."""
    return replace(clean_style(rng), faces=rng.choice(({}, {SANS: SERIF})))


def clean(page: Page, rng: random.Random) -> Page:
    """A page as a good scanner gives it: faint grain."""
    return _seen(page, _grain(page.image, rng, rng.uniform(1.0, 3.0), shade=0.02, contrast=1.0))


def worn(page: Page, rng: random.Random) -> Page:
    """A page laid down askew, by up to 0.9 degrees, blurred, pale, in uneven light, saved too small."""
    degrees = rng.choice((-1, 1)) * rng.uniform(0.3, 0.9)
    image = page.image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=LID)
    image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.7)))
    image = _grain(image, rng, rng.uniform(2.0, 5.0), rng.uniform(0.06, 0.2), rng.uniform(0.6, 0.9))
    squeezed = io.BytesIO()
    image.save(squeezed, "JPEG", quality=rng.randint(45, 65))
    turned = _seen(page, Image.open(squeezed).convert("RGB"))
    turned.questions = [replace(q, box=_turn(q.box, image.size, degrees)) for q in page.questions]
    return turned


def _seen(page: Page, image: Image.Image) -> Page:
    return replace(page, image=image)


def _grain(image: Image.Image, rng: random.Random, spread: float, shade: float, contrast: float) -> Image.Image:
    """Add grey grain of that standard deviation, and light that falls off by ``shade`` across the page.

    ``contrast`` below 1 makes ink as pale as that part of its distance from white.
    """
    pixels = np.asarray(image, np.float32)
    height, width = pixels.shape[:2]
    raw = np.random.PCG64(rng.getrandbits(64)).random_raw(-(-height * width // 2)).view(np.uint16).reshape(-1, 2)
    noise = raw.sum(axis=1, dtype=np.int32)[: height * width].reshape(height, width) - 0xFFFF
    noise = noise.astype(np.float32) * np.float32(spread / math.sqrt((2**32 - 1) / 6))
    angle = rng.uniform(0, math.tau)
    across = np.linspace(-0.5, 0.5, width, dtype=np.float32) * np.float32(math.cos(angle))
    down = np.linspace(-0.5, 0.5, height, dtype=np.float32) * np.float32(math.sin(angle))
    light = np.float32(1.0 - shade / 2) + np.float32(shade) * (across[None, :] + down[:, None])
    pale = 255 - (255 - pixels) * np.float32(contrast)
    return Image.fromarray(np.clip(pale * light[..., None] + noise[..., None], 0, 255).astype(np.uint8))


def _turn(box: Box, size: tuple[int, int], degrees: float) -> Box:
    """The upright box around a box that was turned counter-clockwise about the middle of an image."""
    left, top, right, bottom = box
    middle_x, middle_y = size[0] / 2, size[1] / 2
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    corners = [(x - middle_x, y - middle_y) for x in (left, right) for y in (top, bottom)]
    xs = [middle_x + x * cosine + y * sine for x, y in corners]
    ys = [middle_y - x * sine + y * cosine for x, y in corners]
    return (
        max(0, math.floor(min(xs))),
        max(0, math.floor(min(ys))),
        min(size[0], math.ceil(max(xs))),
        min(size[1], math.ceil(max(ys))),
    )
