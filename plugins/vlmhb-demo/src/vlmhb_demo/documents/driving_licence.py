"""Driving licences: numbered fields, as on the cards of most countries."""

from __future__ import annotations

from vlmhb_demo.documents import strokes
from vlmhb_demo.documents.page import BOLD, ROW, Colour, Page, Style
from vlmhb_demo.documents.source import Source

COLUMNS, ROWS = 11, 7
PAPERS: tuple[Colour, ...] = ((246, 236, 238), (236, 240, 248), (244, 242, 230))
BANDS: tuple[Colour, ...] = ((234, 204, 212), (202, 214, 236), (226, 220, 186))
TITLES = {"ru": "ВОДИТЕЛЬСКОЕ УДОСТОВЕРЕНИЕ", "en": "DRIVING LICENCE"}
TEXT = 78
CATEGORIES = (
    "A",
    "B",
    "M",
    "A, B",
    "B, M",
    "B, C",
    "B, BE",
    "A, B, M",
    "B, B1, M",
    "B, C, CE",
    "B, C1",
    "A1, B",
    "B, D",
)


def draw(source: Source, style: Style) -> Page:
    """A card on which numbers stand for the names of the fields."""
    tone = source.rng.randrange(len(PAPERS))
    page = Page.blank(COLUMNS, ROWS, PAPERS[tone], style)
    page.band(0, BANDS[tone])
    page.label(0, page.width // 2, TITLES[source.code], 14, BOLD, "m")
    strokes.portrait(page, (8, ROW + 8, 68, 4 * ROW + 12), BANDS[tone])
    surname, given, _ = source.person()
    issued = source.rng.randint(2015, 2026)
    page.labelled(1, TEXT, "1.", surname, "surname")
    page.labelled(2, TEXT, "2.", given, "given name")
    page.labelled(3, TEXT, "3.", source.date(1940, 2006), "date of birth")
    page.labelled(4, TEXT, "4a.", source.date(issued, issued), "issued")
    page.labelled(5, TEXT, "4b.", source.date(issued + 10, issued + 10), "expiry")
    page.labelled(6, 8, "5.", f"{source.digits(4)} {source.digits(6)}", "number")
    page.labelled(6, 186, "9.", source.rng.choice(CATEGORIES), "categories")
    page.line(5, BANDS[tone])
    return page
