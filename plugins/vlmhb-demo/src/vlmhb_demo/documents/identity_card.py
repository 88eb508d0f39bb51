"""Identity cards of a country that does not exist."""

from __future__ import annotations

import math
import random

from vlmhb_demo.documents import strokes
from vlmhb_demo.documents.invented import Language, digits
from vlmhb_demo.documents.page import BOLD, FAINT, MONO_BOLD, Colour, Page

WIDTH, HEIGHT = 600, 380
PAPERS: tuple[Colour, ...] = ((226, 236, 240), (240, 233, 224), (230, 238, 226))
BANDS: tuple[Colour, ...] = ((36, 82, 122), (126, 52, 56), (44, 98, 74))
TONES: tuple[Colour, ...] = ((120, 132, 146), (142, 128, 120), (112, 134, 124))
LABELS = {
    "ru": {
        "country": "РЕСПУБЛИКА ТРИДЕВЯТАЯ",
        "title": "УДОСТОВЕРЕНИЕ ЛИЧНОСТИ",
        "surname": "Фамилия",
        "given name": "Имя, отчество",
        "date of birth": "Дата рождения",
        "place": "Место рождения",
        "number": "Номер",
        "expiry": "Действительно до",
        "note": "Образец. Все данные вымышлены.",
    },
    "en": {
        "country": "ISLES OF NOWHERE",
        "title": "IDENTITY CARD",
        "surname": "Surname",
        "given name": "Given name",
        "date of birth": "Date of birth",
        "place": "Place of birth",
        "number": "Number",
        "expiry": "Valid until",
        "note": "Specimen. All data are invented.",
    },
}


def draw(language: Language, number: int, rng: random.Random) -> Page:
    """The card of person ``number``."""
    labels, person = LABELS[language.code], language.people[number]
    page = Page.blank(WIDTH, HEIGHT, PAPERS[number])
    _waves(page, PAPERS[number], rng)
    page.draw.rectangle((0, 0, WIDTH, 58), fill=BANDS[number])
    page.text(24, 26, labels["country"], 13, fill=(235, 238, 240))
    page.text(24, 48, labels["title"], 18, BOLD, fill=(255, 255, 255))
    page.draw.rectangle((24, 80, 192, 284), fill=(214, 220, 226), outline=(140, 150, 160))
    strokes.portrait(page, (25, 81, 192, 284), TONES[number])
    strokes.signature(page, 40, 314, rng)

    card_number = f"{digits(rng, 4)} {digits(rng, 6)}"
    given = f"{person.given} {person.middle}".strip()
    fields = (
        (220, 92, "surname", person.surname),
        (220, 144, "given name", given),
        (220, 196, "date of birth", language.short_date(rng, 1950, 2004)),
        (220, 248, "place", language.towns[number]),
        (220, 300, "number", card_number),
        (420, 300, "expiry", language.short_date(rng, 2031, 2039)),
    )
    for x, y, kind, value in fields:
        page.text(x, y, labels[kind], 11, fill=FAINT)
        face = MONO_BOLD if kind == "number" else BOLD
        text = page.text(x, y + 22, value, 18, face)
        if kind in ("surname", "given name", "date of birth", "number"):
            page.ask(kind, text)
    page.draw.line((24, 338, WIDTH - 24, 338), fill=BANDS[number], width=1)
    page.text(24, 360, labels["note"], 11, fill=FAINT)
    page.ask_for_everything()
    return page


def _waves(page: Page, paper: Colour, rng: random.Random) -> None:
    """Fine waves under the text, as security paper has them."""
    phase = rng.uniform(0, math.tau)
    colour = tuple(channel - 13 for channel in paper)
    for line in range(-4, 36):
        points = [
            (x, line * 12 + 14 * math.sin(x / 61 + phase) + 6 * math.sin(x / 23 + line / 5)) for x in range(0, 606, 6)
        ]
        page.draw.line(points, fill=colour, width=1)
