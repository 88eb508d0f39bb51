"""Scoring a run and writing what people read: ``answers.csv`` and ``metrics/*.csv``, from the database alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from vlmhb.data.details import read_details
from vlmhb.discovery.registry import Registry
from vlmhb.errors import RunError
from vlmhb.run.folder import RunFolder
from vlmhb.run.store import ERROR, ROWS_AND_ANSWERS, SCORED, STATUS, RunStore, all_notes, finish_reason_of

if TYPE_CHECKING:
    import polars

    from vlmhb.metrics.scoring import Scorer

CHUNK = 50_000
_JOB_COLUMNS = ("config_row", "dataset", "task", "backend", "model_name")
_SQL = {
    **{name: f"r.{name}" for name in ("row", "data_index", "doc_class", "question_type", "reference")},
    "answer": f"CASE WHEN {STATUS} = 'ok' THEN a.text END",
    "status": STATUS,
    **{name: f"r.{name}" for name in ("image_path", "question", "split", "details")},
    "error": ERROR,
    **{name: f"a.{name}" for name in ("finish_reason", "prompt_tokens", "cached_tokens", "output_tokens")},
    **{name: f"a.{name}" for name in ("queue_time", "time_to_first_token", "time_per_output_token", "total_time")},
    "row_notes": "r.notes",
    "answer_notes": "a.notes",
}
"""The columns of a job's rows and where the database has them."""
_INTEGERS = ("row", "prompt_tokens", "cached_tokens", "output_tokens")
_FLOATS = ("queue_time", "time_to_first_token", "time_per_output_token", "total_time")
_ANSWER_COLUMNS = (
    *_JOB_COLUMNS,
    *("row", "data_index", "image_path", "question", "reference", "other_references", "answer", "status", "error"),
    *("scored_answer", "flags", "doc_class", "question_type", "split", "finish_reason"),
    *("prompt_tokens", "cached_tokens", "output_tokens"),
    *("queue_time", "time_to_first_token", "time_per_output_token", "total_time", "notes", "prompts"),
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
    tables: tuple[str, ...] = (),
) -> Summary:
    """Score every row of the run and write the exports.

    Args:
        store: the run's database.
        registry: where metrics are found.
        home: the run's folder, locked by the caller.
        metrics, normalize: used instead of those the jobs were planned with, when given.
        tables: made beside those the jobs were planned with.

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
        job["aggregators"] = list(dict.fromkeys((*job["aggregators"], *tables)))
        job["signatures"] = {
            name: found for name in job["metrics"] if name in known and (found := known[name].signature())
        }
        if absent := [name for name in job["metrics"] if name not in known]:
            raise RunError(f"the metric {absent[0]} is not installed any more; choose others with --metrics")
    scorers = {
        n: Scorer([known[name] for name in job["metrics"]], job["normalize"], job["aggregators"])
        for n, job in jobs.items()
    }
    names = list(dict.fromkeys(name for job in jobs.values() for name in job["metrics"]))
    rows = (line for number in jobs for line in _answer_lines(store, number, jobs[number], scorers[number], names))
    try:
        write_table(home.answers, (*_ANSWER_COLUMNS, *names), rows)
        made = tuple(_job_tables(job, scorers[number]) for number, job in jobs.items())
        _write_metrics(home, made)
        store.remember_scoring(metrics, normalize)
    except OSError as error:
        raise RunError(f"the exports cannot be written to {home.path}: {error.strerror}") from error
    counts = store.counts()
    return Summary(jobs=made, ok=counts["ok"], errors=counts["error"], missing=counts["missing"])


def _answer_lines(
    store: RunStore, number: int, job: dict[str, Any], scorer: Scorer, metrics: list[str]
) -> Iterator[list[str]]:
    """Lines of ``answers.csv`` of one job; feeds the job's scorer on the way."""
    front = {name: job[name] for name in _JOB_COLUMNS} | {"prompts": job.get("prompts", "")}
    for frame in _frames(store, number, job):
        scored = scorer.add(_with_columns(frame, scorer.further).select(*SCORED, *scorer.further))
        extra = [name for name in scored.columns if name not in frame.columns]
        for line in frame.hstack(scored.select(extra)).iter_rows(named=True):
            line.update(front)
            line["other_references"] = _list(read_details(line["details"]).other_references)
            line["notes"] = all_notes(line["row_notes"], line["answer_notes"])
            yield [_cell(line.get(name)) for name in (*_ANSWER_COLUMNS, *metrics)]


def _with_columns(frame: polars.DataFrame, names: tuple[str, ...]) -> polars.DataFrame:
    """The rows with further columns of the dataset, empty where a row has none."""
    import polars as pl

    absent = [name for name in names if name not in frame.columns]
    if not absent:
        return frame
    fields = [read_details(text).fields for text in frame["details"]]
    return frame.with_columns(
        pl.Series(name, [one.get(name, "") for one in fields], dtype=pl.String) for name in absent
    )


def _frames(store: RunStore, number: int, job: dict[str, Any]) -> Iterator[polars.DataFrame]:
    import polars as pl

    from vlmhb.metrics.stored import read_frames

    schema = {name: pl.Int64 if name in _INTEGERS else pl.Float64 if name in _FLOATS else pl.String for name in _SQL}
    places = _SQL | {"finish_reason": finish_reason_of(job)}
    columns = ", ".join(f"{sql} AS {name}" for name, sql in places.items())
    yield from read_frames(store.path, f"SELECT {columns} {ROWS_AND_ANSWERS} WHERE r.job = ?", schema, (number,), CHUNK)


def _list(texts: tuple[str, ...]) -> str:
    return msgspec.json.encode(texts).decode() if texts else ""


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _front(job: dict[str, Any]) -> dict[str, Any]:
    """The first columns of a line of ``metrics/*.csv``."""
    front = {name: job[name] for name in _JOB_COLUMNS}
    return front | {"normalize": ",".join(job["normalize"]), "prompts": job.get("prompts", "")}


def _job_tables(job: dict[str, Any], scorer: Scorer) -> JobTables:
    return JobTables(job=job, tables={name: scorer.table(name).to_dicts() for name in job["aggregators"]})


def _write_metrics(home: RunFolder, jobs: tuple[JobTables, ...]) -> None:
    """One file an aggregator, the jobs below each other, the columns of all of them."""
    from vlmhb.data.tables import write_table
    from vlmhb.metrics.grouping import file_name

    for old in home.metrics.glob("*.csv"):
        old.unlink()
    for aggregator in dict.fromkeys(name for job in jobs for name in job.tables):
        lines = [{**_front(job.job), **row} for job in jobs for row in job.tables.get(aggregator, ())]
        columns = list(dict.fromkeys(name for line in lines for name in line))
        home.metrics.mkdir(parents=True, exist_ok=True)
        cells = ([_cell(line.get(name)) for name in columns] for line in lines)
        write_table(home.metrics / f"{file_name(aggregator)}.csv", columns, cells)
