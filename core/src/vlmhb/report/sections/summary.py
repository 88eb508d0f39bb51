"""What came out, in sentences that say how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from vlmhb.contract.report import Fragment, ReportEntry, ReportSection, ReportView
from vlmhb.report.figures import Figure, lead, mean_of, rank_metric, ranked
from vlmhb.report.render import figure, markdown_text, template


class SummarySection(ReportSection):
    """A sentence for each dataset, and the best entry's figures."""

    name = "summary"
    place = 10

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("summary.title")

    def render(self, view: ReportView) -> Fragment:
        """Sentences, and one tile a metric of the best entry."""
        blocks = [self._dataset(view, name, entries) for name, entries in view.datasets.items()]
        lines = [markdown_text(line) for block in blocks for line in block["sentences"]]
        return Fragment(
            html=template("summary.html.j2", blocks=blocks, text=view.text, notes=view.notes),
            markdown="\n\n".join(lines + [f"> {markdown_text(note)}" for note in view.notes]) + "\n",
        )

    def _dataset(self, view: ReportView, dataset: str, entries: Sequence[ReportEntry]) -> dict[str, Any]:
        metric = rank_metric(entries)
        order = ranked(view, entries, metric) if metric else []
        best = order[0][0] if order else entries[0]
        tiles = []
        for name in best.metrics:
            found = mean_of(view, best, name)
            tiles.append(
                {"title": view.metrics[name].title, "value": _value(view, found), "range": _range(view, found)}
            )
        sentences = [*self._result(view, dataset, order, metric), self._rows(view, entries)]
        return {
            "dataset": dataset if len(view.datasets) > 1 else "",
            "sentences": sentences,
            "tiles": tiles,
            "best": best.label if len(entries) > 1 else "",
        }

    def _result(
        self, view: ReportView, dataset: str, order: list[tuple[ReportEntry, Figure]], metric: str | None
    ) -> list[str]:
        if not metric or not order or order[0][1].mean is None:
            return [view.text("summary.nothing", dataset=dataset)]
        (best, found), *others = order
        values = {
            "label": best.label,
            "dataset": dataset,
            "metric": view.metrics[metric].title,
            "value": _value(view, found),
            "range": _range(view, found),
            "rows": found.rows,
            "pages": found.pages,
        }
        equal = [best, *(entry for entry, other in others if _equal(found, other))]
        tied = len(equal) > 1
        if tied:
            values |= {"labels": ", ".join(entry.label for entry in equal), "count": len(equal), "entries": len(order)}
        key = "tied" if tied else "best" if others else "one"
        sentences = [view.text(f"summary.{key}", **values)]
        following = [entry for entry, other in order[len(equal) :] if other.mean is not None]
        if following:
            sentences.append(self._lead(view, best, following[0], metric, "tied" if tied else "lead"))
        return sentences

    def _lead(self, view: ReportView, best: ReportEntry, second: ReportEntry, metric: str, kind: str) -> str:
        found = lead(view, best, second, metric)
        if found is None:
            return view.text("summary.no_common", label=best.label, other=second.label)
        span = found.interval
        return view.text(
            f"summary.{kind}_{'certain' if found.certain else 'uncertain'}",
            label=best.label,
            other=second.label,
            difference=figure(found.difference),
            range=f"{figure(span.low)} … {figure(span.high)}" if span else view.text("word.none"),
            rows=found.rows,
        )

    def _rows(self, view: ReportView, entries: Sequence[ReportEntry]) -> str:
        rows = [view.rows(entry)["status"].value_counts() for entry in entries]
        counts = {status: sum(dict(one.iter_rows()).get(status, 0) for one in rows) for status in ("error", "missing")}
        total = sum(len(view.rows(entry)) for entry in entries)
        if not any(counts.values()):
            return view.text("summary.all_answered", total=total)
        return view.text("summary.some_failed", total=total, **counts)


def _equal(first: Figure, other: Figure) -> bool:
    """Whether the means are the same but for rounding of their sums."""
    if first.mean is None or other.mean is None:
        return False
    return math.isclose(first.mean, other.mean, rel_tol=1e-12, abs_tol=1e-12)


def _value(view: ReportView, found: Figure) -> str:
    return view.text("word.none") if found.mean is None else figure(found.mean)


def _range(view: ReportView, found: Figure) -> str:
    if found.interval is None:
        return view.text("word.no_interval")
    return f"{figure(found.interval.low)} … {figure(found.interval.high)}"
