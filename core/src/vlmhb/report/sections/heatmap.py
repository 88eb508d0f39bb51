"""Where an entry is good and where it is bad: question types against document classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vlmhb.contract.report import Fragment, ReportEntry, ReportSection, ReportView
from vlmhb.report.exports import aggregated
from vlmhb.report.render import Cell, Table, figure, heat, markdown_text, template

if TYPE_CHECKING:
    import polars


class HeatmapSection(ReportSection):
    """One coloured table for each entry and metric; a menu chooses."""

    name = "heatmap"
    place = 40

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("heatmap.title")

    def render(self, view: ReportView) -> Fragment | None:
        """The tables; in Markdown, the means by document class of the first metric only."""
        entries = [entry for entry in view.entries if entry.metrics and len(view.rows(entry))]
        if not entries:
            return None
        maps = [(entry, name, self._table(view, entry, name)) for entry in entries for name in entry.metrics]
        many = len(view.datasets) > 1
        names = {e.number: f"{e.label} — {e.dataset}" if many else e.label for e in entries}
        return Fragment(
            html=template(
                "heatmap.html.j2",
                maps=maps,
                names=names,
                metrics={name: metric.title for name, metric in view.metrics.items()},
                text=view.text,
            ),
            markdown="\n".join(self._by_class(view, dataset, some) for dataset, some in view.datasets.items()),
        )

    def tables(self, view: ReportView) -> dict[str, polars.DataFrame]:
        """One line an entry and group, with the intervals that the page has no room for."""
        return {name: aggregated(view, name) for name in ("by_doc_question", "by_doc_type")}

    def _table(self, view: ReportView, entry: ReportEntry, name: str) -> Table:
        metric = view.metrics[name]
        groups = {(g["doc_class"], g["question_type"]): g for g in view.table(entry, "by_doc_question").to_dicts()}
        classes = list(dict.fromkeys(doc for doc, _ in groups))
        kinds = list(dict.fromkeys(kind for _, kind in groups))
        value = f"{name}_mean"
        most = max((g[value] for g in groups.values() if g[value] is not None), default=1.0)

        def cell(group: dict[str, float | None] | None) -> Cell:
            if group is None:
                return Cell("")
            mean, count = group[value], group["count"]
            failed = (group["errors"] or 0) + (group["missing"] or 0)
            hint = f"n={count}" + (f", ✗{failed}" if failed else "")
            if mean is None:
                return Cell(view.text("word.none"), hint=hint)
            return Cell(figure(mean), sort=mean, heat=round(heat(metric, mean, most), 3), hint=hint)

        totals = {g["doc_class"]: g for g in view.table(entry, "by_doc_type").to_dicts()}
        unnamed = view.text("word.unnamed")
        rows = [[Cell(kind or unnamed), *(cell(groups.get((doc, kind))) for doc in classes)] for kind in kinds]
        last = [Cell(view.text("word.all")), *(cell(totals[doc]) for doc in classes)]
        header = [view.text("word.question_type"), *(doc or unnamed for doc in classes)]
        caption = view.text("heatmap.caption", metric=metric.title, label=entry.label, dataset=entry.dataset)
        return Table(caption, header, [*rows, last], frozenset(range(1, len(header))), sortable=False)

    def _by_class(self, view: ReportView, dataset: str, entries: Sequence[ReportEntry]) -> str:
        """Means by document class, entries as columns, in the first metric of each."""
        tables = [
            {g["doc_class"]: g[f"{entry.metrics[0]}_mean"] for g in view.table(entry, "by_doc_type").to_dicts()}
            for entry in entries
            if entry.metrics
        ]
        shown = [entry for entry in entries if entry.metrics]
        header = [view.text("word.doc_class")]
        header += [f"{entry.label}: {view.metrics[entry.metrics[0]].title}" for entry in shown]
        none, unnamed = view.text("word.none"), view.text("word.unnamed")
        rows = []
        for doc in dict.fromkeys(doc for table in tables for doc in table):
            means = [table.get(doc) for table in tables]
            rows.append([Cell(doc or unnamed), *(Cell(none if mean is None else figure(mean)) for mean in means)])
        table = Table("", header, rows, frozenset(range(1, len(header))))
        return f"**{markdown_text(dataset)}**\n\n{table.markdown()}"
