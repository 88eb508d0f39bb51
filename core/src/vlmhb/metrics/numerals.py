"""Reading amounts and numbers as people write them in documents."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

_CURRENCIES = {
    "RUB": ("₽", "руб", "рублей", "рубля", "рубль", "р", "rub", "rur"),
    "USD": ("$", "us$", "usd", "долл", "долларов", "доллара", "доллар"),
    "EUR": ("€", "eur", "евро"),
    "GBP": ("£", "gbp"),
    "CNY": ("¥", "cny", "юаней", "юаня", "юань"),
    "KZT": ("₸", "kzt", "тенге"),
    "BYN": ("byn",),
    "UAH": ("₴", "uah", "грн"),
}
_CODE_OF = {word: code for code, words in _CURRENCIES.items() for word in words}
_AMOUNT = re.compile(
    r"""(?P<open>\()?\s*(?P<sign>[-+−–])?\s*(?P<before>[^\d\s()+−–.,-][^\d()+−–-]*?)?\s*(?P<sign2>[-+−–])?\s*
    (?P<number>\d[\d\s.,'’]*|[.,]\d+)\s*(?P<after>[^\d\s()]+(?:\s[^\d\s()]+)?)?\s*(?P<close>\))?""",
    re.VERBOSE,
)
_SPACED = re.compile(r"\d{1,3}(?:[\s'’]\d{3})+")
_MARKED = re.compile(r"\d{1,3}(?:(?P<mark>[.,])\d{3})(?:(?P=mark)\d{3})*")


class Amount(NamedTuple):
    """A number and the code of its currency, empty where none is written."""

    value: Decimal
    currency: str = ""


def read_amount(text: str) -> Amount | None:
    """The amount that a text is, or None when it is no amount.

    The whole text must be one number, with a sign or the brackets of bookkeeping, and with the mark or name of a
    currency before or behind it if there is one. Spaces and apostrophes between groups of three digits do not count.
    Of commas and points the last is the decimal mark if both are there; one that stands several times, or once before
    exactly three digits behind one to three digits (not behind a single 0), parts groups: ``1.234`` is 1234.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    currencies = {_currency(word) for word in (match["before"], match["after"]) if word}
    number = read_number(match["number"])
    if number is None or None in currencies or len(currencies) > 1:
        return None
    negative = match["open"] or "-" in (match["sign"] or match["sign2"] or "+").translate({0x2212: "-", 0x2013: "-"})
    return Amount(-number if negative else number, next(iter(currencies), None) or "")


def read_number(text: str) -> Decimal | None:
    """The number that digits, points, commas, spaces and apostrophes mean by the rules of :func:`read_amount`."""
    text = text.strip()
    decimal = max(text.rfind("."), text.rfind(","))
    whole, fraction = (text, "") if decimal < 0 else (text[:decimal], text[decimal + 1 :])
    if decimal >= 0 and _parts_groups(text, text[decimal]):
        whole, fraction = text, ""
    digits = _ungrouped(whole)
    if digits is None or not re.fullmatch(r"\d*", fraction, re.ASCII) or not digits + fraction:
        return None
    return Decimal(f"{digits or '0'}.{fraction or '0'}")


def _parts_groups(text: str, mark: str) -> bool:
    """Whether the last mark of a number parts groups of three digits."""
    if text.count(mark) > 1:
        return True
    before, _, behind = text.partition(mark)
    other = "," if mark == "." else "."
    plain = other not in before and re.fullmatch(r"\d{1,3}", before) is not None
    return plain and len(behind) == 3 and behind.isdecimal() and before != "0"


def _ungrouped(text: str) -> str | None:
    """The digits of a whole number without what parts its groups; None when the groups are not of three digits."""
    if re.fullmatch(r"\d*", text, re.ASCII):
        return text
    if _SPACED.fullmatch(text) or _MARKED.fullmatch(text):
        return re.sub(r"\D", "", text)
    return None


def _currency(word: str) -> str | None:
    return _CODE_OF.get(word.casefold().strip(" ."))
