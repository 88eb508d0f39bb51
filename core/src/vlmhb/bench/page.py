"""``bench.html``: the figures as tables, and latency against throughput as a plot."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from vlmhb.bench.arrivals import AT_ONCE
from vlmhb.bench.figures import Figures
from vlmhb.bench.result import Bench
from vlmhb.bench.tables import engines_table, number, sweep_table
from vlmhb.report.plot import Point, scatter
from vlmhb.report.render import Cell, Table, asset, template
from vlmhb.report.texts import Texts


def page(bench: Bench, found: Sequence[Figures]) -> str:
    """The whole page, which opens offline."""
    from markupsafe import Markup

    from vlmhb.bench.save import notes

    text = Texts("en")
    about = [
        bench.workload,
        f"at most {bench.max_tokens} tokens an answer, greedy; {bench.repeats} repeats",
        f"{bench.machine.get('processor')}, {bench.machine.get('cores')} cores, {bench.machine.get('system')}",
        *(f"{engine.name}: {engine.engine} {engine.engine_version}" for engine in bench.engines),
        *notes(bench, found),
    ]
    tables = [_table("All requests at once", engines_table(bench, found))]
    parts = [{"name": "figures", "title": "Figures", "html": _fragment(tables, about), "files": ()}]
    if plot := _plot(found):
        swept = sweep_table(found)
        tables = [_table("Ways of requests to come", _numbered(swept, found))] if swept else []
        html = Markup("<figure>{}</figure>").format(plot) + _fragment(tables, [])
        parts.append({"name": "latency", "title": "Latency and throughput", "html": html, "files": ()})
    return template(
        "page.html.j2",
        language="en",
        title=f"{bench.model}: {', '.join(engine.name for engine in bench.engines)}",
        parts=parts,
        style=Markup(asset("style.css")),  # our own files
        scripts=[Markup(asset("page.js"))],
        texts=Markup("{}"),
        viewer=False,
        made=text("page.made", version=bench.vlmhb, date=bench.made_at),
        text=text,
    )


def _fragment(tables: Sequence[Table], lines: Sequence[str]) -> Any:
    return template("tables.html.j2", tables=tables, notes=lines)


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
