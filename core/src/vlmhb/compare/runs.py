"""Two runs over the same rows: how far apart they are, and whether that is more than chance."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vlmhb.compare.tokens import first_difference
from vlmhb.contract.metric import Metric
from vlmhb.discovery.registry import Registry
from vlmhb.errors import RunError
from vlmhb.report.load import LoadedJob, load_run
from vlmhb.run.folder import RunFolder
from vlmhb.stats.interval import interval_of
from vlmhb.stats.paired import holm, mcnemar_p, sign_flip_p, smallest_detectable

if TYPE_CHECKING:
    import polars

_CHOSEN = re.compile(r"(.+?):(\d+)(?::(.+))?")
GROUPS = ("doc_class", "question_type")


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over one group of rows that both sides answered.

    Attributes:
        metric: its name.
        group: the group's value, or ``all``.
        rows, pages: how many there are.
        first, second: the means of the two sides.
        difference: second minus first.
        low, high: its 95 % interval, pages drawn as a whole; None where the rows do not say.
        p: see :func:`vlmhb.stats.paired.sign_flip_p`.
        p_holm: the same, corrected for all differences of the comparison.
        only_first, only_second: for metrics of 0 and 1 the rows that only one side has right.
        mcnemar_p: see :func:`vlmhb.stats.paired.mcnemar_p`; for the same metrics.
        detectable: see :func:`vlmhb.stats.paired.smallest_detectable`.
    """

    metric: str
    group: str
    rows: int
    pages: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p: float
    p_holm: float = 1.0
    only_first: int | None = None
    only_second: int | None = None
    mcnemar_p: float | None = None
    detectable: float | None = None


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two rows of configs over one dataset.

    Attributes:
        dataset: its name.
        first, second: what is compared: model, backend, run.
        rows: rows that both answered; only these are compared.
        only_first_answered, only_second_answered: rows that one of them answered.
        same_text: rows with the same answer, to the letter.
        same_tokens: rows with the same token ids, of :attr:`with_tokens` rows for which both engines gave ids.
        first_token: the median place of the first token that differs, from 0, where some differ.
        differences: metric by metric.
        notes: what makes the comparison less than it seems, in sentences.
    """

    dataset: str
    first: str
    second: str
    rows: int
    only_first_answered: int
    only_second_answered: int
    same_text: int
    same_tokens: int
    with_tokens: int
    first_token: float | None
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()


def compare_runs(first: str, second: str, registry: Registry, group_by: str | None = None) -> list[RunComparison]:
    """Compare two runs, dataset by dataset.

    Args:
        first, second: run folders; ``FOLDER:2`` is row 2 of the run's config, ``FOLDER:2:terse`` that row with the
            prompts of this name.
        registry: where metrics are found.
        group_by: one of :data:`GROUPS`, to compare each of its values too.

    Raises:
        RunError: a folder holds no run, they have no dataset in common, or it is not clear what is to be compared.
    """
    ours, theirs = _jobs(first, registry), _jobs(second, registry)
    pairs = list(_pairs(ours, theirs, first, second))
    known = registry.metrics()
    return [_compare(*pair, known, group_by) for pair in pairs]


def _jobs(written: str, registry: Registry) -> list[tuple[Path, LoadedJob]]:
    match = None if Path(written).is_dir() else _CHOSEN.fullmatch(written)
    folder = Path(match[1] if match else written)
    jobs = load_run(folder, registry).jobs
    if match:
        jobs = tuple(job for job in jobs if job.description["config_row"] == int(match[2]))
        if not jobs:
            raise RunError(f"the run {folder} has no row {match[2]} of its config")
        names = [job.description.get("prompts", "") for job in jobs]
        if match[3] and match[3] not in names:
            raise RunError(f"row {match[2]} of the run {folder} has no prompts {match[3]}; it has {', '.join(names)}")
        jobs = tuple(job for job, name in zip(jobs, names, strict=True) if match[3] in (None, name))
    return [(folder, job) for job in jobs]


def _pairs(
    ours: list[tuple[Path, LoadedJob]], theirs: list[tuple[Path, LoadedJob]], first: str, second: str
) -> Iterator[tuple[tuple[Path, LoadedJob], tuple[Path, LoadedJob]]]:
    """What is compared with what: within a dataset the only one with the only one, else equal model and backend."""
    shared = [
        name for name in dict.fromkeys(job.dataset for _, job in ours) if any(j.dataset == name for _, j in theirs)
    ]
    if not shared:
        raise RunError(f"{first} and {second} have no dataset in common")
    for dataset in shared:
        left = [item for item in ours if item[1].dataset == dataset]
        right = [item for item in theirs if item[1].dataset == dataset]
        if len(left) == len(right) == 1:
            yield left[0], right[0]
            continue
        for item in left:
            same = [other for other in right if _kind(other[1]) == _kind(item[1])]
            if len(same) != 1 or sum(_kind(other[1]) == _kind(item[1]) for other in left) != 1:
                rows = ", ".join(_row(job) for _, job in (*left, *right))
                raise RunError(
                    f"it is not clear which rows of the configs to compare on {dataset} ({rows}); "
                    f"name them: {first}:{_row(left[0][1])} {second}:{_row(right[-1][1])}"
                )
            yield item, same[0]


def _row(job: LoadedJob) -> str:
    """A job as it is named behind the run's folder: its row, and its prompts where it has some."""
    said = job.description
    return ":".join(filter(None, (str(said["config_row"]), said.get("prompts", ""))))


