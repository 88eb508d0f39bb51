"""The best prompts for each question type and document class, where a run compares several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmhb.contract.report import Fragment, ReportSection, ReportView
from vlmhb.report.exports import records_table
from vlmhb.report.prompts import Best, PromptComparison, prompt_comparisons
from vlmhb.report.render import Cell, Table, count_cell, figure, markdown_text, number_cell, template

if TYPE_CHECKING:
    import polars


class PromptsSection(ReportSection):
    """A table for each model and engine that was asked with several prompts."""

    name = "prompts"
    place = 25

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("prompts.title")

    def render(self, view: ReportView) -> Fragment | None:
        """Nothing where no two entries differ in their prompts only."""
        tables = [_table(view, comparison) for comparison in prompt_comparisons(view)]
        if not tables:
            return None
        note = view.text("prompts.note")
        markdown = "\n".join(f"**{markdown_text(table.caption)}**\n\n{table.markdown()}" for table in tables)
        return Fragment(
            html=template("tables.html.j2", tables=tables, notes=[note]),
            markdown=f"{markdown}\n{markdown_text(note)}\n",
        )

    def tables(self, view: ReportView) -> dict[str, polars.DataFrame]:
        """One line a model, engine and group of rows."""
        lines = [_record(view, one, best) for one in prompt_comparisons(view) for best in one.best]
        return {"prompts": records_table(lines)}


def _record(view: ReportView, comparison: PromptComparison, best: Best) -> dict[str, object]:
    span, ahead = best.interval, best.lead.interval
    return {
        "dataset": comparison.dataset,
        "model": comparison.entries[0].model,
        "backend": comparison.entries[0].backend,
        "metric": comparison.metric,
        "column": best.column,
        "group": best.group,
        "rows": best.rows,
        "best": comparison.name(view, best.best),
        "mean": best.mean,
        "low": span.low if span else None,
        "high": span.high if span else None,
        "second": comparison.name(view, best.second),
        "ahead": best.lead.difference,
        "ahead_low": ahead.low if ahead else None,
        "ahead_high": ahead.high if ahead else None,
        "p_holm": best.p,
    }


def _table(view: ReportView, comparison: PromptComparison) -> Table:
    metric = view.metrics[comparison.metric]
    caption = view.text("prompts.caption", label=comparison.asker, dataset=comparison.dataset, metric=metric.title)
    names = ("rows_of", "rows", "best", "mean", "second", "lead", "p", "verdict")
    header = [view.text(f"prompts.{name}") for name in names]
    lines = [_line(view, comparison, best) for best in comparison.best]
    return Table(caption, header, lines, frozenset((1, 3, 5, 6)), sortable=False)


def _line(view: ReportView, comparison: PromptComparison, best: Best) -> list[Cell]:
    group = best.group or view.text("word.unnamed")
    sign = "" if best.lead.difference < 0 else "+"
    span = best.lead.interval
    hint = f"[{figure(span.low)}, {figure(span.high)}]" if span else ""
    return [
        Cell(
            group if best.column else view.text("word.all"),
            hint=view.text(f"word.{best.column}") if best.column else "",
        ),
        count_cell(best.rows),
        Cell(comparison.name(view, best.best)),
        number_cell(view, best.mean, best.interval),
        Cell(comparison.name(view, best.second)),
        Cell(f"{sign}{figure(best.lead.difference)}", hint=hint),
        Cell(f"{best.p:.3f}" if best.p >= 0.001 else "< 0.001"),
        Cell(view.text("prompts.sure" if best.sure else "prompts.unsure")),
    ]


def prompts_sentence(view: ReportView, comparison: PromptComparison) -> str:
    """The best prompts over all rows and by question type, in a sentence."""
    overall, *groups = comparison.best

    def said(best: Best) -> str:
        name = comparison.name(view, best.best)
        return view.text("prompts.ahead" if best.sure else "prompts.not_ahead", prompts=name, value=figure(best.mean))

    values = {"label": comparison.asker, "metric": view.metrics[comparison.metric].title, "best": said(overall)}
    types = [
        f"{best.group or view.text('word.unnamed')} — {said(best)}" for best in groups if best.column == "question_type"
    ]
    sentence = view.text("prompts.sentence", **values)
    return f"{sentence} {view.text('prompts.by_type', types='; '.join(types))}" if types else sentence
