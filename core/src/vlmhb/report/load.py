"""Reading the runs of a report: their jobs, and every row scored again from the stored answers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vlmhb.discovery.registry import Registry
from vlmhb.errors import RunError
from vlmhb.run.folder import RunFolder
from vlmhb.run.store import ERROR, ROWS_AND_ANSWERS, SCORED, STATUS, RunStore, all_notes, finish_reason_of

if TYPE_CHECKING:
    import polars

    from vlmhb.contract.metric import Metric
    from vlmhb.metrics.scoring import Scorer

TIMES = ("queue_time", "time_to_first_token", "time_per_output_token", "total_time")
TOKENS = ("prompt_tokens", "cached_tokens", "output_tokens")
_COLUMNS = {
    "row": "r.row",
    "data_index": "r.data_index",
    "doc_class": "r.doc_class",
    "question_type": "r.question_type",
    "reference": "r.reference",
    "details": "r.details",
    "answer": f"CASE WHEN {STATUS} = 'ok' THEN a.text END",
    "status": STATUS,
    "image_path": "r.image_path",
    "error_kind": "CASE WHEN r.error IS NOT NULL THEN 'not_asked' WHEN a.ok THEN NULL "
    "WHEN a.key IS NOT NULL THEN coalesce(a.error_kind, 'engine') WHEN j.failure IS NOT NULL THEN 'model' END",
    "finish_reason": "a.finish_reason",
    "answered_at": "a.answered_at",
    **{name: f"a.{name}" for name in (*TOKENS, *TIMES)},
}
_TEXTS = {
    **{name: f"r.{name}" for name in ("row", "question", "reference", "image_path", "images", "answer_bbox")},
    "answer": _COLUMNS["answer"],
    "error": ERROR,
    "details": "r.details",
    "row_notes": "r.notes",
    "answer_notes": "a.notes",
}


class LoadedJob:
    """One job of a run: what was asked, the rows' numbers, and access to their texts.

    Attributes:
        description: what the run stores about it.
        metrics, normalize: what it was scored with, the latest choice of ``vlmhb score`` included.
        absent: metrics of the run that no installed plugin offers any more; left out.
        rows: see :meth:`vlmhb.contract.report.ReportView.rows`.
    """

    def __init__(
        self, home: RunFolder, job: int, description: dict[str, Any], chosen: dict[str, Any], known: dict[str, Metric]
    ) -> None:
        from vlmhb.metrics.scoring import Scorer

        self.job = job
        self.description = description
        wanted = chosen.get("metrics") or description["metrics"]
        self.metrics = tuple(name for name in wanted if name in known)
        self.absent = tuple(name for name in wanted if name not in known)
        self.normalize = tuple(chosen.get("normalize") or description["normalize"])
        self._database = home.database
        self._scorer = Scorer([known[name] for name in self.metrics], self.normalize)
        self.rows = self._read()

    @property
    def scorer(self) -> Scorer:
        """Holds the sums of all rows."""
        return self._scorer

    @property
    def dataset(self) -> str:
        """The dataset's name: the last part of what was written in the config."""
        return Path(self.description["dataset"]).name or self.description["dataset"]

    @cached_property
    def image_digests(self) -> dict[str, str]:
        """The digest of each image file that the run has put to a model, by its path."""
        with closing(sqlite3.connect(self._database)) as db:
            return dict(db.execute("SELECT path, digest FROM images").fetchall())

    def _read(self) -> polars.DataFrame:
        import polars as pl

        from vlmhb.metrics.stored import read_frames

        places = _COLUMNS | {"finish_reason": finish_reason_of(self.description)}
        columns = ", ".join(f"{sql} AS {name}" for name, sql in places.items())
        types: dict[str, Any] = dict.fromkeys(("row", *TOKENS), pl.Int64)
        types |= dict.fromkeys(("answered_at", *TIMES), pl.Float64)
        schema = {name: types.get(name, pl.String) for name in _COLUMNS}
        query = f"SELECT {columns} {ROWS_AND_ANSWERS} WHERE r.job = ?"
        # One chunk at a time: its long texts are gone when the next one is read.
        parts = [self._numbers(frame) for frame in read_frames(self._database, query, schema, (self.job,))]
        if not parts:
            return self._numbers(pl.DataFrame(schema=schema))
        rows = pl.concat(parts)
        return rows.with_columns((pl.col("data_index").rank("dense") - 1).cast(pl.Int64).alias("page"))

    def _numbers(self, frame: polars.DataFrame) -> polars.DataFrame:
        import polars as pl

        scored = self._scorer.add(frame.select(SCORED))
        identity = pl.concat_str(
            pl.lit(self.dataset), pl.col("row").cast(pl.String), "image_path", "reference", separator="\0"
        )
        return (
            frame.with_columns(
                identity.hash(seed=0).alias("sample"),
                pl.Series("wrong", (~scored["right"]).fill_null(True)),
                pl.col("reference").str.len_chars().cast(pl.Int64).alias("reference_length"),
                pl.lit(0, dtype=pl.Int64).alias("page"),
            )
            .drop("reference", "answer", "image_path", "details")
            .hstack(scored.select("flags", *self.metrics))
        )

    def texts(self, rows: Sequence[int]) -> polars.DataFrame:
        """See :meth:`vlmhb.contract.report.ReportView.texts`."""
        import polars as pl

        from vlmhb.data.details import read_details
        from vlmhb.metrics.answers import split_answers

        columns = ", ".join(f"{sql} AS {name}" for name, sql in _TEXTS.items())
        query = (
            f"SELECT {columns} {ROWS_AND_ANSWERS} WHERE r.job = ? "
            "AND r.row IN (SELECT value FROM json_each(?)) ORDER BY r.row"
        )
        with closing(sqlite3.connect(self._database)) as db:
            found = db.execute(query, (self.job, json.dumps([int(row) for row in rows]))).fetchall()
        schema = {name: pl.Int64 if name == "row" else pl.String for name in _TEXTS}
        frame = pl.DataFrame(found, schema=schema, orient="row")
        answer, _ = split_answers(frame["answer"].fill_null(""))
        compared = self._scorer.normaliser.column(answer)
        first = self._scorer.normaliser.column(frame["reference"])
        others = [list(read_details(details).other_references) for details in frame["details"]]
        normal = self._scorer.normaliser.text
        compared_others = [[normal(text) for text in row] for row in others]
        accepted = [(text, *more) for text, more in zip(first, compared_others, strict=True)]
        nearest = [_nearest(texts, given) for texts, given in zip(accepted, compared, strict=True)]
        notes = [all_notes(*stored) for stored in frame["row_notes", "answer_notes"].rows()]
        return frame.with_columns(
            first.alias("compared_reference"),
            pl.Series("nearest_reference", nearest, dtype=pl.String),
            pl.when(frame["answer"].is_not_null()).then(compared).alias("compared_answer"),
            pl.Series("other_references", others, dtype=pl.List(pl.String)),
            pl.Series("compared_others", compared_others, dtype=pl.List(pl.String)),
            pl.Series("notes", notes, dtype=pl.String),
        ).drop("details", "row_notes", "answer_notes")