def _kind(job: LoadedJob) -> tuple[str, str, str, str]:
    said = job.description
    return said["model_name"], said["backend"], str(said.get("prompt_collection")), str(said.get("system_prompt"))


def _compare(
    one: tuple[Path, LoadedJob], other: tuple[Path, LoadedJob], known: dict[str, Metric], group_by: str | None
) -> RunComparison:
    import polars as pl

    (_, left), (_, right) = one, other
    metrics = [name for name in left.metrics if name in right.metrics]
    answered = pl.col("status") == "ok"
    ours = left.rows.filter(answered).select("row", "sample", "page", *GROUPS, *metrics)
    theirs = right.rows.filter(answered).select("sample", pl.col("row").alias("other_row"), *metrics)
    both = ours.join(theirs, on="sample", suffix="/other", maintain_order="left")
    differences = [found for name in metrics for found in _differences(both, known[name], group_by)]
    corrected = holm([found.p for found in differences])
    text, tokens, with_tokens, places = _agreement(one, other, both)
    return RunComparison(
        dataset=left.dataset,
        first=_label(*one),
        second=_label(*other),
        rows=len(both),
        only_first_answered=len(ours) - len(both),
        only_second_answered=len(theirs) - len(both),
        same_text=text,
        same_tokens=tokens,
        with_tokens=with_tokens,
        first_token=sorted(places)[len(places) // 2] if places else None,
        differences=tuple(
            msgspec.structs.replace(found, p_holm=p) for found, p in zip(differences, corrected, strict=True)
        ),
        notes=tuple(_notes(left, right, len(both))),
    )


def _notes(left: LoadedJob, right: LoadedJob, rows: int) -> Iterator[str]:
    if left.normalize != right.normalize:
        yield f"the texts were normalised differently: {','.join(left.normalize)} and {','.join(right.normalize)}."
    missing = sorted(set(left.metrics) ^ set(right.metrics))
    if missing:
        yield f"only one of them has {', '.join(missing)}; 'vlmhb score RUN --metrics' adds metrics."
    if not rows:
        yield "they have no answered row in common."


def _differences(both: polars.DataFrame, metric: Metric, group_by: str | None) -> Iterator[Difference]:
    if both.is_empty():
        return
    yield _difference(both, metric, "all")
    if group_by:
        for group in both.partition_by(group_by, maintain_order=True):
            yield _difference(group, metric, group[group_by][0] or "(none)")


def _difference(rows: polars.DataFrame, metric: Metric, group: str) -> Difference:
    import numpy as np

    first, second = rows[metric.name].to_numpy(), rows[f"{metric.name}/other"].to_numpy()
    change, pages = second - first, rows["page"].to_numpy()
    span = interval_of(change, pages)
    binary = bool(np.isin(first, (0, 1)).all() and np.isin(second, (0, 1)).all())
    only = (int((first > second).sum()), int((second > first).sum())) if binary else (None, None)
    return Difference(
        metric=metric.name,
        group=group,
        rows=len(rows),
        pages=len(np.unique(pages)),
        first=float(first.mean()),
        second=float(second.mean()),
        difference=float(change.mean()),
        low=span.low if span else None,
        high=span.high if span else None,
        p=sign_flip_p(change, pages),
        only_first=only[0],
        only_second=only[1],
        mcnemar_p=mcnemar_p(*only) if only[0] is not None and only[1] is not None else None,
        detectable=smallest_detectable(change, pages),
    )


def _agreement(
    one: tuple[Path, LoadedJob], other: tuple[Path, LoadedJob], both: polars.DataFrame
) -> tuple[int, int, int, list[int]]:
    """Rows with the same text, with the same tokens, with tokens at all, and where tokens differ first."""
    wanted = dict(both.select("row", "other_row").iter_rows())
    theirs = _answers(*other)
    same_text = same_tokens = with_tokens = 0
    places: list[int] = []
    # Rows of one dataset come in the same order on both sides, so that one pass over each is enough.
    row, answer = next(theirs, (0, ("", "[]")))
    for mine, (text, ids) in _answers(*one):
        target = wanted.get(mine)
        if target is None:
            continue
        while row < target:
            row, answer = next(theirs, (target + 1, ("", "[]")))
        if row != target:
            continue
        same_text += text == answer[0]
        if ids != "[]" and answer[1] != "[]":
            with_tokens += 1
            place = None if ids == answer[1] else first_difference(*(msgspec.json.decode(t) for t in (ids, answer[1])))
            same_tokens += place is None
            places += [] if place is None else [place]
    return same_text, same_tokens, with_tokens, places


def _answers(folder: Path, job: LoadedJob) -> Iterator[tuple[int, tuple[str, str]]]:
    query = (
        "SELECT r.row, a.text, a.token_ids FROM rows r JOIN answers a ON a.key = r.key "
        "WHERE r.job = ? AND r.error IS NULL AND a.ok ORDER BY r.row"
    )
    with closing(sqlite3.connect(RunFolder(folder).database)) as db:
        for row, text, ids in db.execute(query, (job.job,)):
            yield row, (text, ids)


def _label(folder: Path, job: LoadedJob) -> str:
    said = job.description
    prompts = f", {said['prompts']}" if said.get("prompts") else ""
    return f"{said['model_name']} on {said['backend']} ({folder.name}, row {said['config_row']}{prompts})"
