"""Tables of groups: counts, the three readings, order, and independence from how rows come in."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from vlmhb.contract.metric import Metric, Pairs
from vlmhb.errors import PluginError
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.metrics.groups import GroupSums
from vlmhb.metrics.scoring import AGGREGATORS, KEYS, Scorer
from vlmhb.stats.interval import mean_interval

METRICS = vlmhb_metrics()
FAST = [metric for metric in METRICS if metric.name in ("cer", "exact_match")]
SCHEMA = {
    "row": pl.Int64,
    **dict.fromkeys(("data_index", "doc_class", "question_type", "reference", "answer", "status"), pl.String),
}
few = st.text("аб ", max_size=4)


def frame(*rows: tuple[str, str, str, str, str | None, str]) -> pl.DataFrame:
    return pl.DataFrame([(n, *row) for n, row in enumerate(rows, 1)], schema=SCHEMA, orient="row")


FRAME = frame(
    ("2", "form", "name", "абвг", "абвг", "ok"),
    ("1", "bill", "sum", "12", None, "error"),
    ("2", "form", "date", "01", "02", "ok"),
    ("1", "bill", "sum", "12", None, "missing"),
    ("3", "form", "name", "аб", "", "ok"),
)


def test_counts_and_the_three_readings() -> None:
    scorer = Scorer(METRICS)
    scorer.add(FRAME)
    general = scorer.table("general").to_dicts()[0]
    assert [general[name] for name in ("count", "scored", "errors", "missing")] == [5, 3, 1, 1]
    assert general["cer_mean"] == pytest.approx((0 + 0.5 + 1) / 3)
    assert general["cer_corpus"] == pytest.approx((0 + 1 + 2) / 8)
    assert general["cer_errors_as_wrong"] == pytest.approx((0 + 0.5 + 1 + 1 + 1) / 5)
    assert general["exact_match_mean"] == pytest.approx(1 / 3)
    assert general["exact_match_errors_as_wrong"] == pytest.approx(1 / 5)
    assert "exact_match_corpus" not in general
    assert "anls_corpus" not in general


def test_intervals_of_the_means_are_those_of_the_pages() -> None:
    rng = np.random.default_rng(2)
    rows = [
        (f"{page}", "form" if page % 3 else "bill", "q", "аб", "аб" if rng.random() < 0.3 + page % 2 / 2 else "в", "ok")
        for page in rng.integers(40, size=150).tolist()
    ]
    rows += [("7", "form", "q", "аб", "", "error"), ("99", "none", "q", "аб", "", "missing")]
    data = frame(*rows)
    scorer = Scorer(FAST)
    scored = pl.concat([scorer.add(data.slice(start, 37)) for start in range(0, len(data), 37)])
    for table, key in (("general", None), ("by_doc_type", "doc_class")):
        for group in scorer.table(table).to_dicts():
            part = scored.filter(
                (pl.col("status") == "ok") & (pl.lit(True) if key is None else pl.col(key) == group[key])
            )
            for metric in FAST:
                values, pages = part[metric.name].to_numpy(), part["data_index"].to_numpy()
                found = mean_interval(values, pages, bounds=metric.bounds) if len(part) else None
                expected = (None, None) if found is None else pytest.approx(tuple(found))
                assert (group[f"{metric.name}_low"], group[f"{metric.name}_high"]) == expected
    assert "cer_low" in scorer.table("by_doc_question").columns
    assert "cer_low" not in scorer.table("by_id").columns  # one page has no interval
    order = scorer.table("general").columns
    assert order[order.index("cer_mean") :][:4] == ["cer_mean", "cer_low", "cer_high", "cer_corpus"]


def test_groups_come_in_the_order_of_their_first_row() -> None:
    scorer = Scorer(FAST)
    scorer.add(FRAME)
    assert scorer.table("by_id")["data_index"].to_list() == ["2", "1", "3"]
    assert scorer.table("by_doc_type")["doc_class"].to_list() == ["form", "bill"]
    by_question = scorer.table("by_doc_question")
    assert by_question.select("doc_class", "question_type").rows() == [
        ("form", "name"),
        ("bill", "sum"),
        ("form", "date"),
    ]
    assert by_question["count"].to_list() == [2, 2, 1]


def test_a_group_without_a_scored_row_has_no_mean() -> None:
    scorer = Scorer(METRICS)
    scorer.add(FRAME)
    bill = scorer.table("by_doc_type").filter(pl.col("doc_class") == "bill").to_dicts()[0]
    for metric in METRICS:
        assert bill[f"{metric.name}_mean"] is None
        assert bill.get(f"{metric.name}_corpus") is None
        assert bill[f"{metric.name}_errors_as_wrong"] == metric.failed_value


def test_a_group_of_empty_references_has_no_corpus_rate() -> None:
    scorer = Scorer(METRICS)
    scorer.add(frame(("1", "form", "name", " ", "абв", "ok")))
    general = scorer.table("general").to_dicts()[0]
    assert general["cer_mean"] == 3.0
    assert general["cer_corpus"] is None


def test_rows_keep_order_and_unscored_ones_are_null() -> None:
    rows = Scorer(METRICS).add(FRAME)
    assert rows.columns == [*KEYS, "scored_answer", "flags", "right", *(metric.name for metric in METRICS)]
    assert rows["row"].to_list() == [1, 2, 3, 4, 5]
    assert rows["scored_answer"].to_list() == ["абвг", None, "02", None, ""]
    assert rows["flags"].to_list() == ["", None, "", None, ""]
    assert rows["right"].to_list() == [True, None, False, None, False]
    assert rows["cer"].to_list() == [0.0, None, 0.5, None, 1.0]
    assert rows["bleu"].is_null().to_list() == [False, True, False, True, False]


def test_nothing_added_and_nothing_scored() -> None:
    scorer = Scorer(METRICS)
    before = {name: scorer.table(name) for name in AGGREGATORS}
    assert before["general"]["count"].to_list() == [0]
    assert before["general"]["cer_mean"].to_list() == [None]
    assert before["general"]["cer_errors_as_wrong"].to_list() == [None]
    assert len(before["by_id"]) == 0
    assert len(scorer.add(FRAME.head(0))) == 0
    rows = scorer.add(FRAME.filter(pl.col("status") != "ok"))
    assert rows["cer"].to_list() == [None, None]
    for name, table in before.items():
        assert scorer.table(name).schema == table.schema


def test_a_missing_text_of_a_scored_row_is_empty() -> None:
    rows = Scorer(FAST).add(frame(("1", "form", "name", "аб", None, "ok")))
    assert rows["cer"].to_list() == [1.0]


rows = st.lists(
    st.tuples(
        st.sampled_from(["1", "01", "2", "NA", ""]),
        st.sampled_from(["form", "null", "bill"]),
        st.sampled_from(["nan", "sum"]),
        few,
        few,
        st.sampled_from(["ok", "ok", "ok", "error", "missing"]),
    ),
    max_size=30,
)


@settings(max_examples=50, deadline=None)
@given(rows, st.integers(1, 7))
def test_chunks_give_what_one_frame_gives(many: list[tuple[str, str, str, str, str, str]], size: int) -> None:
    whole, parts, everything = Scorer(FAST), Scorer(FAST), frame(*many)
    scored = whole.add(everything)
    chunks = [parts.add(everything[start : start + size]) for start in range(0, len(everything), size)]
    if chunks:
        assert_frame_equal(pl.concat(chunks), scored)
    for name in AGGREGATORS:
        assert_frame_equal(parts.table(name), whole.table(name))


@settings(max_examples=100, deadline=None)
@given(rows)
def test_tables_are_the_plain_sums(many: list[tuple[str, str, str, str, str, str]]) -> None:
    scorer = Scorer(FAST)
    scored = scorer.add(frame(*many)).to_dicts()
    for name, keys in AGGREGATORS.items():
        groups: dict[tuple[str, ...], list[dict[str, object]]] = {} if keys else {(): []}
        for row in scored:
            groups.setdefault(tuple(row[key] for key in keys), []).append(row)
        table = scorer.table(name).to_dicts()
        assert [tuple(line[key] for key in keys) for line in table] == list(groups)
        for line, members in zip(table, groups.values(), strict=True):
            values = [row["cer"] for row in members if row["cer"] is not None]
            assert line["count"] == len(members)
            assert line["scored"] == len(values)
            assert line["errors"] == sum(row["status"] == "error" for row in members)
            assert line["missing"] == sum(row["status"] == "missing" for row in members)
            assert line["cer_mean"] == (pytest.approx(math.fsum(values) / len(values)) if values else None)


def test_many_groups_are_merged_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlmhb.metrics.groups._COMPACT_FROM", 10)
    sums = GroupSums(["key"], ["count"], ["value"])
    for start in range(100):
        keys = [str((start + step) % 7) for step in range(5)]
        sums.add(pl.DataFrame({"key": keys, "count": [1] * 5, "value": [0.5] * 5}))
    table = sums.sums()
    assert table["key"].to_list() == ["0", "1", "2", "3", "4", "5", "6"]
    assert table["count"].sum() == 500
    assert table["value"].sum() == 250.0


def test_another_table_is_another_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGGREGATORS, "by_question", ("question_type",))
    monkeypatch.setitem(AGGREGATORS, "by_id_question", ("data_index", "question_type"))
    scorer = Scorer(FAST)
    scorer.add(FRAME)
    assert scorer.table("by_question").select("question_type", "count").rows() == [("name", 2), ("sum", 2), ("date", 1)]
    assert scorer.table("by_id_question")["count"].to_list() == [1, 2, 1, 1]
    assert scorer.table("by_id")["count"].to_list() == [2, 2, 1]


class Broken(Metric):
    name = "broken"
    title = "Broken"

    def __init__(self, found: npt.NDArray[np.float64]) -> None:
        self._found = found

    def score(self, pairs: Pairs) -> Mapping[str, npt.NDArray[np.float64]]:
        return {"value": self._found if len(pairs) else np.zeros(0)}


@pytest.mark.parametrize("found", [np.zeros(2), np.array([0.0, np.nan, 1.0]), np.array([0.0, np.inf, 1.0])])
def test_a_metric_that_breaks_its_contract_is_named(found: npt.NDArray[np.float64]) -> None:
    with pytest.raises(PluginError, match="broken"):
        Scorer([Broken(found)]).add(FRAME)


class Longer(Metric):
    """A metric written the simple way."""

    name = "longer"
    title = "Longer"

    def score(self, pairs: Pairs) -> Mapping[str, npt.NDArray[np.float64]]:
        return {
            "value": np.array([float(len(a) > len(r)) for r, a in zip(pairs.references, pairs.answers, strict=True)])
        }


def test_a_simple_metric_of_somebody_else() -> None:
    scorer = Scorer([*FAST, Longer()], "plain")
    assert scorer.add(frame(("1", "f", "q", "а", "аб ", "ok")))["longer"].to_list() == [1.0]
    assert scorer.table("general")["longer_mean"].to_list() == [1.0]
