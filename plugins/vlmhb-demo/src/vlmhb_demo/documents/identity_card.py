"""Identity cards of a country that does not exist."""

from __future__ import annotations

from vlmhb_demo.documents import strokes
from vlmhb_demo.documents.page import BOLD, ROW, Colour, Page, Style
from vlmhb_demo.documents.source import Source

COLUMNS, ROWS = 11, 7
PAPERS: tuple[Colour, ...] = ((232, 240, 244), (244, 238, 230), (234, 242, 232), (240, 236, 244))
BANDS: tuple[Colour, ...] = ((196, 216, 230), (228, 208, 196), (200, 222, 202), (214, 206, 228))
TEXT = 74
LABELS = {
    "ru": {
        "title": "УДОСТОВЕРЕНИЕ ЛИЧНОСТИ",
        "surname": "Фамилия",
        "given name": "Имя",
        "middle name": "Отчество",
        "date of birth": "Дата рождения",
        "number": "Номер",
        "expiry": "Действительно до",
    },
    "en": {
        "title": "IDENTITY CARD",
        "surname": "Surname",
        "given name": "Given name",
        "middle name": "Place of birth",
        "date of birth": "Date of birth",
        "number": "Number",
        "expiry": "Valid until",
    },
}


def draw(source: Source, style: Style) -> Page:
    """A card with a photograph."""
    labels, tone = LABELS[source.code], source.rng.randrange(len(PAPERS))
    page = Page.blank(COLUMNS, ROWS, PAPERS[tone], style)
    page.band(0, BANDS[tone])
    page.label(0, page.width // 2, labels["title"], 15, BOLD, "m")
    strokes.portrait(page, (8, ROW + 6, 64, 4 * ROW + 6), BANDS[tone])
    surname, given, middle = source.person()
    page.labelled(1, TEXT, labels["surname"], surname, "surname")
    page.labelled(2, TEXT, labels["given name"], given, "given name")
    if source.russian:
        page.labelled(3, TEXT, labels["middle name"], middle, "middle name")
    else:
        page.labelled(3, TEXT, labels["middle name"], source.town(), "place of birth")
    page.labelled(4, TEXT, labels["date of birth"], source.date(1940, 2008), "date of birth")
    page.labelled(5, 8, labels["number"], f"{source.digits(4)} {source.digits(6)}", "number")
    page.labelled(6, 8, labels["expiry"], source.date(2026, 2039), "expiry")
    page.line(4, BANDS[tone])
    return page
