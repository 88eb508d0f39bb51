"""Text normalisers: what each does, and that a column is treated exactly as its texts are."""

from __future__ import annotations

import unicodedata

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vlmhb.errors import ConfigError
from vlmhb.metrics.normalise import DEFAULT_NORMALISERS, NORMALISERS, TextNormaliser, parse_normalisers

any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
likely = st.text("ёЁеЕйи\u0306\u0308 \u00a0\u202f\t\n\x1c\x85aAß№1１ﬁ«».,-Ωµ\u212aéе\u0301", max_size=20)
texts = st.one_of(any_text, likely)


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        ("plain", " \u00a0a  b\n", "a  b"),
        ("plain", "и\u0306", "и\u0306"),
        ("nfc", "И\u0306ошкар-Ола", "Йошкар-Ола"),
        ("nfc", "е\u0308лка", "ёлка"),
        ("nfc", "№ ﬁ", "№ ﬁ"),
        ("whitespace", "1\u00a0234\u202f567", "1 234 567"),
        ("whitespace", "a \t\r\n  b\u2003c\x1cd", "a b c d"),
        ("whitespace", "a\u200bb\ufeff", "a\u200bb\ufeff"),
        ("yo", "ёлка Ёж", "елка Еж"),
        ("yo", "е\u0308лка Е\u0308ж", "елка Еж"),
        ("yo", "йод", "йод"),
        ("nfkc_case", "ＡＢ ﬁ №１ Straße", "ab fi no1 strasse"),
        ("case", "ПАСПОРТ Straße", "паспорт strasse"),
        ("punctuation", "ООО «Ромашка», г. Тверь!", "ООО Ромашка г Тверь"),
        ("punctuation", "+7 $5 №3 a-b", "+7 $5 №3 ab"),
        ("punctuation,whitespace", "a - b", "a b"),
        ("nfc,whitespace", " е\u0308 \u00a0 1 ", "ё 1"),
    ],
)
def test_what_each_does(names: str, text: str, expected: str) -> None:
    normaliser = TextNormaliser(names)
    assert normaliser.text(text) == expected
    assert normaliser.column(pl.Series([text])).to_list() == [expected]


CHAINS = [(name,) for name in NORMALISERS] + [
    ("nfc", "whitespace"),
    ("nfc", "whitespace", "yo", "case"),
    ("punctuation", "whitespace"),
    ("nfkc_case", "yo", "punctuation", "whitespace"),
    ("plain", "nfc"),
]


@pytest.mark.parametrize("names", CHAINS, ids=",".join)
def test_a_column_is_treated_as_its_texts(names: tuple[str, ...]) -> None:
    normaliser = TextNormaliser(names)

    @settings(max_examples=150, deadline=None)
    @given(st.lists(texts, max_size=20))
    def check(column: list[str]) -> None:
        assert normaliser.column(pl.Series(column, dtype=pl.String)).to_list() == [normaliser.text(t) for t in column]

    check()


@pytest.mark.parametrize("names", CHAINS, ids=",".join)
def test_every_character_of_the_basic_plane(names: tuple[str, ...]) -> None:
    normaliser = TextNormaliser(names)
    characters = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    column = [f"{context}{char}{context}" for char in characters for context in ("x", "Ё")]
    assert normaliser.column(pl.Series(column)).to_list() == [normaliser.text(text) for text in column]


def test_a_column_that_needs_nothing_is_left_alone_and_the_given_one_is_never_changed() -> None:
    clean, dirty = pl.Series(["Иванов Иван", "ёлка", ""]), pl.Series(["a", " b\u00a0c "])
    assert TextNormaliser().column(clean) is clean
    assert TextNormaliser().column(dirty).to_list() == ["a", "b c"]
    assert dirty.to_list() == ["a", " b\u00a0c "]


@settings(max_examples=200, deadline=None)
@given(texts)
def test_each_is_idempotent(text: str) -> None:
    for name in NORMALISERS.keys() - {"yo"}:  # "Ё" with yet another diaeresis on it takes two rounds
        once = TextNormaliser(name).text(text)
        assert TextNormaliser(name).text(once) == once


@settings(max_examples=200, deadline=None)
@given(texts)
def test_the_default_makes_composed_and_decomposed_texts_equal(text: str) -> None:
    default = TextNormaliser()
    assert default.text(unicodedata.normalize("NFD", text)) == default.text(unicodedata.normalize("NFC", text))


def test_names_are_read_from_text_or_sequence() -> None:
    assert parse_normalisers(None) == DEFAULT_NORMALISERS == ("nfc", "whitespace")
    assert parse_normalisers(" NFC, yo ,") == ("nfc", "yo")
    assert parse_normalisers(["case", "nfc"]) == ("case", "nfc")
    assert parse_normalisers("") == parse_normalisers([]) == ("plain",)


def test_unknown_names_are_all_reported_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        TextNormaliser("nfcc,whitespace,xyz")
    assert [fault.value for fault in caught.value.faults] == ["nfcc", "xyz"]
    assert "'nfcc'" in str(caught.value)
    assert "Did you mean nfc?" in str(caught.value)
    assert "nfkc_case" in str(caught.value)
