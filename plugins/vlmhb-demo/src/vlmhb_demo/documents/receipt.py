"""Till receipts."""

from __future__ import annotations

import random

from vlmhb_demo.documents.page import MONO, ROW, Colour, Page, Style
from vlmhb_demo.documents.source import Source

COLUMNS, ROWS = 8, 11
PAPERS: tuple[Colour, ...] = ((248, 247, 240), (250, 250, 250), (246, 243, 236))
LEFT, RIGHT = 8, 216
SIZE = 16
DASH: Colour = (150, 148, 142)
LABELS = {
    "ru": {"number": "Чек №", "total": "ИТОГО", "card": "Картой", "cash": "Наличными", "thanks": "Спасибо!"},
    "en": {"number": "Receipt", "total": "TOTAL", "card": "Card", "cash": "Cash", "thanks": "Thank you!"},
}
PAYMENT = {"ru": {"card": "картой", "cash": "наличными"}, "en": {"card": "card", "cash": "cash"}}


def draw(source: Source, style: Style) -> Page:
    """A receipt for two to four things; the prices add up."""
    labels, rng = LABELS[source.code], source.rng
    page = Page.blank(COLUMNS, ROWS, rng.choice(PAPERS), style)
    page.ask("seller", page.value(0, page.width // 2, source.shop(), MONO, SIZE, align="m"))
    page.label(1, LEFT, labels["number"], SIZE, MONO)
    page.ask("number", page.value(1, RIGHT, source.digits(6), MONO, SIZE, align="r"))
    page.ask("date", page.value(2, LEFT, source.date(2019, 2027), MONO, SIZE))
    page.value(2, RIGHT, f"{rng.randint(7, 22):02d}:{rng.randint(0, 59):02d}", MONO, SIZE, align="r")
    _dashes(page, 2)
    total, row = 0, 3
    for name in source.different(source.goods, rng.randint(2, 4)):
        cost = source.price(900)
        page.value(row, LEFT, name, MONO, SIZE)
        text = page.value(row, RIGHT, source.amount(cost), MONO, SIZE, align="r")
        if row == 3:
            page.ask("price", text, name)
        total += cost
        row += 1
    _dashes(page, row - 1)
    page.label(row, LEFT, labels["total"], SIZE, MONO)
    page.ask("total", page.value(row, RIGHT, source.money(total), MONO, SIZE, align="r"))
    way = rng.choice(("card", "cash"))
    text = page.label(row + 1, LEFT, labels[way], SIZE, MONO)
    page.choose("payment", PAYMENT[source.code][way], text.box)
    if row < 6:
        page.label(row + 2, page.width // 2, labels["thanks"], SIZE, MONO, "m")
        row += 1
    _bars(page, row + 2, rng)
    return page


def _dashes(page: Page, row: int) -> None:
    y = (row + 1) * ROW - 1 + page.style.down
    for x in range(LEFT, RIGHT, 8):
        page.draw.line((x, y, x + 4, y), fill=DASH)


def _bars(page: Page, row: int, rng: random.Random) -> None:
    """A bar code that means nothing, from a row to the foot of the page."""
    x, top, bottom = 44, row * ROW + 6, min(ROWS, row + 2) * ROW - 8
    while x < page.width - 46:
        width = rng.choice((1, 1, 2, 3))
        page.draw.rectangle((x, top, x + width - 1, bottom), fill=(60, 60, 64))
        x += width + rng.choice((1, 2, 3))
