"""``vlmhb doctor --matrix``: the probe over all families, and the page that says what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from vlmhb.engines import Engines


def survey(
    engines: Engines, backends: Sequence[str], families: tuple[str, ...], out: Path, *, fresh: bool, as_json: bool
) -> None:
    """Measure what is not measured yet, and write the page and, beside it, the cells as JSON.

    Args:
        engines: knows the engines.
        backends: those to measure, beside the reference.
        families: names of rows; empty for all.
        out: the page; its name with ``.json`` holds the cells.
        fresh: measure again what was measured.
        as_json: print the cells for programs.

    Raises:
        VlmhbError: there is no such family, or the reference is not there.
    """
    from vlmhb.cli.options import print_json
    from vlmhb.doctor.families import rows
    from vlmhb.doctor.matrix import Matrix, Survey
    from vlmhb.doctor.page import page

    wanted = rows(families)
    matrix = Matrix(out.with_suffix(".json"))
    here = [name for name in backends if _is_there(engines, name)]
    try:
        Survey(engines, matrix, wanted, fresh, lambda text: click.echo(text, err=True)).run(here)
    finally:
        cells = list(matrix.cells.values())
        if cells:
            out.write_text(page(rows(), cells), encoding="utf-8")
    if as_json:
        print_json(cells)
    else:
        click.echo(f"{len(cells)} cells: {out}")


def _is_there(engines: Engines, name: str) -> bool:
    problem = engines.backend_problem(name) if name in engines.backend_names() else "it is not installed"
    if problem:
        click.echo(f"{name} is left out: {problem}", err=True)
    return problem is None
