"""List cells are parsed, never evaluated."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vlmhb.data.lists import parse_list


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("['CER', 'WER']", ("CER", "WER")),
        ('["CER","WER"]', ("CER", "WER")),
        ("[CER, WER]", ("CER", "WER")),
        ("[CER; WER]", ("CER", "WER")),
        ("CER,WER", ("CER", "WER")),
        ("CER; WER", ("CER", "WER")),
        ("  CER  ", ("CER",)),
        ("'CER', WER", ("CER", "WER")),
        ("['CER',]", ("CER",)),
        ("['one, two', three]", ("one, two", "three")),
        ("['a]', \"b'c\"]", ("a]", "b'c")),
        (r"['it\'s', '\\n', '\n']", ("it's", r"\n", "\n")),
        ("['']", ("",)),
        ("два слова, ещё", ("два слова", "ещё")),
        ("card d'identité", ("card d'identité",)),
        ("", ()),
        ("  ", ()),
        ("[]", ()),
        ("[ ]", ()),
    ],
)
def test_every_way_to_write_a_list(text: str, items: tuple[str, ...]) -> None:
    assert parse_list(text) == items


@pytest.mark.parametrize(
    "text",
    ["['CER', 'WER'", "[", "['CER'", "['CER, 'WER']", "'CER", '"CER', "CER]", "['CER' 'WER']", "a,,b", ",a", "a]b, c"],
)
def test_what_is_no_list_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_list(text)
    assert text.strip("[]'\"")[:2] in str(caught.value)


def test_an_unclosed_list_is_called_so() -> None:
    with pytest.raises(ValueError, match=r"not closed: \['CER', 'WER'$"):
        parse_list("['CER', 'WER'")


@given(st.lists(st.text(max_size=10), min_size=1, max_size=5))
def test_python_and_json_lists_of_any_printable_texts(items: list[str]) -> None:
    plain = [item for item in items if item.isprintable()]
    assert parse_list(repr(plain)) == tuple(plain)
    assert parse_list(json.dumps(plain, ensure_ascii=False)) == tuple(plain)


@given(st.text(alphabet="[]'\",;\\ ab\n", max_size=30))
def test_any_text_is_a_list_or_a_value_error(text: str) -> None:
    try:
        items = parse_list(text)
    except ValueError:
        return
    assert all(isinstance(item, str) for item in items)


def test_nothing_is_evaluated() -> None:
    assert parse_list("[1+1, __import__]") == ("1+1", "__import__")
