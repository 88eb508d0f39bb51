"""Short letters."""

from __future__ import annotations

from vlmhb_demo.documents.fonts import font
from vlmhb_demo.documents.page import SANS, VALUE, Colour, Page, Style
from vlmhb_demo.documents.source import Source

COLUMNS, ROWS = 11, 8
PAPERS: tuple[Colour, ...] = ((252, 251, 246), (250, 250, 250), (249, 246, 240))
LEFT, RIGHT = 8, 300
LINES = 4
LABELS = {"ru": ("Здравствуйте,", "С уважением,"), "en": ("Dear", "Yours sincerely,")}


def draw(source: Source, style: Style) -> Page:
    """A date, an address, a sentence or two, a signature."""
    (greeting, close), rng = LABELS[source.code], source.rng
    page = Page.blank(COLUMNS, ROWS, rng.choice(PAPERS), style)
    page.ask("date", page.value(0, RIGHT, source.date(2019, 2027), align="r"))
    after = page.label(1, LEFT, greeting, VALUE).box[2] - style.right + 6
    _, name, _ = source.person()
    text = page.value(1, after, name + ("!" if source.russian else ","))
    page.choose("addressee", name, text.box)
    for row, line in enumerate(wrap(source.prose(), RIGHT - LEFT)[:LINES], start=2):
        page.value(row, LEFT, line)
    page.label(6, LEFT, close, VALUE)
    sender = source.person()
    page.ask("sender", page.value(7, LEFT, f"{sender[1]} {sender[0]}"))
    return page


def wrap(text: str, width: int) -> list[str]:
    """Cut a text at spaces into lines at most ``width`` pixels wide."""
    letters = font(SANS, VALUE)
    lines: list[str] = []
    for word in text.split(" "):
        if lines and letters.getlength(f"{lines[-1]} {word}") <= width:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(word)
    return lines
