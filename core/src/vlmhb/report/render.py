"""From values to fragments: numbers, tables in HTML and Markdown, templates that escape everything."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from vlmhb.contract.report import ReportView

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from vlmhb.contract.metric import Metric
    from vlmhb.stats.interval import Interval


class Cell(NamedTuple):
    """One cell of a table.

    Attributes:
        text: what is shown, as plain text.
        sort: what the column is sorted by; None for the text, or, in a column of numbers, for "no value".
        heat: 0 (good) to 1 (bad) colours the cell.
        href: where the text leads.
        hint: shown beside the text in small letters.
    """

    text: str
    sort: float | None = None
    heat: float | None = None
    href: str | None = None
    hint: str = ""


class Table(NamedTuple):
    """A table; ``numeric`` holds the places of the columns that are numbers."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: frozenset[int] = frozenset()
    sortable: bool = True

    def html(self) -> Markup:
        """The table as markup, every text escaped."""
        return template("table.html.j2", table=self)

    def markdown(self) -> str:
        """The table for ``report.md``."""
        lines = [self.header, ["--:" if at in self.numeric else "---" for at in range(len(self.header))]]
        lines += [[f"{cell.text} {cell.hint}".strip() for cell in row] for row in self.rows]
        body = [[cell if at == 1 else markdown_text(cell) for cell in line] for at, line in enumerate(lines)]
        return "\n".join("| " + " | ".join(line) + " |" for line in body) + "\n"


_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]|~#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})


def markdown_text(text: str) -> str:
    """A text for Markdown in which nothing is a mark, on one line."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    return shown.translate(_MARKDOWN)


def number_cell(view: ReportView, value: float | None, interval: Interval | None = None) -> Cell:
    """A metric's value, or "n/a", with its interval beside it."""
    if value is None:
        return Cell(view.text("word.none"))
    hint = f"[{figure(interval.low)}, {figure(interval.high)}]" if interval else ""
    return Cell(figure(value), sort=value, hint=hint)


def count_cell(value: int) -> Cell:
    """A count."""
    return Cell(f"{value:,}".replace(",", "\u202f"), sort=value)


def figure(value: float) -> str:
    """A metric's value with three digits after the point, fewer where it is large."""
    size = abs(value)
    return f"{value:.3f}" if size < 10 else f"{value:.2f}" if size < 100 else f"{value:,.1f}".replace(",", "\u202f")


def seconds(view: ReportView, value: float | None) -> str:
    """A time."""
    if value is None:
        return view.text("word.none")
    if value < 1:
        return f"{value * 1000:.3g} {view.text('word.ms')}"
    return f"{value:.3g} {view.text('word.s')}"


def heat(metric: Metric, value: float, most: float) -> float:
    """How bad a value is, from 0 to 1.

    Error rates have no upper end: the scale is value / (value + 0.3), which tells small rates apart and still tells
    2 from 7. A metric of which more is better is measured against its upper bound, else against ``most``.
    """
    if not metric.higher_is_better:
        return max(value, 0.0) / (max(value, 0.0) + 0.3)
    top = metric.bounds[1] if metric.bounds else max(most, 1e-9)
    return min(max(1 - value / top, 0.0), 1.0)


def row_link(dataset: str, row: int) -> str:
    """The address of a sample in the viewer."""
    from urllib.parse import quote

    return f"#row={quote(dataset, safe='')}/{row}"


def template(name: str, **values: Any) -> Markup:
    """Fill in a template of the report; autoescape is on."""
    from markupsafe import Markup

    return Markup(_environment().get_template(name).render(**values))


def asset(name: str) -> str:
    """The text of a file of the report, to be put inline."""
    from importlib import resources

    return resources.files("vlmhb.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
