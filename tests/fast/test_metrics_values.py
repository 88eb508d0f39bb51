"""Each metric against the library or the formula that defines it."""

from __future__ import annotations

import math

import jiwer
import numpy as np
import pytest
import sacrebleu
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from vlmhb.contract.metric import Metric, Pairs
from vlmhb.metrics import metric_key
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.metrics.wer import words

METRICS = {metric.name: metric for metric in vlmhb_metrics()}
LETTERS = "абвгдеёжиЙйкАБ abcXYZ 0123 .,;«»—№\t\u00a0\n😀"
short = st.text(alphabet=LETTERS, max_size=25)
long = st.builds(
    lambda text, times: text * times, st.text(alphabet=LETTERS, min_size=5, max_size=40), st.integers(5, 60)
)
texts = st.one_of(short, short, long).map(str.strip)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """A reference, and an answer that is it, near it, or another text."""
    reference = draw(texts)
    kind = draw(st.sampled_from(["same", "near", "near", "other"]))
    if kind == "same":
        return reference, reference
    if kind == "other":
        return reference, draw(texts)
    place = draw(st.integers(0, len(reference)))
    return reference, (reference[:place] + draw(short) + reference[place + draw(st.integers(0, 3)) :]).strip()


def value(metric: Metric | str, reference: str, answer: str) -> float:
    metric = METRICS[metric] if isinstance(metric, str) else metric
    return float(metric.score(Pairs([reference], [answer]))["value"][0])


