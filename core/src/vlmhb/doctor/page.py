"""The compatibility matrix as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vlmhb.doctor.cells import Cell
from vlmhb.doctor.families import Row
from vlmhb.doctor.matrix import Measured
from vlmhb.doctor.probe import REFERENCE
from vlmhb.doctor.questions import COUNT, MAX_TOKENS

_NOT_MEASURED = "not measured"
_LONGEST = 60


def page(rows: Sequence[Row], cells: Sequence[Measured]) -> str:
    """The page.

    Args:
        rows: the families, in their order.
        cells: what was measured, in any order.
    """
    return "\n".join([*_head(cells), *_table(rows, cells), *_exceptions(rows, cells)]) + "\n"


def _head(cells: Sequence[Measured]) -> Iterator[str]:
    dates = sorted({entry.date for entry in cells})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "not yet"
    yield "# Which families run where"
    yield ""
    yield "<!-- written by `vlmhb doctor --matrix`; what is changed here by hand is lost -->"
    yield ""
    versions = ", ".join(sorted({entry.version for entry in cells})) or "none"
    yield f"Measured {span} on a CPU with {versions}."
    yield ""
    yield f"A row is a family: a tiny model of its architecture with random weights, asked {COUNT} questions without a"
    yield f"picture, with one and with two, {MAX_TOKENS} greedy tokens each, in float32. Its tokens on an engine are"
    yield f"compared with those of {REFERENCE}. `vlmhb doctor MODEL --probe` does the same for a model's folder."
    yield ""


def _table(rows: Sequence[Row], cells: Sequence[Measured]) -> Iterator[str]:
    names = _names(cells)
    known = {(entry.family, entry.cell.name): entry.cell for entry in cells}
    yield f"| family | class | {' | '.join(names)} |"
    yield f"| --- | --- |{' --- |' * len(names)}"
    for row in rows:
        found = [known.get((row.name, name)) for name in names]
        yield f"| {row.name} | `{row.architecture}` | {' | '.join(map(_cell, found))} |"
    yield ""


def _names(cells: Sequence[Measured]) -> list[str]:
    names = sorted({entry.cell.name for entry in cells})
    return sorted(names, key=lambda name: not name.startswith(f"{REFERENCE} "))


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return _NOT_MEASURED
    if cell.backend == REFERENCE and cell.outcome == "same tokens":
        return "answers"
    words = cell.words() if cell.outcome in ("near tie", "differs") else cell.outcome
    return _escaped(words if len(words) <= _LONGEST else cell.outcome)


def _exceptions(rows: Sequence[Row], cells: Sequence[Measured]) -> Iterator[str]:
    bad = [entry for entry in cells if entry.cell.outcome != "same tokens"]
    if not bad:
        return
    yield "## What is not the same, and why"
    yield ""
    for row in rows:
        for entry in (entry for entry in bad if entry.family == row.name):
            cell = entry.cell
            why = row.explained.get(cell.name, "")
            shown = f" Smallest question that shows it: {cell.unlike}." if cell.unlike else ""
            yield f"- **{row.name}, {cell.name}**: {_escaped(cell.words())}.{shown}{f' {why}' if why else ''}"
    yield ""


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").rstrip(".")
