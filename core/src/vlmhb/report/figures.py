"""Figures that several sections need: means with their intervals, and who is ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from vlmhb.contract.report import ReportEntry, ReportView
from vlmhb.report.once import once_per_report
from vlmhb.stats.interval import Interval, interval_of

if TYPE_CHECKING:
    import polars


class Figure(NamedTuple):
    """A mean over rows, its 95 % interval, and over how many rows and pages it goes; None where there is none."""

    mean: float | None
    interval: Interval | None
    rows: int
    pages: int


class Lead(NamedTuple):
    """How far the first of two entries is ahead of the second, over the rows that both answered."""

    difference: float
    interval: Interval | None
    rows: int

    @property
    def certain(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high


@once_per_report
def mean_of(view: ReportView, entry: ReportEntry, metric: str) -> Figure:
    """The mean of a metric over the rows of an entry that have it; worked out once for each report."""
    return mean_over(view, view.rows(entry), metric)


def mean_over(view: ReportView, rows: polars.DataFrame, metric: str) -> Figure:
    """The mean of a metric over those of some rows that have it."""
    scored = rows.select("page", metric).drop_nulls()
    if scored.is_empty():
        return Figure(None, None, 0, 0)
    values = scored[metric].to_numpy()
    interval = interval_of(values, scored["page"].to_numpy(), bounds=view.metrics[metric].bounds)
    return Figure(float(values.mean()), interval, len(scored), scored["page"].n_unique())


def ranked(view: ReportView, entries: Sequence[ReportEntry], metric: str) -> list[tuple[ReportEntry, Figure]]:
    """Entries, best first; those without a value last."""
    found = [(entry, mean_of(view, entry, metric)) for entry in entries if metric in entry.metrics]
    sign = -1 if view.metrics[metric].higher_is_better else 1
    return sorted(found, key=lambda one: (one[1].mean is None, sign * (one[1].mean or 0.0)))


def lead(view: ReportView, first: ReportEntry, second: ReportEntry, metric: str) -> Lead | None:
    """The paired difference of two entries in the direction of "better"; None when they share no row."""
    import polars as pl

    ours = view.rows(first).select("sample", "page", metric)
    both = ours.join(view.rows(second).select("sample", pl.col(metric).alias("other")), on="sample").drop_nulls()
    if both.is_empty():
        return None
    sign = 1 if view.metrics[metric].higher_is_better else -1
    values = sign * (both[metric] - both["other"]).to_numpy()
    return Lead(float(values.mean()), interval_of(values, both["page"].to_numpy()), len(both))


def rank_metric(entries: Sequence[ReportEntry]) -> str | None:
    """The metric that ranks entries: the first one that all of them have, else the first of the first."""
    names = [name for entry in entries for name in entry.metrics]
    shared = [name for name in names if all(name in entry.metrics for entry in entries)]
    return next(iter([*shared, *names]), None)


def scored_samples(view: ReportView, entry: ReportEntry) -> polars.Series:
    """The samples of an entry that were answered and scored."""
    import polars as pl

    return view.rows(entry).filter(pl.col("status") == "ok")["sample"]
