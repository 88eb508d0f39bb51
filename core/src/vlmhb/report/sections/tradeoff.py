"""Accuracy against speed, drawn."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from vlmhb.contract.report import Fragment, ReportEntry, ReportSection, ReportView
from vlmhb.report.figures import Figure, rank_metric, ranked
from vlmhb.report.plot import NAMED, Point, scatter
from vlmhb.report.render import Cell, Table, number_cell, template
from vlmhb.report.sections.speed import throughput


class TradeoffSection(ReportSection):
    """For each dataset a plot of the ranking metric over answers a second, and the same numbers as a table."""

    name = "tradeoff"
    place = 30

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("tradeoff.title")

    def render(self, view: ReportView) -> Fragment | None:
        """Nothing where no entry has both a mean and a speed."""
        plots = [self._plot(view, dataset, entries) for dataset, entries in view.datasets.items()]
        if not any(plots):
            return None
        return Fragment(html=Markup("").join(plot for plot in plots if plot))

    def _plot(self, view: ReportView, dataset: str, entries: Sequence[ReportEntry]) -> Markup | None:
        metric = rank_metric(entries)
        order = ranked(view, entries, metric) if metric else []
        found = [(entry, figure, throughput(view.rows(entry)).answers) for entry, figure in order]
        drawn = [(entry, figure, speed) for entry, figure, speed in found if speed and figure.mean is not None]
        if not drawn or metric is None:
            return None
        title = view.metrics[metric].title
        axes = view.text("speed.answers"), f"{title} ({view.text(f'tradeoff.{_direction(view, metric)}')})"
        alternative = view.text("tradeoff.alternative", metric=title, dataset=dataset, entries=len(drawn))
        points = [_point(entry, figure, speed) for entry, figure, speed in drawn]
        header = [view.text("word.label"), title, view.text("speed.answers")]
        none = view.text("word.none")
        numbers = {entry.number: f"{at}. " for at, (entry, _, _) in enumerate(drawn, 1)} if len(drawn) > NAMED else {}
        rows = [
            [
                Cell(numbers.get(entry.number, "") + entry.label),
                number_cell(view, figure.mean, figure.interval),
                Cell(none if speed is None else f"{speed:.3g}", sort=speed),
            ]
            for entry, figure, speed in found
        ]
        table = Table(view.text("tradeoff.caption", dataset=dataset), header, rows, frozenset((1, 2)))
        plot = scatter(points, *axes, alternative)
        return template("tradeoff.html.j2", plot=plot, table=table, numbered=bool(numbers), text=view.text)


def _direction(view: ReportView, metric: str) -> str:
    return "higher" if view.metrics[metric].higher_is_better else "lower"


def _point(entry: ReportEntry, found: Figure, speed: float) -> Point:
    mean = found.mean or 0.0
    span = found.interval
    return Point(entry.label, speed, mean, span.low if span else mean, span.high if span else mean)
