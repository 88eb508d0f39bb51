"""Structured answers: ANLS*, fields, schemas."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import numpy as np
import pytest
from anls_star import anls_score
from hypothesis import given, settings
from hypothesis import strategies as st
from vlmhb.contract.metric import Pairs
from vlmhb.metrics.assignment import best_pairs
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.metrics.normalise import TextNormaliser
from vlmhb.metrics.structured import NOTHING, fields, read_json

METRICS = {metric.name: metric for metric in vlmhb_metrics()}
words = st.text("абвё АБ xyz 012 .,", max_size=12).map(str.strip)
leaves = st.one_of(words, words, st.integers(-99, 99), st.booleans(), st.none())
objects = st.dictionaries(st.sampled_from(["имя", "sum", "date", "items"]), leaves, max_size=4)
lists = st.lists(words.filter(bool), max_size=5)
trees = st.one_of(
    objects,
    lists,
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.one_of(leaves, objects, lists), max_size=3),
)


def value(name: str, reference: str, answer: str, **more: Any) -> float:
    return float(METRICS[name].score(Pairs([reference], [answer], **more))["value"][0])


def text(tree: Any) -> str:
    return json.dumps(tree, ensure_ascii=False)


@st.composite
def tree_pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """A structure, and one that is it, near it or another."""
    right = draw(trees)
    if draw(st.booleans()):
        return right, draw(trees)
    given_ = json.loads(text(right))
    if isinstance(given_, dict) and given_ and draw(st.booleans()):
        given_.pop(draw(st.sampled_from(sorted(given_))))
    elif isinstance(given_, list) and draw(st.booleans()):
        random.Random(draw(st.integers(0, 99))).shuffle(given_)
    if isinstance(given_, dict) and draw(st.booleans()):
        given_[draw(st.sampled_from(["new", "sum", "a"]))] = draw(leaves)
    return right, given_


# --- ANLS*


@settings(max_examples=600, deadline=None)
@given(tree_pairs())
def test_anls_star_is_the_reference_implementation(pair: tuple[Any, Any]) -> None:
    right, answer = pair
    expected = anls_score(right, answer)
    assert value("anls_star_inclusive", text(right), text(answer)) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=250, deadline=None)
@given(words, words)
def test_anls_star_of_plain_texts_is_anls(reference: str, answer: str) -> None:
    for ours, plain in (("anls_star", "anls"), ("anls_star_inclusive", "anls_inclusive")):
        assert value(ours, reference, answer) == pytest.approx(value(plain, reference, answer))
    if reference or answer:
        assert value("anls_star_inclusive", reference, answer) == pytest.approx(anls_score(reference, answer))


def test_anls_star_of_long_texts_takes_no_time() -> None:
    right, answer = {"text": "длинный текст " * 5000}, {"text": "длинный тeкст " * 5000}
    assert value("anls_star", text(right), text(answer)) == pytest.approx(1 - 1 / 14, abs=1e-3)


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ('{"a": "ab"}', '{"a": "a"}', 0.0),
        ('{"a": "x", "b": "y"}', '{"a": "x"}', 0.5),
        ('{"a": "x"}', '{"a": "x", "b": "y"}', 0.5),
        ('{"a": "x", "b": null}', '{"a": "x"}', 1.0),
        ('["x", "y"]', '["y", "x"]', 1.0),
        ('["x", "y"]', '```json\n["y", "x"]\n```', 1.0),
        ('{"a": "x"}', "no JSON", 0.0),
        ('{"a": "x"}', "", 0.0),
        ("Иванов", '{"a": "x"}', 0.0),
        ("{}", "{}", 1.0),
    ],
)
def test_anls_star(reference: str, answer: str, expected: float) -> None:
    assert value("anls_star", reference, answer) == pytest.approx(expected)


def test_at_a_distance_of_one_half_the_two_readings_differ() -> None:
    assert value("anls_star", '{"a": "ab"}', '{"a": "a"}') == 0.0
    assert value("anls_star_inclusive", '{"a": "ab"}', '{"a": "a"}') == 0.5


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 10**6))
def test_the_best_pairing_is_the_best_of_all(rows: int, columns: int, seed: int) -> None:
    draw = random.Random(seed)
    scores = [[draw.choice([0.0, 0.25, draw.random(), 1.0]) for _ in range(columns)] for _ in range(rows)]
    found = best_pairs(scores)
    assert len(found) == min(rows, columns)
    assert len({row for row, _ in found}) == len({column for _, column in found}) == len(found)
    if rows <= columns:
        every = (zip(range(rows), chosen, strict=True) for chosen in itertools.permutations(range(columns), rows))
    else:
        every = (zip(chosen, range(columns), strict=True) for chosen in itertools.permutations(range(rows), columns))
    best = max(sum(scores[row][column] for row, column in pairing) for pairing in every)
    assert sum(scores[row][column] for row, column in found) == pytest.approx(best)


# --- reading


@pytest.mark.parametrize("written", ['{"a": 1}', '```json\n{"a": 1}\n```', '```\n{"a": 1}```', ' {"a":1}\n'])
def test_json_in_a_fence_or_bare(written: str) -> None:
    assert read_json(written) == {"a": 1}
    assert value("json_parses", "", written) == 1


@pytest.mark.parametrize(
    "written",
    ["", "text", "{'a': 1}", '{"a": 1} that is all', '{"a": NaN}', '{"a": 1,}', "[" * 5000 + "]" * 5000, "[" * 102],
)
def test_no_json(written: str) -> None:
    assert read_json(written) is NOTHING
    assert value("json_parses", "", written) == 0
    assert value("json_f1", '{"a": 1}', written) == 0
    assert value("anls_star", '{"a": 1}', written) == 0


def test_fields_have_places_and_nothing_is_no_field() -> None:
    tree = {"seller": {"name": " ООО "}, "items": [{"price": 1.5}, {"price": True}], "none": None, "empty": "", "e": {}}
    assert fields(tree, str.strip) == {"seller.name": "ООО", "items[0].price": "1.5", "items[1].price": "true"}
    assert fields("x", str.strip) == {"": "x"}
    assert fields("", str.strip) == {}


# --- precision, recall, F1


def published(right: dict[str, str], given_: dict[str, str]) -> tuple[float, float, float]:
    """The textbook's definition over sets of pairs."""
    ours, theirs = set(given_.items()), set(right.items())
    if not ours and not theirs:
        return 1.0, 1.0, 1.0
    both = len(ours & theirs)
    precision, recall = both / len(ours) if ours else 0.0, both / len(theirs) if theirs else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if both else 0.0


