"""Which prompts are best for what: entries that differ in their prompts only, compared over the rows they share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vlmhb.contract.report import ReportEntry, ReportView
from vlmhb.report.figures import Lead, rank_metric
from vlmhb.report.once import once_per_report
from vlmhb.stats.interval import Interval, interval_of
from vlmhb.stats.paired import holm, sign_flip_p

if TYPE_CHECKING:
    import polars

SURE = 0.05
"""Corrected probability below which the best prompts are called better than the second best."""
GROUPS = ("question_type", "doc_class")


class Best(NamedTuple):
    """The best prompts for some rows.

    Attributes:
        column: one of :data:`GROUPS`, or empty for all rows.
        group: the rows' value in it.
        rows: how many rows all prompts answered.
        best, second: the entries, by their mean over these rows.
        mean: of the best, and its 95 % interval.
        lead: how far the best is ahead of the second, in the direction of "better".
        p: how likely chance alone gives such a lead, corrected (Holm) for all values of the column.
    """

    column: str
    group: str
    rows: int
    best: ReportEntry
    second: ReportEntry
    mean: float
    interval: Interval | None
    lead: Lead
    p: float

    @property
    def sure(self) -> bool:
        """Whether the lead is more than chance."""
        return self.p < SURE


class PromptComparison(NamedTuple):
    """Entries that differ in their prompts only, and the best of them: over all rows first, then group by group."""

    dataset: str
    entries: tuple[ReportEntry, ...]
    metric: str
    best: tuple[Best, ...]

    @property
    def asker(self) -> str:
        """The model and engine that all of them used."""
        return f"{self.entries[0].model} · {self.entries[0].backend}"

    def name(self, view: ReportView, entry: ReportEntry) -> str:
        """What an entry's prompts are called: their names, the entry's label where two have the same names."""
        if sum(other.prompts == entry.prompts for other in self.entries) > 1:
            return entry.label
        return entry.prompts or view.text("prompts.own")


@once_per_report
def prompt_comparisons(view: ReportView) -> list[PromptComparison]:
    """Every set of entries that differ in their prompts only; worked out once for each report."""
    return [
        PromptComparison(dataset, tuple(some), metric, best)
        for dataset, entries in view.datasets.items()
        for some in _alike(entries)
        if (metric := rank_metric(some)) and (best := tuple(_best(view, some, metric)))
    ]


def _alike(entries: Sequence[ReportEntry]) -> Iterator[list[ReportEntry]]:
    """Entries with the same model, engine, settings and normalisers, in which there are different prompts."""
    groups: dict[str, list[ReportEntry]] = {}
    for entry in entries:
        said = entry.description
        settings = (said["model_name"], said["backend"], said.get("model"), said.get("sampling"), entry.normalize)
        groups.setdefault(json.dumps(settings, sort_keys=True), []).append(entry)
    return (some for some in groups.values() if len({entry.prompts for entry in some}) > 1)


def _best(view: ReportView, entries: Sequence[ReportEntry], metric: str) -> Iterator[Best]:
    rows = _common(view, entries, metric)
    if rows.is_empty():
        return
    yield _best_of(view, entries, metric, "", "", rows)
    for column in GROUPS:
        parts = rows.partition_by(column, maintain_order=True)
        if len(parts) > 1:
            found = [_best_of(view, entries, metric, column, part[column][0], part) for part in parts]
            for one, p in zip(found, holm([one.p for one in found]), strict=True):
                yield one._replace(p=p)


def _common(view: ReportView, entries: Sequence[ReportEntry], metric: str) -> polars.DataFrame:
    """The rows that all entries have scored, each entry's values in a column of its number."""
    import polars as pl

    found: pl.DataFrame | None = None
    for entry in entries:
        values = view.rows(entry).select("sample", pl.col(metric).alias(str(entry.number))).unique("sample")
        if found is None:
            front = view.rows(entry).select("sample", "page", *GROUPS).unique("sample", maintain_order=True)
            found = front.join(values, on="sample", maintain_order="left")
        else:
            found = found.join(values, on="sample", maintain_order="left")
    assert found is not None
    return found.drop_nulls()


def _best_of(
    view: ReportView, entries: Sequence[ReportEntry], metric: str, column: str, group: str, rows: polars.DataFrame
) -> Best:
    sign = 1 if view.metrics[metric].higher_is_better else -1
    values = {entry.number: sign * rows[str(entry.number)].to_numpy() for entry in entries}
    best, second = sorted(entries, key=lambda entry: -values[entry.number].mean())[:2]
    pages = rows["page"].to_numpy()
    change = values[best.number] - values[second.number]
    own = rows[str(best.number)].to_numpy()
    return Best(
        column=column,
        group=group,
        rows=len(rows),
        best=best,
        second=second,
        mean=float(own.mean()),
        interval=interval_of(own, pages, bounds=view.metrics[metric].bounds),
        lead=Lead(float(change.mean()), interval_of(change, pages), len(rows)),
        p=sign_flip_p(change, pages),
    )
