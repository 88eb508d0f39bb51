"""Stock lists: a table with three columns."""

from __future__ import annotations

from vlmhb_demo.documents.page import BOLD, ROW, RULE, Colour, Page, Style
from vlmhb_demo.documents.source import Source

COLUMNS, ROWS = 11, 8
PAPERS: tuple[Colour, ...] = ((252, 252, 252), (250, 250, 244))
HEADS: tuple[Colour, ...] = ((218, 228, 240), (224, 234, 216), (238, 226, 214))
LINES = 5
QUANTITY, RIGHT = 206, 300
EDGES = (4, 164, 212, 304)
LABELS = {
    "ru": {"title": "СКЛАД №", "goods": "Товар", "quantity": "Кол.", "price": "Цена"},
    "en": {"title": "STOCK LIST", "goods": "Item", "quantity": "Qty", "price": "Price"},
}


def draw(source: Source, style: Style) -> Page:
    """What lies in a store, how much of it, and at what price."""
    labels, rng = LABELS[source.code], source.rng
    page = Page.blank(COLUMNS, ROWS, rng.choice(PAPERS), style)
    after = page.label(0, 8, labels["title"], 14, BOLD).box[2] - style.right + 7
    page.ask("store", page.value(0, after, str(rng.randint(1, 99))))
    page.ask("date", page.value(0, RIGHT, source.date(2019, 2027), align="r"))
    page.band(1, rng.choice(HEADS))
    page.label(1, 8, labels["goods"])
    page.label(1, QUANTITY, labels["quantity"], align="r")
    page.label(1, RIGHT, labels["price"], align="r")
    asked = rng.sample(range(LINES), 2)
    for line, name in enumerate(source.different(source.goods, LINES)):
        page.value(2 + line, 8, name)
        quantity = page.value(2 + line, QUANTITY, str(rng.randint(1, 999)), align="r")
        price = page.value(2 + line, RIGHT, source.amount(source.price(20000)), align="r")
        if line == asked[0]:
            page.ask("price", price, name)
        if line == asked[1]:
            page.ask("quantity", quantity, name)
        page.line(2 + line, left=EDGES[0], right=page.width - EDGES[-1])
    for x in EDGES:
        page.draw.line((x, ROW, x, (2 + LINES) * ROW - 1), fill=RULE)
    return page
