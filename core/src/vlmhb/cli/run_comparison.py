"""What ``vlmhb compare RUN_A RUN_B`` prints and writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vlmhb.cli.options import print_json
from vlmhb.cli.progress import counted

if TYPE_CHECKING:
    from vlmhb.compare.runs import RunComparison

COLUMNS = (
    *("dataset", "first", "second", "metric", "group", "rows", "pages", "first_mean", "second_mean", "difference"),
    *("low", "high", "p", "p_holm", "only_first", "only_second", "mcnemar_p", "detectable"),
)


def compare_runs_command(first: str, second: str, group_by: str | None, out: Path | None, as_json: bool) -> None:
    """Compare two runs and show what was found."""
    from vlmhb.compare.runs import compare_runs
    from vlmhb.discovery.registry import Registry

    found = compare_runs(first, second, Registry(), group_by)
    if out is not None:
        _write(out, found)
    if as_json:
        print_json(found)
        return
    for comparison in found:
        _print(comparison)
    if out is not None:
        click.echo(f"Table: {out / 'differences.csv'}")


def _write(folder: Path, found: Sequence[RunComparison]) -> None:
    from vlmhb.data.tables import write_table

    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for comparison in found:
        front = (comparison.dataset, comparison.first, comparison.second)
        for one in comparison.differences:
            values = (one.metric, one.group, one.rows, one.pages, one.first, one.second, one.difference)
            tests = (
                one.low,
                one.high,
                one.p,
                one.p_holm,
                one.only_first,
                one.only_second,
                one.mcnemar_p,
                one.detectable,
            )
            lines.append([*front, *(_cell(value) for value in (*values, *tests))])
    write_table(folder / "differences.csv", COLUMNS, lines)


def _cell(value: float | int | str | None) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _print(found: RunComparison) -> None:
    click.echo(f"{found.dataset}\n  first:  {found.first}\n  second: {found.second}")
    click.echo(f"  {counted(found.rows, 'row')} that both answered" + _left_out(found))
    click.echo(f"  the same text in {found.same_text}" + _tokens(found))
    for note in found.notes:
        click.echo(f"  Note: {note}")
    if not found.differences:
        return
    lines = [("metric", "rows of", "rows", "first", "second", "difference", "95 % interval", "p (Holm)", "detectable")]
    for one in found.differences:
        span = "n/a" if one.low is None or one.high is None else f"{one.low:+.4f} … {one.high:+.4f}"
        detectable = "n/a" if one.detectable is None else f"{one.detectable:.4f}"
        numbers = (f"{one.first:.4f}", f"{one.second:.4f}", f"{one.difference:+.4f}")
        lines.append((one.metric, one.group, str(one.rows), *numbers, span, f"{one.p_holm:.4f}", detectable))
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    for line in lines:
        texts = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        figures = tuple(cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True))
        click.echo("  " + "  ".join([*texts, *figures]))
    for one in found.differences:
        if one.group == "all" and one.mcnemar_p is not None:
            click.echo(
                f"  {one.metric}: right in the first only {one.only_first}, in the second only {one.only_second}; "
                f"McNemar p = {one.mcnemar_p:.4f}"
            )


def _left_out(found: RunComparison) -> str:
    counts = {"first": found.only_first_answered, "second": found.only_second_answered}
    parts = [f"{count} that only the {name} answered" for name, count in counts.items() if count]
    return f"; left out: {' and '.join(parts)}" if parts else ""


def _tokens(found: RunComparison) -> str:
    if not found.with_tokens:
        return ""
    where = "" if found.first_token is None else f"; where they differ, first at token {found.first_token:g} (median)"
    return f", the same tokens in {found.same_tokens} of {found.with_tokens}{where}"
