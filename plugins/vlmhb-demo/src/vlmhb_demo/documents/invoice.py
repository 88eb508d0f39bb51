"""Invoices with a ruled table."""

from __future__ import annotations

import random
from dataclasses import dataclass

from vlmhb_demo.documents import strokes
from vlmhb_demo.documents.invented import Language, digits
from vlmhb_demo.documents.page import BOLD, FAINT, SERIF_BOLD, Colour, Page

WIDTH, HEIGHT = 560, 690
PAPERS: tuple[Colour, ...] = ((250, 249, 244), (247, 248, 251), (251, 247, 240))
HEAD: Colour = (228, 232, 238)
RULE: Colour = (96, 100, 110)
LEFT, RIGHT = 36, WIDTH - 36
COLUMNS = (LEFT, 66, 296, 348, 432, RIGHT)
ROW = 28
SUMS = 396
"""Right edge of the names of the sums below the table."""
LABELS = {
    "ru": {
        "title": "СЧЁТ НА ОПЛАТУ",
        "number": "№",
        "date": "от",
        "seller": "Продавец:",
        "buyer": "Покупатель:",
        "account": "Р/с продавца:",
        "columns": ("№", "Наименование", "Кол.", "Цена, руб.", "Сумма, руб."),
        "net": "Без НДС:",
        "tax": "НДС 20 %:",
        "total": "Всего к оплате:",
        "due": "Оплатить до",
        "signed": "Главный бухгалтер",
    },
    "en": {
        "title": "INVOICE",
        "number": "No.",
        "date": "of",
        "seller": "Seller:",
        "buyer": "Buyer:",
        "account": "Account:",
        "columns": ("#", "Description", "Qty", "Price, £", "Amount, £"),
        "net": "Net:",
        "tax": "VAT 20 %:",
        "total": "Total to pay:",
        "due": "Payable by",
        "signed": "Chief accountant",
    },
}


@dataclass(frozen=True)
class _Line:
    name: str
    count: int
    price: int


def draw(language: Language, number: int, rng: random.Random) -> Page:
    """The invoice of firm ``number`` to the next one."""
    labels = LABELS[language.code]
    page, year = Page.blank(WIDTH, HEIGHT, PAPERS[number]), 2024 + number % 2
    page.text(LEFT, 64, str(labels["title"]), 24, SERIF_BOLD)
    page.draw.line((LEFT, 78, RIGHT, 78), fill=RULE, width=2)
    x = _after(page, LEFT, 106, str(labels["number"]))
    letter = rng.choice("АБКЛ" if language.code == "ru" else "ABKL")
    number_text = page.text(x, 106, f"{rng.randint(100, 999)}-{letter}", 15, BOLD)
    page.ask("number", number_text)
    x = _after(page, number_text.box[2] + 10, 106, str(labels["date"]))
    page.ask("date", page.text(x, 106, language.long_date(rng, year), 15))
    for y, who, firm in ((146, "seller", number), (172, "buyer", (number + 2) % 5)):
        page.text(LEFT, y, str(labels[who]), 13, fill=FAINT)
        page.ask(who, page.text(150, y, language.firms[firm], 15, BOLD))

    page.text(LEFT, 198, str(labels["account"]), 13, fill=FAINT)
    page.text(150, 198, " ".join(digits(rng, 4) for _ in range(5)), 15)

    lines = [_Line(g.name, rng.choice((1, 1, 2, 3)), g.price) for g in rng.sample(language.services, 3 + number)]
    bottom = _table(page, 222, language, tuple(labels["columns"]), lines)
    _sums(page, bottom + 34, language, sum(line.count * line.price for line in lines))
    page.text(LEFT, 600, f"{labels['due']} {language.short_date(rng, year + 1, year + 1)}", 13)
    page.text(LEFT, 640, str(labels["signed"]), 13)
    page.draw.line((190, 644, 350, 644), fill=RULE, width=1)
    strokes.signature(page, 200, 640, rng)
    strokes.stamp(page, 440, 606, rng)
    return page


def _after(page: Page, x: int, y: int, label: str) -> int:
    return page.text(x, y, label, 15).box[2] + 7


def _table(page: Page, top: int, language: Language, heads: tuple[str, ...], lines: list[_Line]) -> int:
    """Draw the table and return its lower edge."""
    bottom = top + ROW * (len(lines) + 1)
    page.draw.rectangle((LEFT, top, RIGHT, top + ROW), fill=HEAD)
    for row in range(len(lines) + 2):
        page.draw.line((LEFT, top + row * ROW, RIGHT, top + row * ROW), fill=RULE, width=1)
    for x in COLUMNS:
        page.draw.line((x, top, x, bottom), fill=RULE, width=1)
    for column, head in enumerate(heads):
        page.text((COLUMNS[column] + COLUMNS[column + 1]) // 2, top + 18, head, 11, BOLD, align="m")
    for row, line in enumerate(lines, start=1):
        y = top + row * ROW + 19
        page.text((LEFT + COLUMNS[1]) // 2, y, str(row), 12, align="m")
        page.text(COLUMNS[1] + 8, y, line.name, 12)
        page.text((COLUMNS[2] + COLUMNS[3]) // 2, y, str(line.count), 12, align="m")
        page.text(COLUMNS[4] - 7, y, language.amount(line.price), 12, align="r")
        page.text(RIGHT - 7, y, language.amount(line.price * line.count), 12, align="r")
    return bottom


def _sums(page: Page, y: int, language: Language, net: int) -> None:
    labels = LABELS[language.code]
    tax = round(net / 5)
    for label, value in (("net", net), ("tax", tax)):
        page.text(SUMS, y, str(labels[label]), 13, align="r")
        page.text(RIGHT - 7, y, language.amount(value), 13, align="r")
        y += 24
    page.text(SUMS, y + 4, str(labels["total"]), 15, BOLD, align="r")
    page.ask("total", page.text(RIGHT - 7, y + 4, language.amount(net + tax), 15, BOLD, align="r"))
