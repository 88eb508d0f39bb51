"""Till receipts."""

from __future__ import annotations

import random

from vlmhb_demo.documents.invented import Language, digits
from vlmhb_demo.documents.page import MONO, MONO_BOLD, Colour, Page

WIDTH = 360
PAPER: Colour = (246, 244, 236)
LEFT, RIGHT = 22, WIDTH - 22
RULE: Colour = (120, 118, 112)
LABELS = {
    "ru": {
        "title": "КАССОВЫЙ ЧЕК",
        "number": "Чек №",
        "cashier": "Кассир",
        "total": "ИТОГО",
        "tax": "В т. ч. НДС 20 %",
        "card": "Оплата картой",
        "thanks": "Спасибо за покупку!",
    },
    "en": {
        "title": "SALES RECEIPT",
        "number": "Receipt no.",
        "cashier": "Served by",
        "total": "TOTAL",
        "tax": "Incl. VAT 20 %",
        "card": "Card payment",
        "thanks": "Thank you for your visit!",
    },
}


def draw(language: Language, number: int, rng: random.Random) -> Page:
    """The receipt of shop ``number``, with four to six goods."""
    labels = LABELS[language.code]
    goods = rng.sample(language.groceries, rng.randint(4, 6))
    page = Page.blank(WIDTH, 392 + 40 * len(goods), PAPER)
    middle = WIDTH // 2

    seller = page.text(middle, 40, language.shops[number], 18, MONO_BOLD, align="m")
    page.ask("seller", seller)
    street = f"{rng.choice(language.streets)}, {rng.randint(1, 90)}"
    page.text(middle, 62, street if language.code == "ru" else _house_first(street), 13, MONO, align="m")
    page.text(middle, 90, labels["title"], 15, MONO, align="m")
    y = _row(page, 116, f"{labels['number']} {digits(rng, 6)}", f"{rng.randint(8, 21):02d}:{rng.randint(0, 59):02d}")
    page.text(LEFT, y, f"{labels['cashier']} {language.people[number + 6].given}", 13, MONO)
    page.ask("date", page.text(RIGHT, y, language.short_date(rng, 2023, 2026), 13, MONO, align="r"))
    y = _rule(page, y + 14)

    total = 0
    for item in goods:
        count = rng.choice((1, 1, 2, 3))
        total += item.price * count
        page.text(LEFT, y, item.name, 14, MONO)
        page.text(LEFT + 14, y + 19, f"{count} × {language.amount(item.price)}", 13, MONO)
        page.text(RIGHT, y + 19, language.amount(item.price * count), 13, MONO, align="r")
        y += 40
    y = _rule(page, y - 8)

    page.text(LEFT, y + 4, labels["total"], 20, MONO_BOLD)
    page.ask("total", page.text(RIGHT, y + 4, language.money(total), 20, MONO_BOLD, align="r"))
    y = _row(page, y + 30, labels["tax"], language.amount(round(total / 6)))
    y = _row(page, y, labels["card"], f"**** {digits(rng, 4)}")
    y = _rule(page, y - 4)
    page.text(middle, y + 2, labels["thanks"], 13, MONO, align="m")
    _bars(page, y + 18, rng)
    page.ask_for_everything()
    return page


def _house_first(street: str) -> str:
    name, house = street.rsplit(", ", 1)
    return f"{house} {name}"


def _row(page: Page, y: int, left: str, right: str) -> int:
    page.text(LEFT, y, left, 13, MONO)
    page.text(RIGHT, y, right, 13, MONO, align="r")
    return y + 22


def _rule(page: Page, y: int) -> int:
    """A dashed line; returns the baseline of the row below it."""
    for x in range(LEFT, RIGHT, 9):
        page.draw.line((x, y, min(x + 5, RIGHT), y), fill=RULE, width=1)
    return y + 24


def _bars(page: Page, y: int, rng: random.Random) -> None:
    """A bar code that means nothing."""
    x = LEFT + 34
    while x < RIGHT - 36:
        width = rng.choice((1, 1, 2, 3))
        page.draw.rectangle((x, y, x + width - 1, y + 46), fill=(28, 28, 30))
        x += width + rng.choice((1, 2, 3))
