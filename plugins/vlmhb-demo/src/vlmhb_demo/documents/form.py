"""Forms filled in with a pen: ruled lines and two boxes, one of them crossed."""

from __future__ import annotations

from vlmhb_demo.documents import strokes
from vlmhb_demo.documents.page import BOLD, ROW, Box, Colour, Page, Style
from vlmhb_demo.documents.source import Source

COLUMNS, ROWS = 11, 8
PAPERS: tuple[Colour, ...] = ((250, 249, 243), (245, 249, 246), (251, 247, 247))
PEN: Colour = (28, 40, 112)
FRAME: Colour = (120, 126, 138)
LABELS = {
    "ru": {
        "title": "ЗАЯВЛЕНИЕ",
        "surname": "Фамилия",
        "town": "Город",
        "address": "Адрес",
        "phone": "Телефон",
        "delivery": "Доставка",
        "yes": "да",
        "no": "нет",
        "date": "Дата",
        "signature": "Подпись",
    },
    "en": {
        "title": "APPLICATION",
        "surname": "Surname",
        "town": "Town",
        "address": "Address",
        "phone": "Telephone",
        "delivery": "Delivery",
        "yes": "yes",
        "no": "no",
        "date": "Date",
        "signature": "Signature",
    },
}


def draw(source: Source, style: Style) -> Page:
    """A form with one yes-or-no question."""
    labels, rng = LABELS[source.code], source.rng
    page = Page.blank(COLUMNS, ROWS, rng.choice(PAPERS), style)
    page.draw.rectangle((2, 2, page.width - 3, ROWS * ROW - 3), outline=(196, 200, 208))
    page.label(0, page.width // 2, labels["title"], 15, BOLD, "m")
    written = {
        "surname": source.person()[0],
        "town": source.town(),
        "address": source.address(),
        "phone": source.phone(),
    }
    for row, (kind, content) in enumerate(written.items(), start=1):
        page.labelled(row, 10, labels[kind], content, kind, PEN)
        page.line(row, left=10, right=10)
    page.label(5, 10, labels["delivery"])
    chosen = rng.choice(("yes", "no"))
    boxes = {answer: _box(page, x, answer == chosen) for answer, x in (("yes", 110), ("no", 200))}
    page.choose("delivery", labels[chosen], boxes[chosen])
    page.label(5, 134, labels["yes"], 15)
    page.label(5, 224, labels["no"], 15)
    page.labelled(6, 10, labels["date"], source.date(2019, 2027), "date", PEN)
    page.label(7, 10, labels["signature"])
    strokes.signature(page, 90 + rng.randint(0, 30), 7 * ROW + 18, rng)
    return page


def _box(page: Page, x: int, crossed: bool) -> Box:
    x, y = x + page.style.right, 5 * ROW + 6 + page.style.down
    page.draw.rectangle((x, y, x + 16, y + 16), outline=FRAME, width=2)
    if crossed:
        page.draw.line((x + 2, y + 3, x + 14, y + 14), fill=PEN, width=3)
        page.draw.line((x + 14, y + 2, x + 3, y + 14), fill=PEN, width=3)
    return (x, y, x + 17, y + 17)