@settings(max_examples=300, deadline=None)
@given(tree_pairs())
def test_fields_are_counted_as_defined(pair: tuple[Any, Any]) -> None:
    right, answer = pair
    expected = published(fields(right, str.strip), fields(answer, str.strip))
    for name, wanted in zip(("json_precision", "json_recall", "json_f1"), expected, strict=True):
        assert value(name, text(right), text(answer)) == pytest.approx(wanted), name


@settings(max_examples=60, deadline=None)
@given(st.lists(tree_pairs(), min_size=1, max_size=6))
def test_the_corpus_reading_counts_all_fields(many: list[tuple[Any, Any]]) -> None:
    sides = [[fields(side, str.strip) for side in pair] for pair in many]
    numbered = [
        {f"{number} {place}": leaf for number, found in enumerate(side) for place, leaf in found.items()}
        for side in zip(*sides, strict=True)
    ]
    pairs = Pairs(*([text(side) for side in column] for column in zip(*many, strict=True)))
    for name, wanted in zip(("json_precision", "json_recall", "json_f1"), published(*numbered), strict=True):
        found = METRICS[name].corpus({part: np.sum(v, keepdims=True) for part, v in METRICS[name].score(pairs).items()})
        assert found is not None
        assert np.isnan(found[0]) if not numbered[0] and not numbered[1] else found[0] == pytest.approx(wanted)


def test_values_are_compared_under_the_normalisers_and_keys_are_not() -> None:
    normaliser = TextNormaliser("nfc,whitespace,yo,case,punctuation")
    given_ = '{"имя":  "ЕЛКИ", "n": "1\u00a0 2"}'
    assert value("json_f1", '{"имя": "Ёлки!", "n": "1 2"}', given_, normalise=normaliser.text) == 1
    assert value("json_f1", '{"имя": "Ёлки!", "n": "1 2"}', given_) == 0
    assert value("anls_star", '{"имя": "Ёлки"}', '{"имя": "елки"}', normalise=normaliser.text) == 1


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [("Иванов", "Иванов", 1), ("Иванов", "Петров", 0), ("", "", 1), ("", "x", 0), ("12", '{"a": 12}', 0)],
)
def test_a_reference_that_is_no_structure_is_one_field(reference: str, answer: str, expected: float) -> None:
    for name in ("json_f1", "json_precision", "json_recall"):
        assert value(name, reference, answer) == expected


# --- schemas

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"sum": {"type": "string", "pattern": r"^\d+,\d\d$"}, "n": {"type": "integer"}},
        "required": ["sum"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"sum": "1,50"}', 1),
        ('```json\n{"sum": "1,50", "n": 2}\n```', 1),
        ('{"sum": 1.5}', 0),
        ('{"n": 2}', 0),
        ('{"sum": "1,50", "x": 1}', 0),
        ("[]", 0),
        ("no JSON", 0),
    ],
)
def test_an_answer_is_checked_against_its_schema(answer: str, expected: float) -> None:
    assert value("json_valid", "", answer, json_schemas=[SCHEMA]) == expected


def test_without_a_schema_any_json_is_valid() -> None:
    pairs = Pairs(["", "", ""], ["{}", "{", "3"], json_schemas=["", "", SCHEMA])
    assert METRICS["json_valid"].score(pairs)["value"].tolist() == [1, 0, 0]
