"""Characters that look right and are not: what makes a right answer count as wrong."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# Letters of the two alphabets that look alike, each with its twin.
_TWINS = dict(zip("AaBCcEeHKMOoPpTXxyk", "АаВСсЕеНКМОоРрТХхук", strict=True))
_LATIN_TWINS, _CYRILLIC_TWINS = frozenset(_TWINS), frozenset(_TWINS.values())
_MIXED = re.compile(r"\w*(?:[A-Za-z]\w*?[А-Яа-яЁё]|[А-Яа-яЁё]\w*?[A-Za-z])\w*")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufffd\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def look_alikes(text: str) -> Iterator[tuple[str, str]]:
    """Words in which letters of one alphabet stand for those of the other, and those letters.

    Such are the words with Latin and Cyrillic letters where all letters of one of the alphabets have a twin in the
    other. ``iPhone-чехол`` is no such word, and neither is ``Zвук``.
    """
    if text.isascii():
        return
    for word in _MIXED.findall(text):
        latin = [letter for letter in word if "A" <= letter <= "Z" or "a" <= letter <= "z"]
        cyrillic = [letter for letter in word if "А" <= letter <= "я" or letter in "Ёё"]
        wrong = min((latin, cyrillic), key=len)
        other = cyrillic if wrong is latin else latin
        for letters in (wrong, other):
            if _LATIN_TWINS.issuperset(letters) or _CYRILLIC_TWINS.issuperset(letters):
                yield word, "".join(dict.fromkeys(letters))
                break


def decomposed(text: str) -> list[str]:
    """Letters that are written as a letter and a mark, where one character exists: й as и and a breve."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return []
    whole = unicodedata.normalize("NFC", text)
    return sorted({letter for letter in whole if letter not in text}) or ["(marks in another order)"]


def unseen(text: str) -> list[str]:
    """The names of characters that nobody sees: zero-width, direction and control characters, and U+FFFD."""
    return [f"U+{ord(char):04X}" for char in sorted(set(_UNSEEN.findall(text)))]
