"""The report's tables for programs: the figures of the page and of the run's own tables, in CSV and Parquet alike."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from support.docs import name_tables
from support.runs import read_csv
from support.stored import Asked, CoreRegistry, store_run
from vlmhb.contract.report import Fragment, ReportSection, ReportView
from vlmhb.report.write import write_report

EVIL = 'a;b"c"\n<script>&'
ROWS = [
    Asked("1", "Sum?", "12,50", question_type="sum", others=("12.50", EVIL)),
    Asked("1", EVIL, "Иванов"),
    Asked("2", "Name?", "Петров", doc_class="bill"),
    Asked("3", "Name?", "x", error="image none.png: there is no such file"),
]
ANSWERS: dict[str, list[str | None]] = {"good": ["12.5O", "Иванов", "", None], "bad": ["x", EVIL, None, None]}
NAMES = {"leaderboard", "by_doc_question", "by_doc_type", "confusions", "errors_by_length", "samples", "speed"}


def report(*runs: Path, more: tuple[ReportSection, ...] = (), **options: object) -> Path:
    folder = runs[0] / "report"
    write_report(runs, CoreRegistry(more), folder, **options)  # type: ignore[arg-type]
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return store_run(tmp_path / "run", ROWS, ANSWERS, speeds={"good": 0.1}, prompts="terse")


def test_every_table_is_there_in_both_formats_and_linked(run: Path) -> None:
    folder = report(run)
    files = {path.name for path in (folder / "tables").iterdir()}
    assert files == {f"{name}.{kind}" for name in NAMES for kind in ("csv", "parquet")}
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert all(f'href="tables/{file}" download' in page for file in files)
    for name in NAMES:
        table = pl.read_parquet(folder / "tables" / f"{name}.parquet")
        lines = read_csv(folder / "tables" / f"{name}.csv")
        assert list(lines[0]) == table.columns
        assert len(lines) == len(table)
        for column, kind in table.schema.items():
            texts = [line[column] for line in lines]
            if kind == pl.Float64:
                values = [float(text) if text else None for text in texts]
                assert values == table[column].to_list()
            elif kind == pl.String:
                assert texts == table[column].fill_null("").to_list()


def test_the_documentation_names_the_tables() -> None:
    assert set(name_tables()["report-tables"].rows) == {*NAMES, "prompts"}


def test_the_leaderboard_is_the_runs_own_table(run: Path) -> None:
    folder = report(run)
    own = read_csv(run / "metrics" / "general.csv")
    ours = pl.read_parquet(folder / "tables" / "leaderboard.parquet").to_dicts()
    assert [line["label"] for line in ours] == ["good · hf", "bad · hf"]
    assert [(line["model"], line["prompts"], line["config_row"]) for line in ours] == [
        ("good", "terse", 1),
        ("bad", "terse", 2),
    ]
    for line, there in zip(ours, own, strict=True):
        for name in (
            "count",
            "scored",
            "errors",
            "missing",
            "cer_mean",
            "cer_low",
            "cer_corpus",
            "cer_errors_as_wrong",
        ):
            expected = float(there[name]) if there[name] else None
            assert line[name] == (None if expected is None else pytest.approx(expected, rel=1e-5))


def test_the_samples_hold_what_was_answered(run: Path) -> None:
    table = pl.read_parquet(report(run) / "tables" / "samples.parquet")
    assert len(table) == 8
    first, second, empty, failed = table.filter(label="good · hf").to_dicts()
    assert json.loads(first["other_references"]) == ["12.50", EVIL]
    assert (first["nearest_reference"], first["compared_answer"], first["cer"]) == ("12.50", "12.5O", 0.2)
    assert (second["question"], second["wrong"], second["exact_match"]) == (EVIL, False, 1.0)
    assert (empty["answer"], empty["status"], empty["wrong"]) == ("", "ok", True)
    assert (failed["answer"], failed["status"], failed["cer"]) == (None, "error", None)
    assert "no such file" in failed["error"]
    assert failed["error_kind"] == "not_asked"
    assert table.filter(label="bad · hf")["answer"].to_list() == ["x", EVIL, None, None]


def test_the_samples_are_those_of_the_viewer(run: Path) -> None:
    table = pl.read_parquet(report(run, most_samples=2) / "tables" / "samples.parquet")
    assert sorted(set(table["row"])) == [1, 2]
    assert len(table) == 4


def test_errors_are_counted_against_the_nearest_accepted_answer(run: Path) -> None:
    folder = report(run)
    found = pl.read_parquet(folder / "tables" / "confusions.parquet").filter(label="good · hf")
    assert found.select("expected", "got", "times").rows() == [("0", "O", 1)]
    page = (folder / "index.html").read_text(encoding="utf-8")
    analysis = page[page.index('id="analysis"') :].split("</section>")[0]
    assert "<bdi>12.50</bdi>" in analysis
    assert "<bdi>12,50</bdi>" not in analysis.split("<details")[1]


def test_runs_with_different_metrics_stand_below_each_other(run: Path, tmp_path: Path) -> None:
    other = store_run(tmp_path / "other", ROWS, {"m": ANSWERS["good"]}, metrics=("anls",), backend="vllm")
    table = pl.read_parquet(report(run, other) / "tables" / "leaderboard.parquet")
    assert table["run"].to_list() == ["run", "run", "other"]
    assert table["anls_mean"].is_null().to_list() == [True, True, False]
    assert table["cer_mean"].is_null().to_list() == [False, False, True]


def test_speed_is_in_seconds(run: Path) -> None:
    good, bad = pl.read_parquet(report(run) / "tables" / "speed.parquet").to_dicts()
    assert good["total_time_p50"] > good["time_to_first_token_p50"] > 0
    assert bad["total_time_p50"] is None


class Given(ReportSection):
    """A third party's section with a table."""

    name = "given"

    def __init__(self, fragment: Fragment | None, fails: bool = False) -> None:
        self.fragment = fragment
        self.fails = fails

    def title(self, view: ReportView) -> str:
        return "Given"

    def render(self, view: ReportView) -> Fragment | None:
        return self.fragment

    def tables(self, view: ReportView) -> dict[str, pl.DataFrame]:
        if self.fails:
            raise ValueError("no table")
        return {"../given": pl.DataFrame({"a": [1]})}


def test_the_table_of_a_third_party(run: Path) -> None:
    folder = report(run, more=(Given(Fragment(html="x")),))
    assert pl.read_parquet(folder / "tables" / "given.parquet")["a"].to_list() == [1]
    assert not (folder / "given.csv").exists()
    folder = report(run, more=(Given(None),))
    assert not (folder / "tables" / "given.csv").exists()


def test_a_table_that_fails_harms_no_other(run: Path) -> None:
    folder = report(run, more=(Given(Fragment(html="x"), fails=True),))
    assert "ValueError: no table" in (folder / "index.html").read_text(encoding="utf-8")
    assert (folder / "tables" / "leaderboard.csv").is_file()
