"""``bench.html``: the figures as tables, and latency against throughput as a plot."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vlmhb.bench.arrivals import AT_ONCE
from vlmhb.bench.figures import Figures
from vlmhb.bench.result import Bench
from vlmhb.bench.tables import engines_table, number, sweep_table
from vlmhb.report.plot import Point, scatter
from vlmhb.report.render import Cell, Table, asset, markdown_text, template
from vlmhb.report.texts import Texts


class Part(NamedTuple):
    """What is told under one heading: a plot where there is one, tables, and sentences."""

    name: str
    title: str
    plot: Any
    tables: Sequence[Table]
    lines: Sequence[str]

    def html(self) -> Any:
        """As markup."""
        from markupsafe import Markup

        figure = Markup("<figure>{}</figure>").format(self.plot) if self.plot else Markup("")
        return figure + template("tables.html.j2", tables=self.tables, notes=self.lines)

    def markdown(self) -> str:
        """The tables and sentences for Markdown."""
        tables = "\n".join(table.markdown() for table in self.tables)
        return tables + "".join(f"\n- {markdown_text(line)}" for line in self.lines) + "\n"


def page(bench: Bench, found: Sequence[Figures]) -> str:
    """The whole page, which opens offline."""
    from markupsafe import Markup

    text = Texts("en")
    shown = [{"name": p.name, "title": p.title, "html": p.html(), "files": ()} for p in parts(bench, found)]
    return template(
        "page.html.j2",
        language="en",
        title=heading(bench),
        parts=shown,
        style=Markup(asset("style.css")),  # our own files
        scripts=[Markup(asset("page.js"))],
        texts=Markup("{}"),
        viewer=False,
        made=text("page.made", version=bench.vlmhb, date=bench.made_at),
        text=text,
    )


def heading(bench: Bench) -> str:
    """The model and the engines."""
    return f"{bench.model}: {', '.join(engine.name for engine in bench.engines)}"


def parts(bench: Bench, found: Sequence[Figures]) -> Iterator[Part]:
    """The figures, and how latency grows with throughput where that was measured."""
    from vlmhb.bench.save import notes

    about = [
        bench.workload,
        f"at most {bench.max_tokens} tokens an answer, greedy; {bench.repeats} repeats",
        f"{bench.machine.get('processor')}, {bench.machine.get('cores')} cores, {bench.machine.get('system')}",
        *(f"{engine.name}: {engine.engine} {engine.engine_version}" for engine in bench.engines),
        *notes(bench, found),
    ]
    tables = [_table("All requests at once", engines_table(bench, found))]
    yield Part("figures", "Figures", None, tables, about)
    if plot := _plot(found):
        swept = sweep_table(found)
        tables = [_table("Ways of requests to come", _numbered(swept, found))] if swept else []
        yield Part("latency", "Latency and throughput", plot, tables, ())


def _table(caption: str, lines: Sequence[Sequence[str]]) -> Table:
    header, *body = lines
    return Table(caption, header, [[Cell(cell) for cell in line] for line in body], sortable=False)


def _numbered(lines: Sequence[Sequence[str]], found: Sequence[Figures]) -> list[list[str]]:
    """The sweep's lines with the numbers that their points have in the plot."""
    header, *body = lines
    numbers = itertools.count(1)
    marks = [str(next(numbers)) if f.requests_per_second is not None else "" for f in found]
    return [["point", *header], *([mark, *line] for mark, line in zip(marks, body, strict=True))]


def _plot(found: Sequence[Figures]) -> Any:
    """Each engine's latency over its throughput, a line along each sweep; None without figures."""
    points = [
        Point(
            f"{f.engine}, {f.arrivals}",
            f.requests_per_second.value,
            f.latency.p50 or 0.0,
            f.latency.p50 or 0.0,
            f.latency.p90 or 0.0,
            "" if f.arrivals == AT_ONCE else f"{f.engine} {f.arrivals.split()[0]}",
        )
        for f in found
        if f.requests_per_second is not None
    ]
    if not points:
        return None
    said = "; ".join(f"{p.label}: {number(p.x)} requests/s, median latency {number(p.y)} s" for p in points)
    return scatter(points, "requests/s", "latency, s (median to 90 %)", f"Latency over throughput. {said}.")
