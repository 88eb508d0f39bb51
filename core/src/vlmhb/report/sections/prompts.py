"""The best prompts for each question type and document class, where a run compares several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmhb.contract.report import Fragment, ReportSection, ReportView
from vlmhb.report.exports import records_table
from vlmhb.report.prompts import GROUPS, Best, PromptComparison, prompt_comparisons
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
        found = prompt_comparisons(view)
        if not found:
            return None
        made = [(one.asker, [_table(view, one, column) for column in GROUPS]) for one in found]
        blocks = [{"name": name, "tables": some} for name, some in made]
        note = view.text("prompts.note")
        html = template("analysis.html.j2", blocks=blocks) + template("tables.html.j2", tables=[], notes=[note])
        tables = [table for _, some in made for table in some if table]
        markdown = "\n".join(f"**{markdown_text(table.caption)}**\n\n{table.markdown()}" for table in tables)
        return Fragment(html=html, markdown=f"{markdown}\n{markdown_text(note)}\n")

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


def _table(view: ReportView, comparison: PromptComparison, column: str) -> Table | None:
    """The best prompts for each value of a column, after those for all rows; None where it has one value."""
    lines = [best for best in comparison.best if best.column in ("", column)]
    if len(lines) == 1 and column != GROUPS[0]:
        return None
    metric = view.metrics[comparison.metric].title
    caption = view.text("prompts.caption", label=comparison.asker, dataset=comparison.dataset, metric=metric)
    names = ("rows", "best", "mean", "second", "lead", "p", "verdict")
    header = [view.text(f"word.{column}"), *(view.text(f"prompts.{name}") for name in names)]
    rows = [_line(view, comparison, best) for best in lines]
    return Table(caption, header, rows, frozenset((1, 3, 5, 6)), sortable=False)


def _line(view: ReportView, comparison: PromptComparison, best: Best) -> list[Cell]:
    group = best.group or view.text("word.unnamed")
    sign = "" if best.lead.difference < 0 else "+"
    span = best.lead.interval
    hint = f"[{figure(span.low)}, {figure(span.high)}]" if span else ""
    return [
        Cell(group if best.column else view.text("word.all")),
        count_cell(best.rows),
        Cell(comparison.name(view, best.best)),
        number_cell(view, best.mean, best.interval),
        Cell(comparison.name(view, best.second)),
        Cell(f"{sign}{figure(best.lead.difference)}", hint=hint),
        Cell(f"{best.p:.3f}" if best.p >= 0.001 else "< 0.001"),
        Cell(view.text("prompts.sure" if best.sure else "prompts.unsure")),
    ]


def best_prompts(view: ReportView, comparison: PromptComparison) -> list[str]:
    """The best prompts over all rows, and for which question types each is best, in sentences."""
    overall, *groups = comparison.best
    values = {"label": comparison.asker, "metric": view.metrics[comparison.metric].title}
    span = overall.interval
    values["best"] = comparison.name(view, overall.best)
    values["value"] = figure(overall.mean)
    values["range"] = f"{figure(span.low)} … {figure(span.high)}" if span else view.text("word.no_interval")
    values["second"] = comparison.name(view, overall.second)
    sentences = [view.text("prompts.ahead" if overall.sure else "prompts.not_ahead", **values)]
    types: dict[str, list[str]] = {}
    for best in groups:
        if best.column == "question_type":
            name = f"{best.group or view.text('word.unnamed')}{'*' if best.sure else ''}"
            types.setdefault(comparison.name(view, best.best), []).append(name)
    if types:
        said = "; ".join(f"{prompts} — {', '.join(names)}" for prompts, names in types.items())
        sentences.append(view.text("prompts.by_type", types=said))
        if "*" in said:
            sentences[-1] += f" {view.text('prompts.star')}"
    return sentences
