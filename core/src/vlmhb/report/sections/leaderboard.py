"""Models, engines and prompts beside each other, best first, one table for each dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from vlmhb.contract.report import Fragment, ReportEntry, ReportSection, ReportView
from vlmhb.report.exports import aggregated
from vlmhb.report.figures import mean_of, mean_over, rank_metric, ranked, scored_samples
from vlmhb.report.prompts import prompt_comparisons
from vlmhb.report.render import Cell, Table, count_cell, markdown_text, number_cell, template
from vlmhb.report.sections.prompts import best_prompts

if TYPE_CHECKING:
    import polars


_COUNTS = ("count", "scored", "errors", "missing")


class LeaderboardSection(ReportSection):
    """The mean of each metric with its interval, the counts beside it, and the metric's other readings."""

    name = "leaderboard"
    place = 20

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("leaderboard.title")

    def render(self, view: ReportView) -> Fragment:
        """Two tables a dataset: means, and the other readings."""
        html, markdown = [], []
        for dataset, entries in view.datasets.items():
            ordered = self._order(view, entries)
            names = list(dict.fromkeys(name for entry in ordered for name in entry.metrics))
            common = _common(view, ordered)
            means = [self._means(view, ordered, names, view.text("leaderboard.caption", dataset=dataset))]
            if common is not None:
                caption = view.text("leaderboard.common", dataset=dataset, rows=len(common))
                means.append(self._means(view, ordered, names, caption, common))
            readings = self._readings(view, dataset, ordered, names)
            warning = "" if common is None else view.text("leaderboard.unequal", rows=len(common))
            texts = ", ".join(dict.fromkeys(name for entry in ordered for name in entry.normalize))
            under = [view.text("leaderboard.reading", normalize=texts or view.text("word.nothing"))]
            under += [
                said for one in prompt_comparisons(view) if one.dataset == dataset for said in best_prompts(view, one)
            ]
            html.append(
                template(
                    "leaderboard.html.j2", means=means, readings=readings, warning=warning, under=under, text=view.text
                )
            )
            markdown += [f"**{markdown_text(dataset)}**", means[0].markdown(), *map(markdown_text, under)]
            if warning:
                markdown += [f"> {markdown_text(warning)}", means[1].markdown()]
        return Fragment(html=Markup("").join(html), markdown="\n\n".join(markdown) + "\n")

    def tables(self, view: ReportView) -> dict[str, polars.DataFrame]:
        """One line an entry: counts and all readings of its metrics."""
        return {"leaderboard": aggregated(view, "general")}

    def _order(self, view: ReportView, entries: Sequence[ReportEntry]) -> list[ReportEntry]:
        metric = rank_metric(entries)
        first = [entry for entry, _ in ranked(view, entries, metric)] if metric else []
        return first + [entry for entry in entries if entry not in first]

    def _means(
        self,
        view: ReportView,
        entries: Sequence[ReportEntry],
        names: list[str],
        caption: str,
        only: polars.Series | None = None,
    ) -> Table:
        """Counts and means of the entries, or the means over some samples only."""
        counts = _COUNTS if only is None else ()
        titles = (*(view.text(f"word.{name}") for name in counts), *(_title(view, name) for name in names))
        lines = []
        for entry in entries:
            total = view.table(entry, "general").row(0, named=True)
            cells = [count_cell(total[name]) for name in counts]
            lines.append([Cell(entry.label), *cells, *(_mean_cell(view, entry, only, name) for name in names)])
        return Table(caption, [view.text("word.label"), *titles], lines, frozenset(range(1, len(titles) + 1)))

    def _readings(self, view: ReportView, dataset: str, entries: Sequence[ReportEntry], names: list[str]) -> Table:
        kinds = ("mean", "corpus", "errors_as_wrong")
        header = [view.text("word.label"), view.text("word.metric"), *(view.text(f"leaderboard.{k}") for k in kinds)]
        lines = []
        for entry in entries:
            total = view.table(entry, "general").row(0, named=True)
            for name in names:
                cells = [number_cell(view, total.get(f"{name}_{kind}")) for kind in kinds]
                lines.append([Cell(entry.label), Cell(_title(view, name)), *cells])
        return Table(view.text("leaderboard.readings", dataset=dataset), header, lines, frozenset((2, 3, 4)))


def _title(view: ReportView, name: str) -> str:
    metric = view.metrics[name]
    return f"{metric.title}\u00a0{'↑' if metric.higher_is_better else '↓'}"


def _mean_cell(view: ReportView, entry: ReportEntry, only: polars.Series | None, name: str) -> Cell:
    """An entry's mean over all its rows, or over some samples only."""
    if name not in entry.metrics:
        return number_cell(view, None)
    if only is None:
        found = mean_of(view, entry, name)
    else:
        rows = view.rows(entry)
        found = mean_over(view, rows.filter(rows["sample"].is_in(only.implode())), name)
    return number_cell(view, found.mean, found.interval)


def _common(view: ReportView, entries: Sequence[ReportEntry]) -> polars.Series | None:
    """The samples that all entries have scored, where that is not simply all of them; else None."""
    sets = [scored_samples(view, entry) for entry in entries]
    common = sets[0]
    for other in sets[1:]:
        common = common.filter(common.is_in(other.implode()))
    return None if all(len(one) == len(common) for one in sets) else common
