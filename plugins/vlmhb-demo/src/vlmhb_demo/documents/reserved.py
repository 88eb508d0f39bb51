"""What training must not show: everything that the shipped pages of ``demo-documents`` are filled with."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache

from vlmhb_demo.documents import dataset
from vlmhb_demo.documents.invented import ENGLISH, RUSSIAN, Names
from vlmhb_demo.documents.page import Page

SHORTEST = 5
"""Shorter values, such as a quantity or a category, cannot be kept apart."""


@dataclass(frozen=True)
class Reserved:
    """The shipped values and the words of the shipped names, lower case."""

    values: frozenset[str]
    words: frozenset[str]

    def met_on(self, page: Page) -> list[str]:
        """The values of a page that hold something reserved."""
        return [value for value in page.values if value in self.values or self.words & set(_words(value))]


@cache
def reserved() -> Reserved:
    """All that is reserved, found by drawing the shipped pages."""
    pages = (document.page for document in dataset.documents())
    values = frozenset(value for page in pages for value in page.values if len(value) >= SHORTEST)
    names = (name for language in (RUSSIAN, ENGLISH) for name in _names(language))
    return Reserved(values, frozenset(word for name in names for word in _words(name)))


def _names(names: Names) -> list[str]:
    """Everything but the letters, whose sentences are made of words that any letter has."""
    found = [part for person in names.people for part in person]
    for field in fields(names):
        if field.name not in ("people", "letters"):
            found.extend(getattr(names, field.name))
    return found


def _words(text: str) -> list[str]:
    """Words of five letters or more: shorter ones are legal forms, units and the like."""
    return re.findall(r"[^\W\d_]{5,}", text.lower())
