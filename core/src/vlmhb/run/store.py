"""The run's database: what is asked, and every answer from the moment it exists.

``answers`` is keyed by content (:mod:`vlmhb.run.keys`) and only grows; ``jobs`` and ``rows`` describe the latest
plan and are replaced as a whole by the next one. Write-ahead logging keeps the file consistent when the process is
killed at any moment; each answer is its own transaction.
"""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from vlmhb.contract.dataset import Sample
from vlmhb.contract.result import GenerationResult
from vlmhb.data.details import details_of, read_details
from vlmhb.errors import RunError

SCHEMA_VERSION = "2"
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE images (path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, digest TEXT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE jobs (job INTEGER PRIMARY KEY, description TEXT NOT NULL, failure TEXT);
CREATE TABLE rows (
    job INTEGER NOT NULL, row INTEGER NOT NULL, key BLOB, data_index TEXT NOT NULL, image_path TEXT NOT NULL,
    images TEXT NOT NULL, question TEXT NOT NULL, reference TEXT NOT NULL, doc_class TEXT NOT NULL,
    question_type TEXT NOT NULL, split TEXT NOT NULL, answer_bbox TEXT NOT NULL, error TEXT, notes TEXT NOT NULL,
    details TEXT NOT NULL, PRIMARY KEY (job, row)) WITHOUT ROWID;
CREATE TABLE answers (
    key BLOB PRIMARY KEY, ok INTEGER NOT NULL, text TEXT NOT NULL, finish_reason TEXT NOT NULL, output_tokens INTEGER,
    prompt_tokens INTEGER, cached_tokens INTEGER, queue_time REAL, time_to_first_token REAL,
    time_per_output_token REAL, total_time REAL, error_kind TEXT, error TEXT, notes TEXT NOT NULL,
    token_ids TEXT NOT NULL, answered_at REAL NOT NULL) WITHOUT ROWID;
"""
_INDEX = "CREATE INDEX rows_by_key ON rows (key, images, error)"
"""What is asked in the order of ``answers``, so that both are read from one end to the other, and without the texts."""
_REMEMBERED = 4096
_INSERT_ANSWER = "INSERT OR REPLACE INTO answers VALUES (" + ",".join("?" * 16) + ")"
_STORED_ROWS = (
    "SELECT job, row, key, data_index, image_path, images, question, reference, doc_class, question_type, split, "
    "answer_bbox, ifnull(error, ''), notes, details FROM rows ORDER BY job, row"
)
_INSERT_ROW = "INSERT INTO rows VALUES (?,?,?,?,?,?,?,?,?,?,?,?,nullif(?,''),?,?)"


_Values = tuple[Any, ...]
"""Values of one row of a table."""


class PlannedRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of one job as planned.

    Attributes:
        job: the job's number.
        sample: the row of the dataset.
        key: what its answer is stored under; None where it cannot be asked.
        images: the files of its images.
        question: what is asked, the row's own question or that of a prompt collection.
        error: why it cannot be asked at all.
        notes: what the user should know about it.
    """

    job: int
    sample: Sample
    key: bytes | None
    images: tuple[str, ...] = ()
    question: str
    error: str | None = None
    notes: tuple[str, ...] = ()


class PendingQuestion(msgspec.Struct, frozen=True):
    """A question that has no answer yet; ``json_schema`` is its row's, as text, enforced by the engine or not."""

    key: bytes
    job: int
    images: tuple[str, ...]
    question: str
    json_schema: str = ""


class RunStore:
    """An open run database. One process writes; the reading connections may be used by engine threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = not path.exists()
            self._db = self._connect()
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            if new or not self._tables():
                with self._transaction():
                    for statement in _SCHEMA.split(";"):
                        self._db.execute(statement)
                    self._db.execute(_INDEX)
                    self._db.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
        except (sqlite3.Error, OSError) as error:
            raise RunError(f"the run's database {path} cannot be opened: {error}") from error
        found = self._db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        if not found or found[0] != SCHEMA_VERSION:
            raise RunError(f"{path} was written by another version of vlmhb; use another folder (--out)")

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)

    def _tables(self) -> int:
        count: int = self._db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0]
        return count

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # a full disk has rolled back by itself
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # --- planning

    def replace_plan(self, jobs: dict[int, dict[str, Any]], rows: Iterable[PlannedRow]) -> None:
        """Store the plan of this run in place of the one before, all of it or nothing.

        Rows up to the first that is another than before stay where they are: to read costs less than to write. The
        index is made when all are there: sorted, it takes a fraction of the time of one key after another.
        """
        with self._transaction():
            self._db.execute("DELETE FROM jobs")
            descriptions = [(job, msgspec.json.encode(text).decode()) for job, text in jobs.items()]
            self._db.executemany("INSERT INTO jobs VALUES (?, ?, NULL)", descriptions)
            values = map(_row_values, rows)
            kept, changed, ended = self._compare_rows(values)
            if changed or not ended:
                self._db.execute("DROP INDEX rows_by_key")
                self._db.execute("DELETE FROM rows WHERE (job, row) > (?, ?)", kept)
                self._db.executemany(_INSERT_ROW, itertools.chain(changed, values))
                self._db.execute(_INDEX)

    def _compare_rows(self, values: Iterator[_Values]) -> tuple[_Values, list[_Values], bool]:
        """Take values from the iterator while the rows of the plan before are the same.

        Returns:
            Job and row of the last that is the same, what was taken beyond it, and whether the plan before ended there.
        """
        kept: _Values = (-1, -1)
        with closing(self._db.execute(_STORED_ROWS)) as stored:
            for new in values:
                if new != stored.fetchone():
                    return kept, [new], False
                kept = new[:2]
            return kept, [], stored.fetchone() is None

    def jobs(self) -> dict[int, dict[str, Any]]:
        """The descriptions of the plan's jobs, with ``failure`` when a job could not be run."""
        found = {}
        for job, text, failure in self._db.execute("SELECT job, description, failure FROM jobs ORDER BY job"):
            found[job] = {**msgspec.json.decode(text), "failure": failure}
        return found

    def fail_jobs(self, jobs: Iterable[int], message: str | None) -> None:
        """Note why no model could be asked for these jobs; None takes the note back."""
        self._db.executemany("UPDATE jobs SET failure = ? WHERE job = ?", [(message, job) for job in jobs])

    def remember_scoring(self, metrics: Iterable[str], normalize: Iterable[str]) -> None:
        """Keep what the rows were last scored with, where that is not what the jobs were planned with."""
        chosen = msgspec.json.encode({"metrics": list(metrics), "normalize": list(normalize)}).decode()
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('scoring', ?)", (chosen,))

    def scoring(self) -> dict[str, list[str]]:
        """The names kept by :meth:`remember_scoring`; empty lists stand for the jobs' own."""
        found = self._db.execute("SELECT value FROM meta WHERE key = 'scoring'").fetchone()
        return msgspec.json.decode(found[0], type=dict[str, list[str]]) if found else {}

    def image_digest(self, path: str, size: int, mtime_ns: int) -> str | None:
        """The digest of an image file seen before, if its size and time are unchanged."""
        query = "SELECT digest FROM images WHERE path = ? AND size = ? AND mtime_ns = ?"
        found = self._db.execute(query, (path, size, mtime_ns)).fetchone()
        return found[0] if found else None

    def remember_image(self, path: str, size: int, mtime_ns: int, digest: str) -> None:
        """Store an image file's digest."""
        self._db.execute("INSERT OR REPLACE INTO images VALUES (?, ?, ?, ?)", (path, size, mtime_ns, digest))

    def forget_answers(self) -> None:
        """Drop every answer that the present plan would reuse (``--fresh``)."""
        self._db.execute("DELETE FROM answers WHERE key IN (SELECT key FROM rows)")

    # --- asking

    def pending_count(self, jobs: Iterable[int]) -> int:
        """How many different questions of these jobs have no answer yet."""
        query = f"SELECT count(DISTINCT r.key) {_pending_from(jobs)}"
        count: int = self._db.execute(query).fetchone()[0]
        return count

    def unaskable_count(self) -> int:
        """How many rows of the plan cannot be asked at all. Those that were asked and failed are none of them."""
        count: int = self._db.execute("SELECT count(*) FROM rows WHERE error IS NOT NULL").fetchone()[0]
        return count

    def most_images(self, jobs: Iterable[int]) -> int:
        """Most images in one of the questions of these jobs that have no answer yet; 0 when there are none."""
        query = f"SELECT coalesce(max(json_array_length(r.images)), 0) {_pending_from(jobs)}"
        count: int = self._db.execute(query).fetchone()[0]
        return count

    def pending(self, jobs: Iterable[int]) -> Iterator[PendingQuestion]:
        """The questions of these jobs without an answer, each once, those about one page together."""
        query = (
            f"SELECT r.key, min(r.job) AS job, r.row AS row, r.images AS images {_pending_from(jobs)} "
            "GROUP BY r.key ORDER BY job, images, row"
        )  # sorted without the texts, which are looked up one by one
        texts = "SELECT question, details FROM rows WHERE job = ? AND row = ?"
        with closing(self._connect()) as reader:
            lookup = reader.cursor()
            for key, job, row, images in reader.execute(query):
                question, details = lookup.execute(texts, (job, row)).fetchone()
                paths = tuple(msgspec.json.decode(images))
                yield PendingQuestion(key, job, paths, question, read_details(details).json_schema)

    def save(self, key: bytes, result: GenerationResult) -> None:
        """Commit one result.

        Raises:
            RunError: the disk is full or the file cannot be written; everything committed before is safe.
        """
        self.save_all([(key, result)])

    def save_all(self, results: Iterable[tuple[bytes, GenerationResult]]) -> None:
        """Commit many results in one transaction; raises as :meth:`save` does."""
        try:
            with self._transaction():
                self._db.executemany(_INSERT_ANSWER, (_answer_values(key, result) for key, result in results))
        except sqlite3.Error as error:
            message = f"an answer could not be stored in {self.path}: {error}. Answers stored before are safe."
            raise RunError(message) from error

    # --- reading

    def counts(self) -> dict[str, int]:
        """Rows of the plan by status: ``ok``, ``error``, ``missing``."""
        found = dict.fromkeys(("ok", "error", "missing"), 0)
        query = f"SELECT {STATUS} AS status, count(*) {_BY_KEY} CROSS JOIN jobs j USING (job) GROUP BY status"
        found.update(self._db.execute(query))
        return found

    def columns(self) -> list[str]:
        """The names of the further columns that the dataset's rows have, see ``Sample.fields``."""
        found: dict[str, None] = {}
        for (text,) in self._db.execute("SELECT details FROM rows WHERE details LIKE '%\"fields\"%'"):
            found |= dict.fromkeys(read_details(text).fields)
        return list(found)

    def dataset_digests(self) -> dict[str, str]:
        """A digest per dataset folder of its planned questions, references and image files."""
        jobs: dict[str, list[int]] = {}
        for job, dataset in self._db.execute("SELECT job, description ->> 'dataset_path' FROM jobs"):
            jobs.setdefault(dataset, []).append(job)
        return {dataset: f"sha256:{self._digest_of_rows(numbers)}" for dataset, numbers in jobs.items()}

    def _digest_of_rows(self, jobs: list[int]) -> str:
        """The digest of what these jobs, all on one dataset, were planned to ask; what they share counts once."""

        @lru_cache(maxsize=_REMEMBERED)
        def digests(images: str) -> list[str]:
            query = "SELECT digest FROM images WHERE path = ?"
            found = [self._db.execute(query, (path,)).fetchone() for path in msgspec.json.decode(images)]
            return [row[0] if row else "" for row in found]

        total = hashlib.sha256()
        query = (
            f"SELECT {'DISTINCT' if len(jobs) > 1 else ''} row, images, question, reference, error, details "
            f"FROM rows WHERE job IN ({_numbers(jobs)}) ORDER BY row"
        )
        for row, images, *texts in self._db.execute(query):
            total.update(msgspec.json.encode((row, digests(images), *texts)))
        return total.hexdigest()

    def close(self) -> None:
        """Close the database, folding the write-ahead log into the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


ELSEWHERE = "(given)"
"""What stands for the backend of answers made elsewhere."""


def finish_reason_of(description: dict[str, Any]) -> str:
    """Where a job's rows have their finish reason; nobody knows it of answers that were made elsewhere."""
    return "NULL" if description["backend"] == ELSEWHERE else "a.finish_reason"


_BY_KEY = "FROM rows r INDEXED BY rows_by_key LEFT JOIN answers a ON a.key = r.key"
ROWS_AND_ANSWERS = "FROM rows r JOIN jobs j USING (job) LEFT JOIN answers a ON a.key = r.key"
ERROR = "coalesce(r.error, CASE WHEN a.ok THEN NULL ELSE coalesce(a.error, j.failure) END)"
STATUS = (
    "CASE WHEN r.error IS NOT NULL THEN 'error' WHEN a.ok THEN 'ok' "
    "WHEN a.key IS NOT NULL OR j.failure IS NOT NULL THEN 'error' ELSE 'missing' END"
)

SCORED = (
    "row",
    "data_index",
    "doc_class",
    "question_type",
    "reference",
    "answer",
    "status",
    "finish_reason",
    "details",
)
"""What :meth:`vlmhb.metrics.scoring.Scorer.add` is given of a row and its answer."""


def all_notes(*stored: str | None) -> str:
    """The notes of a row and of its answer, as they are stored, in one text."""
    return " ".join(note for text in stored if text for note in msgspec.json.decode(text, type=list[str]))


def storable(text: str) -> str:
    """The text with unpaired surrogates, which no encoding can hold, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _numbers(jobs: Iterable[int]) -> str:
    return ",".join(str(int(job)) for job in jobs)


def _pending_from(jobs: Iterable[int]) -> str:
    return f"{_BY_KEY} WHERE r.job IN ({_numbers(jobs)}) AND r.error IS NULL AND coalesce(a.ok, 0) = 0"


def _answer_values(key: bytes, result: GenerationResult) -> tuple[Any, ...]:
    failure = result.failure
    return (
        key,
        int(result.ok),
        storable(result.text),
        result.finish_reason,
        len(result.token_ids) if result.token_ids else None,
        result.prompt_tokens,
        result.cached_tokens,
        result.queue_time,
        result.time_to_first_token,
        result.time_per_output_token,
        result.total_time,
        failure.kind if failure else None,
        storable(failure.message) if failure else None,
        storable(msgspec.json.encode(result.notes).decode()),
        msgspec.json.encode(result.token_ids).decode(),
        time.time(),
    )


def _row_values(row: PlannedRow) -> _Values:
    """The values of :data:`_INSERT_ROW`: without bytes and None, for which sqlite3 looks for an adapter each time."""
    sample = row.sample
    return (
        row.job,
        sample.row,
        bytearray(row.key) if row.key else None,
        sample.data_index,
        "|".join(sample.images),
        _list(row.images),
        row.question,
        sample.reference,
        sample.doc_class,
        sample.question_type,
        sample.split,
        sample.answer_bbox,
        row.error or "",
        _list(row.notes),
        details_of(sample),
    )


@lru_cache(maxsize=_REMEMBERED)
def _list(texts: tuple[str, ...]) -> str:
    """The texts as JSON; rows that follow each other often have the same."""
    return msgspec.json.encode(texts).decode()
