"""Scoring a run and writing what people read: ``answers.csv`` and ``metrics/*.csv``, from the database alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from vlmhb.discovery.registry import Registry
from vlmhb.errors import RunError
from vlmhb.run.folder import RunFolder
from vlmhb.run.store import ERROR, STATUS, RunStore

if TYPE_CHECKING:
    import polars

    from vlmhb.metrics.scoring import Scorer

CHUNK = 50_000
_JOB_COLUMNS = ("config_row", "dataset", "task", "backend", "model_name")
_SCORED = ("row", "data_index", "doc_class", "question_type", "reference", "answer", "status")
_MORE = (
    ("image_path", "r.image_path"),
    ("question", "r.question"),
    ("split", "r.split"),
    ("error", ERROR),
    ("finish_reason", "a.finish_reason"),
    ("prompt_tokens", "a.prompt_tokens"),
    ("cached_tokens", "a.cached_tokens"),
    ("output_tokens", "a.output_tokens"),
    ("queue_time", "a.queue_time"),
    ("time_to_first_token", "a.time_to_first_token"),
    ("time_per_output_token", "a.time_per_output_token"),
    ("total_time", "a.total_time"),
    ("row_notes", "r.notes"),
    ("answer_notes", "a.notes"),
)
_QUERY = (
    "r.row, r.data_index, r.doc_class, r.question_type, r.reference, "
    f"CASE WHEN {STATUS} = 'ok' THEN a.text END, {STATUS}, " + ", ".join(sql for _, sql in _MORE)
)
_ANSWER_COLUMNS = (
    *_JOB_COLUMNS,
    *("row", "data_index", "image_path", "question", "reference", "answer", "status", "error"),
    *("scored_answer", "flags", "doc_class", "question_type", "split", "finish_reason"),
    *("prompt_tokens", "cached_tokens", "output_tokens"),
    *("queue_time", "time_to_first_token", "time_per_output_token", "total_time", "notes"),
)


class JobTables(msgspec.Struct, frozen=True, kw_only=True):
    """One job's description and its tables by aggregator, as lists of rows by column name."""

    job: dict[str, Any]
    tables: dict[str, list[dict[str, Any]]]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What was exported: tables of every job, and the run's rows by status."""

    jobs: tuple[JobTables, ...]
    ok: int
    errors: int
    missing: int


def export(
    store: RunStore,
    registry: Registry,
    home: RunFolder,
    *,
    metrics: tuple[str, ...] = (),
    normalize: tuple[str, ...] = (),
) -> Summary:
    """Score every row of the run and write the exports.

    Args:
        store: the run's database.
        registry: where metrics are found.
        home: the run's folder, locked by the caller.
        metrics, normalize: used instead of those the jobs were planned with, when given.

    Raises:
        RunError: a file cannot be written, or a metric of the run is no longer installed.
    """
    from vlmhb.data.tables import write_table
    from vlmhb.metrics.scoring import Scorer

    known = registry.metrics()
    jobs = store.jobs()
    for job in jobs.values():
        job["metrics"] = list(metrics or job["metrics"])
        job["normalize"] = list(normalize or job["normalize"])
        if absent := [name for name in job["metrics"] if name not in known]:
            raise RunError(f"the metric {absent[0]} is not installed any more; choose others with --metrics")
    scorers = {n: Scorer([known[name] for name in job["metrics"]], job["normalize"]) for n, job in jobs.items()}
    names = list(dict.fromkeys(name for job in jobs.values() for name in job["metrics"]))
    rows = (line for number in jobs for line in _answer_lines(store, number, jobs[number], scorers[number], names))
    try:
        write_table(home.answers, (*_ANSWER_COLUMNS, *names), rows)
        tables = tuple(_job_tables(job, scorers[number]) for number, job in jobs.items())
        _write_metrics(home, tables)
    except OSError as error:
        raise RunError(f"the exports cannot be written to {home.path}: {error.strerror}") from error
    counts = store.counts()
    return Summary(jobs=tables, ok=counts["ok"], errors=counts["error"], missing=counts["missing"])


def _answer_lines(
    store: RunStore, number: int, job: dict[str, Any], scorer: Scorer, metrics: list[str]
) -> Iterator[list[str]]:
    """Lines of ``answers.csv`` of one job; feeds the job's scorer on the way."""
    front = {name: job[name] for name in _JOB_COLUMNS}
    for frame in _frames(store.read(_QUERY, number)):
        scored = scorer.add(frame.select(_SCORED))
        extra = [name for name in scored.columns if name not in frame.columns]
        for line in frame.hstack(scored.select(extra)).iter_rows(named=True):
            line.update(front)
            line["notes"] = " ".join(_notes(line["row_notes"]) + _notes(line["answer_notes"]))
            yield [_cell(line.get(name)) for name in (*_ANSWER_COLUMNS, *metrics)]


def _frames(cursor: sqlite3.Cursor) -> Iterator[polars.DataFrame]:
    import polars as pl

    numbers = {"row": pl.Int64, "prompt_tokens": pl.Int64, "cached_tokens": pl.Int64, "output_tokens": pl.Int64}
    times = dict.fromkeys(("queue_time", "time_to_first_token", "time_per_output_token", "total_time"), pl.Float64)
    names = [*_SCORED, *(name for name, _ in _MORE)]
    schema = {name: numbers.get(name) or times.get(name) or pl.String for name in names}
    while chunk := cursor.fetchmany(CHUNK):
        yield pl.DataFrame(chunk, schema=schema, orient="row")


def _notes(text: str | None) -> list[str]:
    return msgspec.json.decode(text, type=list[str]) if text else []


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _job_tables(job: dict[str, Any], scorer: Scorer) -> JobTables:
    return JobTables(job=job, tables={name: scorer.table(name).to_dicts() for name in job["aggregators"]})


def _write_metrics(home: RunFolder, jobs: tuple[JobTables, ...]) -> None:
    """One file an aggregator, the jobs below each other, the columns of all of them."""
    from vlmhb.data.tables import write_table

    for old in home.metrics.glob("*.csv"):
        old.unlink()
    for aggregator in dict.fromkeys(name for job in jobs for name in job.tables):
        lines = [
            {**{name: job.job[name] for name in _JOB_COLUMNS}, "normalize": ",".join(job.job["normalize"]), **row}
            for job in jobs
            for row in job.tables.get(aggregator, ())
        ]
        columns = list(dict.fromkeys(name for line in lines for name in line))
        home.metrics.mkdir(parents=True, exist_ok=True)
        cells = ([_cell(line.get(name)) for name in columns] for line in lines)
        write_table(home.metrics / f"{aggregator}.csv", columns, cells)
