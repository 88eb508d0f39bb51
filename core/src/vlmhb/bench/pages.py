"""Pages to measure with: documents with a heading, fields, paragraphs and a table, drawn with Pillow alone.

A page is made of its number and size, so every machine with the same Pillow draws the same one.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

LABELS = ("Invoice number", "Date", "Customer", "Order", "Delivery to", "Total due", "Account", "Contact")
_TITLES = ("INVOICE", "DELIVERY NOTE", "ORDER CONFIRMATION", "STATEMENT", "RECEIPT")
_TEXT = (
    "the goods were received in full and without visible damage payment is due within thirty days of this date please "
    "quote the number above on every letter returns are accepted when the seal is unbroken our office is open on "
    "weekdays between nine and five a copy of this document was sent to your warehouse prices include packing"
)
_NAMES = ("Alder", "Birch", "Cedar", "Dorn", "Elm", "Fir", "Gale", "Hazel", "Iris", "Juniper")
_ITEMS = ("Bolt", "Bracket", "Cable", "Filter", "Gasket", "Hinge", "Lamp", "Motor", "Pump", "Valve")
_INK, _LINE, _PAPER = (25, 25, 30), (120, 120, 125), (252, 251, 247)
SMALLEST = 112
"""Fewest pixels of a side on which anything can be written."""


class Page(NamedTuple):
    """A drawn page and the fields that can be asked about, label -> value."""

    image: Image
    fields: dict[str, str]


def draw_page(number: int, width: int, height: int) -> Page:
    """Draw page ``number``; sizes in pixels, each at least :data:`SMALLEST`."""
    from PIL import Image, ImageDraw

    chosen = random.Random(f"vlmhb page {number}")
    image = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(image)
    step = max(9, width // 40)
    margin = width // 14
    fields = _fields(chosen)
    y = _text(draw, margin, margin, chosen.choice(_TITLES), int(step * 1.6)) + step
    for label, value in fields.items():
        _text(draw, margin, y, f"{label}:", step)
        y = _text(draw, width // 3, y, value, step) + step // 3
    y = _table(draw, chosen, margin, y + step, width - margin, step)
    _paragraphs(draw, chosen, margin, y + step, width - 2 * margin, height - margin, step)
    return Page(image, fields)


def question(page: Page, number: int) -> str:
    """A question about a page; the first ones each ask for another field, later ones for the same in other words."""
    label = LABELS[number % len(LABELS)]
    turn = number // len(LABELS)
    return f"What is the value of the field {label}?" + (f" Answer {turn + 1} times." if turn else "")


def _fields(chosen: random.Random) -> dict[str, str]:
    name = chosen.choice(_NAMES)
    values = (
        f"{chosen.choice('ABCDEF')}-{chosen.randrange(10**6):06}",
        f"{chosen.randint(2015, 2026)}-{chosen.randint(1, 12):02}-{chosen.randint(1, 28):02}",
        f"{name} & {chosen.choice(_NAMES)} Ltd",
        f"{chosen.randrange(10**4):04}/{chosen.randrange(100):02}",
        f"{chosen.randint(1, 199)} {chosen.choice(_NAMES)} Street",
        f"{chosen.randrange(10**5) / 100:.2f} EUR",
        " ".join(f"{chosen.randrange(10**4):04}" for _ in range(3)),
        f"{chosen.choice('ABCDEFGH')}. {name}",
    )
    return dict(zip(LABELS, values, strict=True))


def _table(draw: ImageDraw, chosen: random.Random, left: int, top: int, right: int, step: int) -> int:
    """Draw some priced lines; returns where they end."""
    columns = [left, left + (right - left) * 5 // 8, left + (right - left) * 6 // 8]
    y = top
    for line in range(chosen.randint(3, 7) + 1):
        amount = chosen.randint(1, 40)
        cells = (
            f"{chosen.choice(_ITEMS)} {chosen.randint(10, 99)}",
            str(amount),
            f"{amount * chosen.random() * 9:.2f}",
        )
        for x, cell in zip(columns, cells if line else ("Item", "Pieces", "Price"), strict=True):
            _text(draw, x + 3, y, cell, step)
        y += int(step * 1.5)
        draw.line([(left, y - step // 6), (right, y - step // 6)], fill=_LINE, width=1)
    return y


def _paragraphs(draw: ImageDraw, chosen: random.Random, left: int, y: int, width: int, bottom: int, step: int) -> None:
    """Fill the page with lines of words, a gap every few lines."""
    count, words_known = 0, _TEXT.split()
    while y + step < bottom:
        words: list[str] = []
        while sum(map(len, words)) * step * 0.5 < width * 0.8:
            words.append(chosen.choice(words_known))
        y = _text(draw, left, y, " ".join(words), step) + step // 4
        count += 1
        if count % 5 == 0:
            y += step


def _text(draw: ImageDraw, x: int, y: int, text: str, size: int) -> int:
    """Write a line; returns where the next can begin."""
    from PIL import ImageFont

    draw.text((x, y), text, font=ImageFont.load_default(size), fill=_INK)
    return y + int(size * 1.2)
