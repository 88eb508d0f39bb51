"""Drawings with smooth edges: signatures, portraits and stamps, painted four times as large and scaled down."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from PIL import Image, ImageDraw

from vlmhb_demo.documents.page import Box, Colour, Page

SCALE = 4
BLUE_INK: Colour = (40, 52, 128)
STAMP_INK: Colour = (84, 104, 172)

Paint = Callable[[ImageDraw.ImageDraw], None]


def smooth(page: Page, box: Box, colour: Colour, paint: Paint, strength: float = 1.0) -> None:
    """Paint with one colour into a box of the page.

    Args:
        page: what to paint on.
        box: the part of the page that is painted.
        colour: of all strokes.
        paint: draws with the fill 255 on a mask ``SCALE`` times as large as the box.
        strength: 1 covers the paper; less lets it show through.
    """
    width, height = box[2] - box[0], box[3] - box[1]
    mask = Image.new("L", (width * SCALE, height * SCALE), 0)
    paint(ImageDraw.Draw(mask))
    mask = mask.resize((width, height), Image.Resampling.BOX).point(lambda value: int(value * strength))
    page.image.paste(colour, box, mask)


def signature(page: Page, x: int, y: int, rng: random.Random, width: int = 120) -> None:
    """Sign in blue ink, from ``x`` on, on the line ``y``: loops that get smaller, and a last stroke."""
    loops, lean, phase = rng.uniform(3.5, 6.5), rng.uniform(3, 7), rng.uniform(0, math.tau)
    tall = [rng.uniform(5, 15) for _ in range(8)]

    def paint(draw: ImageDraw.ImageDraw) -> None:
        points = []
        for step in range(401):
            done = step / 400
            turn = done * loops
            near = int(turn)
            height = tall[near] + (tall[near + 1] - tall[near]) * (turn - near)
            height *= 1.15 - done
            angle = phase + turn * math.tau
            points.append(
                (
                    SCALE * (12 + done * (width - 24) + lean * math.sin(angle)),
                    SCALE * (26 - height * math.cos(angle) * 0.9 - 4 * done),
                )
            )
        draw.line(points, fill=255, width=6, joint="curve")

    smooth(page, (x, y - 30, x + width, y + 16), BLUE_INK, paint, strength=0.9)


def portrait(page: Page, box: Box, colour: Colour) -> None:
    """A head and shoulders, where a photograph would be."""
    width, height = (box[2] - box[0]) * SCALE, (box[3] - box[1]) * SCALE

    def paint(draw: ImageDraw.ImageDraw) -> None:
        draw.ellipse((width * 0.29, height * 0.16, width * 0.71, height * 0.61), fill=255)
        draw.rectangle((width * 0.42, height * 0.5, width * 0.58, height * 0.72), fill=255)
        draw.ellipse((width * 0.1, height * 0.66, width * 0.9, height * 1.5), fill=255)

    smooth(page, box, colour, paint)


def stamp(page: Page, x: int, y: int, rng: random.Random) -> None:
    """A round stamp with a star around the point ``x, y``, the paper showing through."""
    start, middle = rng.uniform(0, math.tau), 60 * SCALE

    def at(radius: float, angle: float) -> tuple[float, float]:
        return middle + radius * SCALE * math.cos(angle), middle + radius * SCALE * math.sin(angle)

    def paint(draw: ImageDraw.ImageDraw) -> None:
        for radius, width in ((56, 10), (49, 4), (26, 4)):
            draw.ellipse(
                (*at(radius * math.sqrt(2), math.pi * 1.25), *at(radius * math.sqrt(2), math.pi * 0.25)),
                outline=255,
                width=width,
            )
        for dash in range(36):
            angle = start + dash * math.tau / 36
            draw.line((*at(33, angle), *at(33 + rng.choice((6, 9, 9)), angle)), fill=255, width=8)
        tips = [at(17 if tip % 2 == 0 else 7, start + tip * math.tau / 10) for tip in range(10)]
        draw.polygon(tips, fill=255)

    smooth(page, (x - 60, y - 60, x + 60, y + 60), STAMP_INK, paint, strength=0.8)
