"""Reading stored rows in bulk gives exactly what is stored."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vlmhb.metrics.stored import read_frames

SCHEMA = {"row": pl.Int64, "text": pl.String, "number": pl.Float64}
Row = tuple[int, str | None, float | None]


def stored(path: Path, rows: list[Row]) -> Path:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (row INTEGER PRIMARY KEY, text TEXT, number REAL)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    db.close()
    return path


def read(path: Path, chunk: int = 100, where: str = "") -> list[Row]:
    frames = list(read_frames(path, f"SELECT row, text, number FROM t {where}", SCHEMA, chunk=chunk))
    assert all(len(frame) and frame.schema == SCHEMA for frame in frames)
    return [row for frame in frames for row in frame.rows()]


def test_texts_come_through_as_they_are(tmp_path: Path) -> None:
    texts = [
        '"',
        "\\",
        "\\n",
        "a\nb\r\n\t",
        "\x00nul\x00",
        "\x01\x1f",
        "😀ё",
        "\ufeff42",
        "",
        None,
        "null",
        "[1,2]",
        "007",
    ]
    rows: list[Row] = [(number, text, None) for number, text in enumerate(texts, 1)]
    assert read(stored(tmp_path / "t.sqlite", rows)) == rows


@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
def test_gaps_order_and_chunks(tmp_path: Path, chunk: int) -> None:
    rows: list[Row] = [(number, f"т{number}", number / 4) for number in (-3, 1, 2, 5, 100, 101, 250)]
    path = stored(tmp_path / "t.sqlite", rows[::-1])
    assert read(path, chunk) == rows
    assert read(path, chunk, "ORDER BY text") == rows
    assert read(path, chunk, "WHERE row BETWEEN 2 AND 100") == rows[2:5]


def test_no_rows_and_rows_of_nulls(tmp_path: Path) -> None:
    path = stored(tmp_path / "t.sqlite", [(1, None, None)])
    assert read(path) == [(1, None, None)]
    assert read(path, where="WHERE row > 1") == []


def test_parameters_and_joins(tmp_path: Path) -> None:
    path = stored(tmp_path / "t.sqlite", [(1, "a", 1.0), (2, "b", 2.0), (3, "b", 3.0)])
    query = "SELECT l.row AS row, r.text AS text FROM t l LEFT JOIN t r ON r.row = l.row + 1 WHERE l.text = ?"
    frames = list(read_frames(path, query, {"row": pl.Int64, "text": pl.String}, ("b",)))
    assert pl.concat(frames).rows() == [(2, "b"), (3, None)]


def test_a_caller_may_stop_early(tmp_path: Path) -> None:
    path = stored(tmp_path / "t.sqlite", [(number, "a", None) for number in range(10)])
    frames = read_frames(path, "SELECT row, text FROM t", {"row": pl.Int64, "text": pl.String}, chunk=2)
    assert len(next(frames)) == 2
    frames.close()  # type: ignore[attr-defined]
    path.unlink()


def test_a_wrong_query_is_an_error(tmp_path: Path) -> None:
    path = stored(tmp_path / "t.sqlite", [])
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        next(read_frames(path, "SELECT row FROM other", {"row": pl.Int64}))


def test_any_text(tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"])))), st.integers(1, 5))
    def check(texts: list[str | None], chunk: int) -> None:
        rows: list[Row] = [(number, text, None) for number, text in enumerate(texts)]
        assert read(stored(tmp_path_factory.mktemp("any") / "t.sqlite", rows), chunk) == rows

    check()


def test_modules_are_cheap_to_import() -> None:
    code = (
        "import sys, vlmhb.metrics.builtin, vlmhb.metrics.scoring, vlmhb.metrics.stored, vlmhb.metrics.normalise;"
        "print([name for name in ('polars', 'numpy', 'rapidfuzz', 'sacrebleu') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
