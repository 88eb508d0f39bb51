"""Text normalisers: what is made equal in references and answers before they are compared.

The scored texts of a run went through the named normalisers in the order given, then lost whitespace at both ends.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from vlmhb.config.names import suggestion
from vlmhb.errors import ConfigError, Fault

if TYPE_CHECKING:
    import polars


def _plain(text: str) -> str:
    """Nothing but stripping at both ends, which is always done."""
    return text


def _nfc(text: str) -> str:
    """Unicode NFC: composed and decomposed letters become the same."""
    return unicodedata.normalize("NFC", text)


def _whitespace(text: str) -> str:
    """Every run of whitespace (``str.isspace``, so no-break spaces and line breaks too) becomes one space."""
    return " ".join(text.split())


def _yo(text: str) -> str:
    """NFC, then ``ё`` becomes ``е`` and ``Ё`` becomes ``Е``."""
    return unicodedata.normalize("NFC", text).replace("ё", "е").replace("Ё", "Е")


def _nfkc_case(text: str) -> str:
    """Unicode NFKC and case folding, then NFKC again: ``№ １`` becomes ``no 1``."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _case(text: str) -> str:
    """Unicode case folding: upper and lower case become the same."""
    return text.casefold()


def _punctuation(text: str) -> str:
    """Every character of Unicode's punctuation categories is dropped. Give ``whitespace`` after it, not before."""
    return "".join(char for char in text if not unicodedata.category(char).startswith("P"))


NORMALISERS: dict[str, Callable[[str], str]] = {
    "plain": _plain,
    "nfc": _nfc,
    "whitespace": _whitespace,
    "yo": _yo,
    "nfkc_case": _nfkc_case,
    "case": _case,
    "punctuation": _punctuation,
}
"""The normalisers by name; the first line of each docstring says what it does."""

DEFAULT_NORMALISERS = ("nfc", "whitespace")

# Letters, digits and signs of which no two compose or fold together, so that each can be judged by itself.
_INDEPENDENT = ((0x00, 0x2FF), (0x391, 0x482), (0x48A, 0x52F), (0x2010, 0x205E), (0x20A0, 0x20BF), (0x2100, 0x22FF))
_SPACE = r"[\s\x1c-\x1f]"  # what str.isspace accepts, for polars' regular expressions


def parse_normalisers(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Checked names of normalisers.

    Args:
        value: ``"nfc,whitespace"``, a sequence of names, or None for the default, NFC and one space.

    Raises:
        ConfigError: every unknown name, with the nearest known one.
    """
    if value is None:
        return DEFAULT_NORMALISERS
    parts = value.split(",") if isinstance(value, str) else value
    names = tuple(name for part in parts if (name := part.strip().lower()))
    faults = [
        Fault(message=f"there is no text normaliser named {name!r}.", value=name, hint=suggestion(name, NORMALISERS))
        for name in names
        if name not in NORMALISERS
    ]
    if faults:
        raise ConfigError(faults)
    return names or ("plain",)


class TextNormaliser:
    """A chain of normalisers, followed by stripping at both ends.

    Args:
        names: as for :func:`parse_normalisers`.

    Raises:
        ConfigError: an unknown name.
    """

    def __init__(self, names: str | Sequence[str] | None = None) -> None:
        self.names = parse_normalisers(names)
        self._steps = [NORMALISERS[name] for name in self.names]

    def text(self, text: str) -> str:
        """One text, normalised."""
        for step in self._steps:
            text = step(text)
        return text.strip()

    def column(self, texts: polars.Series) -> polars.Series:
        """A column of texts without nulls, normalised; equal to :meth:`text` of each.

        Only texts that a first look cannot rule out are taken through Python.
        """
        import polars as pl

        places = texts.str.contains(self._may_change).arg_true()
        if places.is_empty():
            return texts
        changed = pl.Series([self.text(text) for text in texts.gather(places).to_list()], dtype=pl.String)
        return texts.clone().scatter(places, changed)

    @cached_property
    def _may_change(self) -> str:
        """A regular expression found in every text that this chain changes, and in few others."""
        edges = f"^{_SPACE}|{_SPACE}$"
        if set(self.names) == {"plain"}:
            return edges
        unchanged = [code for code in _independent() if self.text(f"x{chr(code)}x") == f"x{chr(code)}x"]
        spans = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in _spans(unchanged))
        return f"[^{spans}]|  |{edges}"


def _independent() -> Iterator[int]:
    for first, last in _INDEPENDENT:
        yield from range(first, last + 1)


def _spans(codes: Sequence[int]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for code in codes:
        if spans and spans[-1][1] == code - 1:
            spans[-1] = (spans[-1][0], code)
        else:
            spans.append((code, code))
    return spans
