"""Metric tables as people see them on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlmhb.run.export import JobTables, Summary

MOST_GROUPS = 12
_COUNTS = ("count", "errors", "missing")


def print_summary(summary: Summary) -> None:
    """Print one table: every job, its document types (when they are few) and its total."""
    from rich.console import Console
    from rich.table import Table

    metrics = list(dict.fromkeys(name for job in summary.jobs for name in job.job["metrics"]))
    table = Table(title="Means over the answered rows; errors and missing rows are counted beside them")
    prompts = {job.job.get("prompts", "") for job in summary.jobs}
    several = len(prompts) > 1
    for name in ("config row", "dataset", "model", "backend", *(["prompts"] if several else []), "document type"):
        table.add_column(name)
    for name in ("rows", "errors", "missing"):
        table.add_column(name, justify="right")
    for name in metrics:
        table.add_column(name, justify="right")
    for job in summary.jobs:
        for label, row in _lines(job):
            front = [
                str(job.job["config_row"]),
                *(job.job[name] for name in ("dataset", "model_name", "backend")),
                *([job.job.get("prompts") or "(the dataset's)"] if several else []),
                label,
            ]
            counts = [str(row[name]) for name in _COUNTS]
            table.add_row(*front, *counts, *(_number(row.get(f"{name}_mean")) for name in metrics))
        table.add_section()
    width = None if sys.stdout.isatty() else 160
    Console(width=width, highlight=False, markup=False).print(table)


def _lines(job: JobTables) -> list[tuple[str, dict[str, Any]]]:
    types = job.tables.get("by_doc_type", [])
    lines = [(row["doc_class"] or "(none)", row) for row in types] if len(types) <= MOST_GROUPS else []
    return lines + [("all", row) for row in job.tables.get("general", [])]


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.4f}"
