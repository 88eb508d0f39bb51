"""Tables by any columns, nested: from the config and from ``vlmhb score --by``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.configs import Bench
from support.runs import read_csv
from vlmhb.cli.app import app
from vlmhb.metrics.grouping import columns_of, file_name, table_by

HEADER = "data_index;image_path;question;answer;doc_class;question_type;split;Currency;shop name"
ROWS = [
    ("1", "sum", "test", "RUB", "A b"),
    ("1", "date", "test", "RUB", "A b"),
    ("2", "sum", "dev", "EUR", "C"),
    ("3", "sum", "test", "EUR", "C"),
]
RIGHT = (True, False, True, False)


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    """Where ``score`` is called: a dataset with columns of its own, and answers of which two are right."""
    lines = [f"{page};;?;x;card;{kind};{split};{money};{shop}" for page, kind, split, money, shop in ROWS]
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards" / "annotation.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    given = [f"{row};{'x' if right else 'y'}" for row, right in enumerate(RIGHT, 1)]
    (tmp_path / "given.csv").write_text("\n".join(["row;answer", *given]) + "\n")
    return tmp_path


def score(folder: Path, *arguments: str, code: int = 0) -> Result:
    call = ["score", "-d", str(folder / "cards"), "-a", str(folder / "given.csv"), "--out", str(folder / "out")]
    done = CliRunner().invoke(app, [*call, "--metrics", "exact_match", *arguments])
    assert done.exit_code == code, done.output
    return done


def means(folder: Path, table: str, *columns: str) -> dict[tuple[str, ...], tuple[int, float]]:
    lines = read_csv(folder / "out" / "metrics" / f"{table}.csv")
    return {
        tuple(line[name] for name in columns): (int(line["count"]), float(line["exact_match_mean"])) for line in lines
    }


def test_any_column_and_several_nested(scored: Path) -> None:
    score(scored, "--by", "split", "--by", "Currency, question_type", "--by", "data_index+split")
    assert means(scored, "by_split", "split") == {("test",): (3, pytest.approx(1 / 3)), ("dev",): (1, 1.0)}
    assert means(scored, "by_currency_question_type", "currency", "question_type") == {
        ("RUB", "sum"): (1, 1.0),
        ("RUB", "date"): (1, 0.0),
        ("EUR", "sum"): (2, 0.5),
    }
    assert means(scored, "by_data_index_split", "data_index", "split")["1", "test"] == (2, 0.5)
    assert means(scored, "general") == {(): (4, 0.5)}
    assert means(scored, "by_doc_type", "doc_class") == {("card",): (4, 0.5)}


def test_their_means_have_intervals_over_documents(scored: Path) -> None:
    score(scored, "--by", "currency")
    rub, eur = read_csv(scored / "out" / "metrics" / "by_currency.csv")
    assert (rub["exact_match_low"], rub["exact_match_high"]) == ("", "")  # one document says nothing
    assert float(eur["exact_match_low"]) == 0 < 1 == float(eur["exact_match_high"])


def test_a_stored_run_is_cut_anew(scored: Path) -> None:
    score(scored)
    assert not (scored / "out" / "metrics" / "by_shop_name.csv").exists()
    done = CliRunner().invoke(app, ["score", str(scored / "out"), "--by", "shop name"])
    assert done.exit_code == 0, done.output
    assert means(scored, "by_shop_name", "shop name") == {("A b",): (2, 0.5), ("C",): (2, 0.5)}


def test_a_column_that_no_row_has_is_refused(scored: Path) -> None:
    done = score(scored, "--by", "split,curency", code=2)
    assert "the rows have no column 'curency'. Did you mean currency?" in done.output


@pytest.mark.parametrize(
    ("cell", "tables"),
    [
        ("by:split", ("by:split",)),
        ("['general', 'By:Doc_Class + unit', 'by:doc_class+unit']", ("general", "by:doc_class+unit")),
        ("by_id,by:question_type", ("by_id", "by:question_type")),
    ],
)
def test_in_a_config(tmp_path: Path, cell: str, tables: tuple[str, ...]) -> None:
    bench = Bench(tmp_path)
    bench.dataset("d", "1;images/a.png;?;x;card;kg", header="data_index;image_path;question;answer;doc_class;Unit")
    (job,) = bench.plan(bench.row(dataset="d", metrics_aggregators=cell)).jobs
    assert job.aggregators == tables


@pytest.mark.parametrize(
    ("cell", "said"),
    [("by:splitt", ["no column 'splitt'", "split"]), ("by:", ["no aggregator 'by:'"]), ("by_split", ["'by_split'"])],
)
def test_what_a_config_cannot_group_by(tmp_path: Path, cell: str, said: list[str]) -> None:
    bench = Bench(tmp_path)
    fault = bench.fault(bench.row(metrics_aggregators=cell))
    assert (fault.row, fault.column) == (1, "metrics_aggregators")
    assert all(part in str(fault) for part in said)


def test_names() -> None:
    assert table_by("Split, doc_class + split") == "by:split+doc_class"
    assert columns_of("by:a+b") == ("a", "b")
    assert columns_of("by_doc_question") == ("doc_class", "question_type")
    assert (file_name("by:a/b+..c"), file_name("by_id")) == ("by_a_b_..c", "by_id")