def _nearest(accepted: Sequence[str], answer: str) -> str:
    """The accepted answer with the fewest edits, as a share of the longer text; of equal ones the first."""
    from rapidfuzz.distance import Levenshtein

    if len(accepted) == 1:
        return accepted[0]
    return min(accepted, key=lambda text: Levenshtein.normalized_distance(text, answer))


class LoadedRun(msgspec.Struct, frozen=True):
    """One run: its folder, its jobs, and its manifest (empty where there is none)."""

    folder: Path
    jobs: tuple[LoadedJob, ...]
    manifest: dict[str, Any]


def load_run(folder: Path, registry: Registry) -> LoadedRun:
    """Read a run folder.

    Raises:
        RunError: it holds no run, or its database cannot be read.
    """
    home = RunFolder(folder)
    if not home.database.is_file():
        raise RunError(f"{folder} holds no run (no {home.database.name}); give the folder that 'vlmhb run' printed")
    known = registry.metrics()
    with RunStore(home.database) as store:
        jobs, chosen = store.jobs(), store.scoring()
    try:
        loaded = tuple(LoadedJob(home, number, job, chosen, known) for number, job in jobs.items())
    except sqlite3.Error as error:
        raise RunError(f"the run's database {home.database} cannot be read: {error}") from error
    return LoadedRun(folder, loaded, _manifest(home.manifest))


def _manifest(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return {}
