"""What a scanner does to a page: uneven light, grain, and for some pages a slight turn."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
from PIL import Image

from vlmhb_demo.documents.page import Box, Colour, Page

LID: Colour = (238, 238, 236)
"""What a scanner sees beside a page that lies askew."""


def clean(page: Page, rng: random.Random) -> Page:
    """A page as a good scanner gives it: faint grain."""
    return replace(page, image=_grain(page.image, rng, spread=1.6, shade=0.01))


def worn(page: Page, rng: random.Random) -> Page:
    """A page laid down askew, by up to 0.9 degrees, in worse light."""
    degrees = rng.choice((-1, 1)) * rng.uniform(0.4, 0.9)
    turned = page.image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=LID)
    questions = [replace(q, box=_turn(q.box, turned.size, degrees)) for q in page.questions]
    return replace(page, image=_grain(turned, rng, spread=4.5, shade=0.07), questions=questions)


def _grain(image: Image.Image, rng: random.Random, spread: float, shade: float) -> Image.Image:
    """Add grey grain of that standard deviation, and light that falls off by ``shade`` across the page."""
    pixels = np.asarray(image).astype(np.float64)
    height, width = pixels.shape[:2]
    raw = np.random.PCG64(rng.getrandbits(64)).random_raw(height * width).view(np.uint16).reshape(height, width, 4)
    noise = (raw.sum(axis=2, dtype=np.int64) - 2 * 0xFFFF) * (spread / math.sqrt((2**32 - 1) / 3))
    down, across = np.mgrid[0:height, 0:width]
    light = 1.0 - shade * (0.6 * across / width + 0.4 * down / height)
    return Image.fromarray(np.clip(pixels * light[..., None] + noise[..., None], 0, 255).astype(np.uint8))


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
