"""Metrics without a model: for the answers of a run, or for answers made elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlmhb.contract.dataset import Dataset, Sample
from vlmhb.contract.result import GenerationResult
from vlmhb.data.images import find_image
from vlmhb.discovery.registry import Registry
from vlmhb.errors import ConfigError, Fault, ImageError, RequestError, RunError
from vlmhb.run.export import Summary, export
from vlmhb.run.folder import RunFolder
from vlmhb.run.manifest import note_scoring
from vlmhb.run.store import ELSEWHERE, PlannedRow, RunStore

if TYPE_CHECKING:
    from vlmhb.data.answers import GivenAnswers


def score_run(
    folder: Path, registry: Registry, metrics: str | None, normalize: str | None, by: Sequence[str] = ()
) -> Summary:
    """Score the answers of a run again and replace its exports.

    Args:
        folder: the run's folder.
        registry: where metrics are found.
        metrics, normalize: names, comma-separated, in place of those the run was planned with.
        by: columns, comma-separated, for further tables.

    Raises:
        RunError: the folder holds no run.
        ConfigError: a name is not known.
    """
    from vlmhb.config.choices import metric_names, normalizer_names

    home = RunFolder(folder)
    if not home.database.is_file():
        raise RunError(f"{folder} holds no run (no {home.database.name}); give the folder that 'vlmhb run' printed")
    chosen = metric_names(metrics, registry), normalizer_names(normalize)
    with home, RunStore(home.database) as store:
        tables = tables_by(by, store.columns() if by else ())
        summary = export(store, registry, home, metrics=chosen[0], normalize=chosen[1], tables=tables)
        note_scoring(home, summary)
        return summary


def score_answers(
    dataset: str,
    answers: Path,
    folder: Path,
    registry: Registry,
    metrics: str | None,
    normalize: str | None,
    say: Callable[[str], None],
    by: Sequence[str] = (),
) -> Summary:
    """Score answers made elsewhere against a dataset, into a run folder of their own.

    A row of the dataset without an answer counts as missing. Images are not needed, but an empty answer about an image
    that is not there is an error: it cannot have been asked.

    Args:
        dataset: a folder, a file, or the name of a dataset that a plugin ships.
        answers: see :func:`vlmhb.data.answers.read_answers`.
        folder: where the results go; what an earlier call left there is replaced.
        registry, metrics, normalize: as for :func:`score_run`.
        by: columns, comma-separated, for further tables.
        say: told what was noticed while reading the answers, in sentences.

    Raises:
        ConfigError: the dataset or the answers cannot be read, or a name is not known.
    """
    from vlmhb.config.choices import metric_names, normalizer_names
    from vlmhb.config.job import DEFAULT_METRICS, DEFAULT_NORMALIZE
    from vlmhb.data.answers import read_answers
    from vlmhb.metrics.grouping import AGGREGATORS

    opened = open_dataset(dataset, registry)
    given = read_answers(answers, sum(1 for _ in opened))
    job: dict[str, Any] = {
        "config_row": 1,
        "dataset": dataset,
        "dataset_path": str(opened.root),
        "task": "",
        "backend": ELSEWHERE,
        "model_name": answers.name,
        "metrics": list(metric_names(metrics, registry) or DEFAULT_METRICS),
        "aggregators": list(AGGREGATORS),
        "normalize": list(normalizer_names(normalize) or DEFAULT_NORMALIZE),
    }
    for note in given.notes:
        say(note)
    with RunFolder(folder) as home, RunStore(home.database) as store:
        store.replace_plan({1: job}, _rows(opened, answers, given))
        store.forget_answers()
        store.save_all(_results(given, answers))
        return export(store, registry, home, tables=tables_by(by, store.columns() if by else ()))


def tables_by(by: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """The tables for columns as people write them.

    Raises:
        ConfigError: the rows have no such column.
    """
    from vlmhb.config.names import suggestion
    from vlmhb.metrics.grouping import ROW_COLUMNS, columns_of, table_by

    tables = tuple(dict.fromkeys(map(table_by, by)))
    known = [*ROW_COLUMNS, *there]
    absent = [name for table in tables for name in columns_of(table) if name not in known]
    if absent:
        raise ConfigError(
            [Fault(message=f"the rows have no column {name!r}.", hint=suggestion(name, known)) for name in absent]
        )
    return tables


def open_dataset(written: str, registry: Registry) -> Dataset:
    """Open a dataset by its folder, file or name.

    Raises:
        ConfigError: there is none, or it cannot be read.
    """
    from vlmhb.config.cells import CellError
    from vlmhb.config.lookup import Places

    try:
        return Places(Path(), Path(), registry).dataset(written, "")
    except CellError as error:
        raise ConfigError([Fault(message=str(error), hint=error.hint)]) from error


def _rows(dataset: Dataset, answers: Path, given: GivenAnswers) -> Iterator[PlannedRow]:
    for sample in dataset:
        answer = given.by_row.get(sample.row)
        asked = answer is not None and (answer.text or answer.error)
        yield PlannedRow(
            job=1,
            sample=sample,
            key=_key(answers, sample.row),
            question=sample.question,
            error=sample.problem or (None if asked else _absent_image(dataset, sample)),
        )


def _absent_image(dataset: Dataset, sample: Sample) -> str | None:
    """Why one of a row's images cannot be found, or None."""
    try:
        for written in sample.images:
            find_image(dataset, written)
    except ImageError as error:
        return str(error)
    return None


def _results(given: GivenAnswers, answers: Path) -> Iterable[tuple[bytes, GenerationResult]]:
    for row, answer in given.by_row.items():
        if answer.error is None:
            result = GenerationResult(id=str(row), text=answer.text, finish_reason="stop")
        else:
            result = GenerationResult.failed(str(row), RequestError(answer.error, kind="engine"))
        yield _key(answers, row), result


def _key(answers: Path, row: int) -> bytes:
    return hashlib.sha256(f"{answers.absolute()}\0{row}".encode()).digest()
