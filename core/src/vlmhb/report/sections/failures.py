"""Rows without an answer, by reason, and answers that came but are odd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmhb.contract.report import Fragment, ReportEntry, ReportSection, ReportView
from vlmhb.report.render import Cell, Table, count_cell, markdown_text, row_link, template

if TYPE_CHECKING:
    import polars


_EXAMPLES = 3
_KNOWN = ("not_asked", "model", "image", "invalid_request", "out_of_memory", "too_long", "unsupported", "engine")


class FailuresSection(ReportSection):
    """A table of reasons with examples, and a table of remarkable answers."""

    name = "failures"
    place = 80

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("failures.title")

    def render(self, view: ReportView) -> Fragment:
        """Says so where there is nothing."""
        many = len(view.datasets) > 1
        front = [view.text("word.label"), *([view.text("word.dataset")] if many else [])]
        failed: list[list[Cell]] = []
        odd: list[list[Cell]] = []
        for entry in view.entries:
            start = [Cell(entry.label), *([Cell(entry.dataset)] if many else [])]
            failed += [[*start, *line] for line in self._reasons(view, entry)]
            odd += [[*start, *line] for line in self._odd(view, entry)]
        width = len(front)
        header = [*front, view.text("failures.reason"), view.text("word.count"), view.text("word.row")]
        notes, tables = [], []
        if failed:
            names = [*header, view.text("failures.message")]
            tables.append(Table(view.text("failures.caption"), names, failed, frozenset((width + 1,))))
        else:
            notes.append(view.text("failures.none"))
        if odd:
            tables.append(Table(view.text("failures.odd"), header, odd, frozenset((width + 1,))))
        markdown = "\n".join(table.markdown() for table in tables) or markdown_text(notes[0]) + "\n"
        return Fragment(html=template("tables.html.j2", tables=tables, notes=notes), markdown=markdown)

    def _reasons(self, view: ReportView, entry: ReportEntry) -> list[list[Cell]]:
        import polars as pl

        rows = view.rows(entry).filter(pl.col("status") != "ok")
        kinds = pl.when(pl.col("status") == "missing").then(pl.lit("missing")).otherwise(pl.col("error_kind"))
        lines = []
        for (kind,), group in rows.with_columns(kinds.fill_null("engine").alias("why")).group_by(
            "why", maintain_order=True
        ):
            examples = group["row"].head(_EXAMPLES).to_list()
            messages = dict.fromkeys(text for text in view.texts(entry, examples)["error"].to_list() if text)
            reason = view.text(f"failures.kind_{kind}") if kind in (*_KNOWN, "missing", "worker_died") else str(kind)
            lines.append([Cell(reason), count_cell(len(group)), _first(entry, group), Cell(" / ".join(messages))])
        return lines

    def _odd(self, view: ReportView, entry: ReportEntry) -> list[list[Cell]]:
        import polars as pl

        rows = view.rows(entry).filter(pl.col("status") == "ok")
        kinds = {
            "cut": pl.col("finish_reason") == "length",
            "unclosed": pl.col("flags").str.contains("thinking_unclosed", literal=True),
            "thinking": pl.col("flags").str.contains("thinking_removed", literal=True),
        }
        found = [(name, rows.filter(condition)) for name, condition in kinds.items()]
        return [
            [Cell(view.text(f"failures.{name}")), count_cell(len(some)), _first(entry, some)]
            for name, some in found
            if len(some)
        ]


def _first(entry: ReportEntry, rows: polars.DataFrame) -> Cell:
    row = rows["row"].item(0)
    return Cell(f"#{row}", href=row_link(entry.dataset, row), hint="…" if len(rows) > 1 else "")
