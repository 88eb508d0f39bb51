"""Engines beside each other: one column each, for runs that ask them the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars
    from rich.table import Table

    from vlmhb.contract.report import ReportEntry, ReportView
    from vlmhb.engines import Engines

WIDTH = 160
"""Of the table when it does not go to a terminal."""


def print_columns(run: Path, registry: Engines, metric: str) -> None:
    """Print a metric's means by document type, equal answers and speed of every engine of a run.

    Args:
        run: folder of a run whose jobs differ in their backend only.
        registry: where metrics are found.
        metric: one that all jobs have.
    """
    import sys

    from rich.console import Console

    from vlmhb.report.load import load_run
    from vlmhb.report.view import RunsView

    view = RunsView([load_run(run, registry)], registry.metrics(), run, "en")
    Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False, markup=False).print(_table(view, metric))


def _table(view: ReportView, metric: str) -> Table:
    from rich.table import Table

    entries = list(view.entries)
    table = Table(title="The engines beside each other")
    table.add_column("")
    for entry in entries:
        table.add_column(entry.backend, justify="right")
    frames = [view.rows(entry) for entry in entries]
    for name in frames[0]["doc_class"].unique(maintain_order=True):
        table.add_row(f"{metric}: {name}", *(_mean(frame, metric, name) for frame in frames))
    table.add_row(f"{metric}: all", *(_mean(frame, metric) for frame in frames), end_section=True)
    table.add_row(f"answers equal to those of {entries[0].backend}", *_equal(view, entries))
    table.add_row("answers a second", *(_speed(frame) for frame in frames))
    return table


def _mean(rows: polars.DataFrame, metric: str, doc_class: str | None = None) -> str:
    chosen = rows if doc_class is None else rows.filter(rows["doc_class"] == doc_class)
    mean = chosen.select(metric).mean().item()
    return "n/a" if mean is None else f"{mean:.4f}"


def _equal(view: ReportView, entries: Sequence[ReportEntry]) -> list[str]:
    answers = [dict(view.texts(entry, view.rows(entry)["row"].to_list())["row", "answer"].rows()) for entry in entries]
    asked = [row for row, answer in answers[0].items() if answer is not None]
    return [f"{sum(other.get(row) == answers[0][row] for row in asked)} of {len(asked)}" for other in answers]


def _speed(rows: polars.DataFrame) -> str:
    from vlmhb.report.sections.speed import throughput

    found = throughput(rows).answers
    return "n/a" if found is None else f"{found:.1f}"