def edit_distance(left: str, right: str) -> int:
    """Wagner and Fischer's table, the slow way."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        corner, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (a != b))
    return row[-1]


@settings(max_examples=300, deadline=None)
@given(pairs())
@example(("ё" * 3000, "е" * 2999))
def test_cer_is_jiwers(pair: tuple[str, str]) -> None:
    reference, answer = pair
    assume(reference)
    assert value("cer", reference, answer) == pytest.approx(jiwer.cer(reference, answer), abs=1e-12)


@settings(max_examples=300, deadline=None)
@given(pairs())
@example((" ".join(f"слово{n}" for n in range(3000)), " ".join(f"слово{n}" for n in range(1, 3001))))
def test_wer_is_jiwers(pair: tuple[str, str]) -> None:
    reference, answer = pair
    assume(reference)
    assert value("wer", reference, answer) == pytest.approx(jiwer.wer(reference, answer), abs=1e-12)


@settings(max_examples=300, deadline=None)
@given(st.text("аbё \t\n\x1c\x85\u00a0\u202f\u3000", max_size=40).map(str.strip))
def test_words_are_counted_as_they_are_compared(text: str) -> None:
    assert METRICS["wer"].score(Pairs([text], [""]))["length"][0] == len(words(text)) == value("wer", "", text)


def test_a_single_line_break_is_part_of_a_word_as_in_jiwer() -> None:
    assert words("a\nb  c \n d\u00a0e") == ["a\nb", "c", "d\u00a0e"]
    assert value("wer", "a\nb c", "a b c") == jiwer.wer("a\nb c", "a b c") == 1.0


@settings(max_examples=300, deadline=None)
@given(pairs())
def test_bleu_is_sacrebleus(pair: tuple[str, str]) -> None:
    reference, answer = pair
    assert value("bleu", reference, answer) == pytest.approx(sacrebleu.sentence_bleu(answer, [reference]).score)


@settings(max_examples=50, deadline=None)
@given(st.lists(pairs(), min_size=1, max_size=12))
def test_corpus_bleu_is_sacrebleus(many: list[tuple[str, str]]) -> None:
    references, answers = (list(column) for column in zip(*many, strict=True))
    parts = METRICS["bleu"].score(Pairs(references, answers))
    found = METRICS["bleu"].corpus({name: column.sum(keepdims=True) for name, column in parts.items()})
    assert found is not None
    assert found[0] == pytest.approx(sacrebleu.corpus_bleu(answers, [references]).score)


@settings(max_examples=300, deadline=None)
@given(pairs())
@example(("", ""))
@example(("абв", ""))
@example(("", "абв"))
@example(("ё" * 3000, "е" * 2999))
def test_chrf_is_sacrebleus(pair: tuple[str, str]) -> None:
    reference, answer = pair
    assert value("chrf", reference, answer) == pytest.approx(sacrebleu.sentence_chrf(answer, [reference]).score)


@settings(max_examples=50, deadline=None)
@given(st.lists(pairs(), min_size=1, max_size=12))
def test_corpus_chrf_is_sacrebleus(many: list[tuple[str, str]]) -> None:
    references, answers = (list(column) for column in zip(*many, strict=True))
    parts = METRICS["chrf"].score(Pairs(references, answers))
    found = METRICS["chrf"].corpus({name: column.sum(keepdims=True) for name, column in parts.items()})
    assert found is not None
    assert found[0] == pytest.approx(sacrebleu.corpus_chrf(answers, [references]).score)


def test_chrf_takes_the_answer_as_hypothesis() -> None:
    reference, answer = "one two three four five six", "one two three four"
    assert value("chrf", reference, answer) < value("chrf", answer, reference)  # recall counts twice


def test_signatures_are_sacrebleus() -> None:
    from sacrebleu.metrics import BLEU, CHRF

    for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
        metric.corpus_score(["a"], [["a"]])
        assert METRICS[name].signature() == str(metric.get_signature())
    assert METRICS["cer"].signature() == ""


def test_bleu_takes_the_answer_as_hypothesis() -> None:
    reference, answer = "one two three four five six", "one two three four"
    assert value("bleu", reference, answer) == pytest.approx(sacrebleu.sentence_bleu(answer, [reference]).score)
    assert value("bleu", reference, answer) < 99  # the brevity penalty; the other way round it would be precision


@settings(max_examples=250, deadline=None)
@given(pairs().filter(lambda pair: len(pair[0]) < 120 and len(pair[1]) < 120))
def test_anls_is_the_formula(pair: tuple[str, str]) -> None:
    left, right = (" ".join(text.lower().split()) for text in pair)
    longest = max(len(left), len(right))
    distance = edit_distance(left, right) / longest if longest else 0.0
    assert value("anls", *pair) == pytest.approx(1 - distance if distance < 0.5 else 0.0)
    assert value("anls_inclusive", *pair) == pytest.approx(1 - distance if distance <= 0.5 else 0.0)


@pytest.mark.parametrize(("name", "at_half"), [("anls", 0.0), ("anls_inclusive", 0.5)])
def test_anls_at_a_distance_of_exactly_one_half(name: str, at_half: float) -> None:
    for reference, answer in (("ab", "a"), ("a", "ab"), ("абвгде", "абвxyz"), ("АБ", "ав")):
        assert value(name, reference, answer) == at_half
    assert value(name, "abcde", "abc") == pytest.approx(0.6)
    assert value(name, "abcde", "ab") == 0.0


@settings(max_examples=200, deadline=None)
@given(pairs())
def test_exact_match_is_equality(pair: tuple[str, str]) -> None:
    assert value("exact_match", *pair) == float(pair[0] == pair[1])


@settings(max_examples=60, deadline=None)
@given(st.lists(pairs(), max_size=30))
def test_a_batch_gives_what_single_pairs_give(many: list[tuple[str, str]]) -> None:
    batch = Pairs([reference for reference, _ in many], [answer for _, answer in many])
    for metric in METRICS.values():
        single = [value(metric, *pair) for pair in many]
        assert metric.score(batch)["value"].tolist() == single, metric.name


def test_many_pairs_go_through_threads_unchanged() -> None:
    references = [f"ООО «Ромашка» № {n}" for n in range(5000)]
    answers = [f"ООО Ромашка № {n if n % 3 else n + 1}" for n in range(5000)]
    batch = Pairs(references, answers)
    for name in ("cer", "wer", "anls"):
        found = METRICS[name].score(batch)["value"]
        for place in (0, 1, 2, 999, 2001, 4999):
            assert found[place] == value(name, references[place], answers[place])


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("", "", {"cer": 0, "wer": 0, "exact_match": 1, "anls": 1, "anls_inclusive": 1, "bleu": 0}),
        ("", "abc d", {"cer": 5, "wer": 2, "exact_match": 0, "anls": 0, "anls_inclusive": 0, "bleu": 0}),
        ("abc", "", {"cer": 1, "wer": 1, "exact_match": 0, "anls": 0, "anls_inclusive": 0, "bleu": 0}),
        ("12", "Итого: 12 рублей", {"cer": 7, "wer": 2, "exact_match": 0, "anls": 0}),
    ],
)
def test_edge_values(reference: str, answer: str, expected: dict[str, float]) -> None:
    for name, wanted in expected.items():
        assert value(name, reference, answer) == wanted, name


def test_corpus_rates_are_edits_over_length_and_absent_without_length() -> None:
    sums = {"edits": np.array([3.0, 4.0]), "length": np.array([12.0, 0.0])}
    for name in ("cer", "wer"):
        rates = METRICS[name].corpus(sums)
        assert rates is not None
        assert rates[0] == 0.25
        assert math.isnan(rates[1])
    without = METRICS.keys() - {"cer", "wer", "bleu", "chrf", "json_f1", "json_precision", "json_recall"}
    assert [METRICS[name].corpus({}) for name in without] == [None] * len(without)


def test_no_pairs_give_empty_columns() -> None:
    for metric in METRICS.values():
        assert all(column.shape == (0,) for column in metric.score(Pairs([], [])).values())


def test_every_metric_describes_itself() -> None:
    worst = {"cer": 1.0, "wer": 1.0, "refusal": 1.0, "repetition_loop": 1.0, "truncation": 1.0}
    assert {name: metric.failed_value for name, metric in METRICS.items()} == dict.fromkeys(METRICS, 0.0) | worst
    assert {name for name, metric in METRICS.items() if not metric.higher_is_better} == set(worst)
    for metric in METRICS.values():
        assert metric.name == metric.name.lower()
        assert metric.title
        assert metric.source
        assert (type(metric).__doc__ or "").strip()
    keys = [metric_key(name) for metric in METRICS.values() for name in (metric.name, *metric.aliases)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("written", ["exact_match", "Exact Match", "EXACT-MATCH", "exactmatch"])
def test_names_are_compared_without_case_and_signs(written: str) -> None:
    assert metric_key(written) == metric_key("exact_match")
    assert metric_key("CER") != metric_key("WER")
