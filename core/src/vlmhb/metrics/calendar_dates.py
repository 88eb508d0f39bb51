"""Reading dates as people write them in documents: in figures, or with the month's name in Russian or English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

_MONTHS = """
january february march april may june july august september october november december
январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
"""
_FIGURES = re.compile(r"(\d{1,4})\s?([./-]|\s)\s?(\d{1,2})\s?\2\s?(\d{1,4})", re.ASCII)
_YEAR_WORD = re.compile(r"\s*\b(г|год|года)\b\.?$")
_ORDINAL = re.compile(r"(?<=\d)(st|nd|rd|th|-?го|-?е)\b")
_NO_PART = re.compile(r"[\s.,/«»\"“”„'-]+|\bof\b|\bthe\b")
_CENTURY_FROM = 69


def read_date(text: str, *, day_first: bool = True) -> date | None:
    """The day that a text names, or None when it is no date.

    The whole text must be one date: figures with points, slashes, hyphens or spaces between them, the year first
    (``2024-03-05``) or last, or a month's name in Russian or English, whole or its first three letters at least
    (``5 марта 2024 г.``, ``Mar 5, 2024``). Years of two figures are 1969 to 2068, as in POSIX.

    Args:
        text: what may be a date.
        day_first: whether ``05.03.2024`` is in March (else in May). Where only the other order is a date, as in
            ``03/25/2024``, that one is taken.
    """
    text = _YEAR_WORD.sub("", text.strip().casefold()).strip()
    match = _FIGURES.fullmatch(text)
    for year, month, day in _figures(match, day_first) if match else _named(text):
        try:
            return date(year, month, day)
        except ValueError:
            continue
    return None


def _figures(match: re.Match[str], day_first: bool) -> Iterator[tuple[int, int, int]]:
    first, _, second, third = match.groups()
    if len(first) > 2:
        if len(first) == 4 and len(third) <= 2:
            yield int(first), int(second), int(third)
        return
    year = _year(third)
    if year is None:
        return
    pair = (int(second), int(first)) if day_first else (int(first), int(second))
    yield year, *pair
    yield year, *pair[::-1]


def _named(text: str) -> Iterator[tuple[int, int, int]]:
    parts = [part for part in _NO_PART.split(_ORDINAL.sub("", text)) if part]
    if len(parts) != 3:
        return
    places = [at for at, part in enumerate(parts) if not part.isdecimal()]
    month = _month(parts.pop(places[0])) if len(places) == 1 and places[0] < 2 else None
    if month is None:
        return
    year, day = parts if len(parts[0]) == 4 else parts[::-1]
    full = _year(year)
    if full is not None and len(day) <= 2:
        yield full, month, int(day)


def _month(name: str) -> int | None:
    for names in _MONTHS.strip().splitlines():
        for number, whole in enumerate(names.split(), 1):
            if len(name) >= 3 and whole.startswith(name):
                return number
    return None


def _year(figures: str) -> int | None:
    if len(figures) == 4:
        return int(figures)
    if len(figures) != 2:
        return None
    return int(figures) + (1900 if int(figures) >= _CENTURY_FROM else 2000)
