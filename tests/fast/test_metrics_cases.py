"""Every number that ``tests/cases/cases.json`` gives for a metric or a table, through the scorer."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from vlmhb.contract.metric import Pairs
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.metrics.scoring import Scorer

CASES = Path(__file__).parent.parent / "cases"
EXPECTED = {
    case["id"]: case["expect"] for case in json.loads((CASES / "cases.json").read_text(encoding="utf-8"))["cases"]
}
HERE = ["C02", "C03", "C04", "C05", "C13", "C14", "C15", "C16", "C17", "C18", "C26", "C29"]
METRICS = vlmhb_metrics()
NAMES = {metric.name for metric in METRICS}


def records(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


def frame_of(case: str) -> pl.DataFrame:
    """The case's rows with its answers; a row whose picture is not there has failed."""
    answers = {record["row"]: record["answer"] for record in records(CASES / case / "answers.csv")}
    rows = []
    for number, record in enumerate(records(CASES / case / "dataset/annotation.csv"), 1):
        there = (CASES / case / "dataset" / record["image_path"]).exists()
        rows.append(
            {
                "row": number,
                **{name: record[name] for name in ("data_index", "doc_class", "question_type")},
                "reference": record["answer"],
                "answer": answers[str(number)] if there else None,
                "status": "ok" if there else "error",
            }
        )
    return pl.DataFrame(rows, schema_overrides={"answer": pl.String})


def check_row(found: dict[str, Any], expected: dict[str, Any], where: str) -> int:
    checked = 0
    for name in NAMES & expected.keys():
        assert found[name] == pytest.approx(expected[name], abs=1e-4), f"{where} {name}"
        checked += 1
    return checked


def check_group(found: dict[str, Any], expected: dict[str, Any], where: str) -> int:
    checked = 0
    for name, wanted in expected.items():
        column = name.replace("_over_scored", "_mean")
        if name in ("count", "errors") or column.rpartition("_")[0] in NAMES or column.endswith("_errors_as_wrong"):
            same = found[column] is None if wanted is None else found[column] == pytest.approx(wanted, abs=1e-4)
            assert same, f"{where} {name}: {found[column]} instead of {wanted}"
            checked += 1
    return checked


def check(case: str, normalizers: str | None, option: str) -> int:
    """Compare with everything the case says for this text option; returns how many numbers were compared."""
    expected, scorer = EXPECTED[case], Scorer(METRICS, normalizers)
    rows = scorer.add(frame_of(case)).to_dicts()
    general = scorer.table("general").to_dicts()[0]
    checked = 0
    for wanted in expected.get("rows", []):
        row = rows[wanted["row"] - 1]
        assert row["status"] == wanted["status"]
        checked += check_row(row, {**wanted, **wanted.get("by_option", {}).get(option, {})}, f"{case} row {row['row']}")
    wanted_general = expected.get("general", {})
    checked += check_group(general, {**wanted_general, **wanted_general.get("by_option", {}).get(option, {})}, case)
    for table, key in (("by_id", "data_index"), ("by_doc_type", "doc_class")):
        groups = {group[key]: group for group in scorer.table(table).to_dicts()}
        for name in expected.get(table, []):
            assert name in groups, f"{case} {table}"
            if isinstance(expected[table], dict):
                checked += check_group(groups[name], expected[table][name], f"{case} {table} {name}")
        if table in expected:
            assert list(groups) == list(dict.fromkeys(frame_of(case)[key])), f"{case} {table}: order"
            assert set(groups) == set(expected[table])
    return checked


@pytest.mark.parametrize("case", HERE)
def test_default_options(case: str) -> None:
    assert check(case, None, "default") >= 3


@pytest.mark.parametrize(
    ("case", "option"),
    [("C02", "plain"), ("C02", "whitespace"), ("C16", "plain"), ("C16", "nfc"), ("C16", "yo")],
)
def test_named_options(case: str, option: str) -> None:
    assert check(case, option, option) >= 4


def test_texts_stay_texts() -> None:
    scorer = Scorer(METRICS)
    rows = scorer.add(frame_of("C03"))
    assert rows["scored_answer"].to_list()[:2] == ["NA", "null"]
    assert scorer.table("by_doc_question")["question_type"].unique().to_list() == ["nan"]
    assert scorer.table("by_doc_type")["count"].to_list() == [3, 3]
    numbers = Scorer(METRICS)
    numbers.add(frame_of("C04"))
    assert numbers.table("by_id")["data_index"].to_list() == EXPECTED["C04"]["by_id"]


def test_thinking_is_left_out_and_flagged() -> None:
    rows = Scorer(METRICS).add(frame_of("C29")).to_dicts()
    for row, wanted in zip(rows, EXPECTED["C29"]["rows"], strict=True):
        assert row["scored_answer"] == wanted["scored"]
        assert ("thinking_unclosed" in row["flags"]) == wanted.get("flagged", False)
    assert [row["flags"] for row in rows] == ["", "thinking_removed", "thinking_unclosed", "thinking_removed"]


def test_thinking_would_have_counted_otherwise() -> None:
    frame = frame_of("C29")
    for row, wanted in EXPECTED["C29"]["if_not_removed"].items():
        pair = Pairs([frame["reference"][int(row) - 1]], [frame["answer"][int(row) - 1].strip()])
        found = {metric.name: metric.score(pair)["value"][0] for metric in METRICS}
        assert check_row(found, wanted, f"C29 row {row}") == 2
