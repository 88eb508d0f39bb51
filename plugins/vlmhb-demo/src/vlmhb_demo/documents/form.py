"""Forms filled in by hand: lettered cells, lines, boxes to tick."""

from __future__ import annotations

import random

from vlmhb_demo.documents import strokes
from vlmhb_demo.documents.invented import Language, digits
from vlmhb_demo.documents.page import BOLD, FAINT, ITALIC, SERIF_BOLD, Colour, Page, Text

WIDTH, HEIGHT = 560, 600
PAPERS: tuple[Colour, ...] = ((249, 248, 242), (244, 248, 245), (250, 246, 246))
HAND: Colour = (30, 45, 110)
LEFT, RIGHT = 40, WIDTH - 40
CELL, CELL_HEIGHT, CELLS = 24, 30, 20
LABELS = {
    "ru": {
        "title": "ЗАЯВЛЕНИЕ",
        "subtitle": "на получение читательского билета",
        "surname": "1. Фамилия (по букве в клетке)",
        "given name": "2. Имя и отчество",
        "address": "3. Адрес",
        "phone": "4. Телефон",
        "delivery": "5. Как получить билет (отметьте одно)",
        "choices": ("почтой", "лично", "через курьера"),
        "date": "Дата",
        "signature": "Подпись",
    },
    "en": {
        "title": "APPLICATION",
        "subtitle": "for a library card",
        "surname": "1. Surname (one letter in each box)",
        "given name": "2. Given name",
        "address": "3. Address",
        "phone": "4. Telephone",
        "delivery": "5. How to send the card (tick one)",
        "choices": ("by post", "in person", "by courier"),
        "date": "Date",
        "signature": "Signature",
    },
}


def draw(language: Language, number: int, rng: random.Random) -> Page:
    """The form that person ``number + 3`` filled in."""
    labels, person = LABELS[language.code], language.people[number + 3]
    page = Page.blank(WIDTH, HEIGHT, PAPERS[number])
    page.draw.rectangle((16, 16, WIDTH - 17, HEIGHT - 17), outline=(150, 154, 160), width=1)
    page.text(WIDTH // 2, 62, str(labels["title"]), 22, SERIF_BOLD, align="m")
    page.text(WIDTH // 2, 84, str(labels["subtitle"]), 13, fill=FAINT, align="m")

    page.text(LEFT, 122, str(labels["surname"]), 12, BOLD)
    page.ask("surname", page.lettered(LEFT, 132, person.surname.upper(), CELL, CELL_HEIGHT, CELLS))
    _written(page, 196, str(labels["given name"]), f"{person.given} {person.middle}".strip())
    page.ask("address", _written(page, 256, str(labels["address"]), _address(language, number, rng)))
    page.ask("phone", _written(page, 316, str(labels["phone"]), _phone(language, rng)))

    page.text(LEFT, 376, str(labels["delivery"]), 12, BOLD)
    page.ask("delivery", _ticked(page, 394, tuple(labels["choices"]), rng))
    page.text(LEFT, 540, str(labels["date"]), 12, BOLD)
    page.draw.line((90, 545, 220, 545), fill=FAINT, width=1)
    page.ask("date", page.text(98, 540, language.short_date(rng, 2024, 2026), 16, ITALIC, fill=HAND))
    page.text(270, 540, str(labels["signature"]), 12, BOLD)
    page.draw.line((350, 545, RIGHT, 545), fill=FAINT, width=1)
    strokes.signature(page, 366, 538, rng)
    return page


def _written(page: Page, y: int, label: str, value: str) -> Text:
    page.text(LEFT, y, label, 12, BOLD)
    page.draw.line((LEFT, y + 34, RIGHT, y + 34), fill=FAINT, width=1)
    return page.text(LEFT + 12, y + 28, value, 17, ITALIC, fill=HAND)


def _ticked(page: Page, y: int, choices: tuple[str, ...], rng: random.Random) -> Text:
    """Boxes below one another, one of them crossed; returns its text."""
    chosen = rng.randrange(len(choices))
    texts = []
    for place, choice in enumerate(choices):
        top = y + place * 32
        page.draw.rectangle((LEFT + 8, top, LEFT + 28, top + 20), outline=(70, 74, 84), width=2)
        if place == chosen:
            page.draw.line((LEFT + 11, top + 2, LEFT + 27, top + 19), fill=HAND, width=3)
            page.draw.line((LEFT + 26, top + 1, LEFT + 10, top + 18), fill=HAND, width=3)
        texts.append(page.text(LEFT + 42, top + 16, choice, 14))
    return texts[chosen]


def _address(language: Language, number: int, rng: random.Random) -> str:
    town, street, house = language.towns[number], language.streets[number + 1], rng.randint(2, 98)
    if language.code == "ru":
        return f"{town}, {street}, д. {house}, кв. {rng.randint(1, 140)}"
    return f"{house} {street}, {town}"


def _phone(language: Language, rng: random.Random) -> str:
    if language.code == "ru":
        return f"+7 (000) {digits(rng, 3)}-{digits(rng, 2)}-{digits(rng, 2)}"
    return f"01632 960 {digits(rng, 3)}"
