"""Invoices."""

from __future__ import annotations

from vlmhb_demo.documents.page import BOLD, Colour, Page, Style
from vlmhb_demo.documents.source import Source

COLUMNS, ROWS = 11, 8
PAPERS: tuple[Colour, ...] = ((251, 251, 248), (248, 250, 252), (252, 249, 244))
HEADS: tuple[Colour, ...] = ((226, 230, 236), (220, 232, 228), (236, 228, 218))
QUANTITY, RIGHT = 196, 300
LABELS = {
    "ru": {
        "title": "СЧЁТ №",
        "seller": "Продавец",
        "buyer": "Покупатель",
        "goods": "Товар",
        "quantity": "Кол.",
        "sum": "Сумма",
        "total": "Итого к оплате",
        "due": "Оплатить до",
    },
    "en": {
        "title": "INVOICE No.",
        "seller": "Seller",
        "buyer": "Buyer",
        "goods": "Item",
        "quantity": "Qty",
        "sum": "Amount",
        "total": "Total due",
        "due": "Pay by",
    },
}


def draw(source: Source, style: Style) -> Page:
    """An invoice for two things; the amounts add up."""
    labels, tone, rng = LABELS[source.code], source.rng.randrange(len(PAPERS)), source.rng
    page = Page.blank(COLUMNS, ROWS, PAPERS[tone], style)
    after = page.label(0, 8, labels["title"], 14, BOLD).box[2] - style.right + 7
    page.ask("number", page.value(0, after, source.digits(rng.choice((3, 4, 4, 5)))))
    page.ask("date", page.value(0, RIGHT, source.date(2019, 2027), align="r"))
    seller, buyer = source.different(source.firm, 2)
    page.labelled(1, 8, labels["seller"], seller, "seller")
    page.labelled(2, 8, labels["buyer"], buyer, "buyer")
    page.band(3, HEADS[tone])
    page.label(3, 8, labels["goods"])
    page.label(3, QUANTITY, labels["quantity"], align="r")
    page.label(3, RIGHT, labels["sum"], align="r")
    total = 0
    for row, name in enumerate(source.different(source.goods, 2), start=4):
        cost = source.price(40000)
        page.value(row, 8, name)
        page.value(row, QUANTITY, str(rng.randint(1, 40)), align="r")
        page.value(row, RIGHT, source.amount(cost), align="r")
        page.line(row)
        total += cost
    page.label(6, 8, labels["total"], 14, BOLD)
    page.ask("total", page.value(6, RIGHT, source.money(total), align="r"))
    page.labelled(7, 8, labels["due"], source.date(2019, 2027), "due")
    return page
