"""Where on a page each letter of an answer stands: what the language model should look at to say it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from vlmhb_demo.documents.fonts import font
from vlmhb_demo.documents.page import BASELINE, ROW, Page, Question, Text

from training.sizes import CELL

NOWHERE = -1
"""The place of a letter that stands nowhere, as in the name of a class."""


def centres(text: Text) -> Iterator[tuple[str, float, float]]:
    """Every letter of a text with the middle of its box of the line, in pixels."""
    x, y = float(text.left), text.baseline - BASELINE + ROW // 2
    for letter in text.content:
        width = _advance(text.face, text.size, letter)
        yield letter, x + width / 2, y
        x += width


def cell(page: Page, x: float, y: float) -> int:
    """The number of the image token that a point belongs to."""
    columns, rows = page.image.width // CELL, page.image.height // CELL
    return min(max(int(y) // CELL, 0), rows - 1) * columns + min(max(int(x) // CELL, 0), columns - 1)


def path(page: Page, question: Question) -> list[int]:
    """For every letter of the answer the image token that shows it, or ``NOWHERE``."""
    if question.kind == "full text":
        return _path_of_everything(page, question.answer)
    for text in page.texts:
        start = text.content.casefold().find(question.answer.casefold())
        if text.box == question.box and start >= 0:
            return _cells(page, text)[start : start + len(question.answer)]
    if question.box == page.whole:
        return [NOWHERE] * len(question.answer)
    left, top, right, bottom = question.box
    return [cell(page, (left + right) / 2, (top + bottom) / 2)] * len(question.answer)


def _path_of_everything(page: Page, answer: str) -> list[int]:
    """What stands between two texts is where the first of them ends."""
    found: list[int] = []
    for text in sorted(page.texts, key=lambda text: (text.baseline, text.left)):
        if found:
            found.append(found[-1])
        found += _cells(page, text)
    assert len(found) == len(answer)
    return found


def _cells(page: Page, text: Text) -> list[int]:
    return [cell(page, x, y) for _, x, y in centres(text)]


@cache
def _advance(face: str, size: int, letter: str) -> float:
    return font(face, size).getlength(letter)
