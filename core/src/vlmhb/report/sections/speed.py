"""How fast the answers came, from the moments and times stored with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vlmhb.contract.report import Fragment, ReportEntry, ReportSection, ReportView
from vlmhb.report.exports import entry_columns, records_table
from vlmhb.report.render import Cell, Table, count_cell, markdown_text, seconds, template
from vlmhb.stats.speed import per_second, quantile, share_of

if TYPE_CHECKING:
    import polars


PAUSE = 10.0
"""Seconds with no request in the engine that are taken for a pause of the run, such as loading, and not counted."""
_TIMES = ("time_to_first_token", "time_per_output_token", "total_time", "queue_time")


class Throughput(NamedTuple):
    """Answers and output tokens a second, None where not measured, and how long the run stood still meanwhile."""

    answers: float | None
    tokens: float | None
    paused: float


def throughput(rows: polars.DataFrame) -> Throughput:
    """Answers / (last moment stored - first begin - pauses), and their output tokens likewise.

    An answer begins its total time before it was stored, so a batch that is stored at one moment has its span too. A
    pause is more than ``PAUSE`` seconds without any answer under way. Rows whose engine gave no times (answers made
    elsewhere) do not count.
    """
    import polars as pl

    timed = rows.filter((pl.col("status") == "ok") & pl.col("total_time").is_not_null())
    spans = timed.select((pl.col("answered_at") - pl.col("total_time")).alias("begin"), end="answered_at").sort("begin")
    if spans.is_empty():
        return Throughput(None, None, 0.0)
    begin, ended = spans["begin"], spans["end"].cum_max()
    idle = begin - ended.shift(1)
    paused = float(idle.filter(idle > PAUSE).sum())
    working = float(ended[-1] - begin[0]) - paused
    tokens = timed["output_tokens"]
    known = not tokens.null_count()
    return Throughput(
        per_second(len(timed), working), per_second(float(tokens.sum()), working) if known else None, paused
    )


class SpeedSection(ReportSection):
    """Medians, 90th and 99th percentiles of the times, and throughput; formulas as in ``vlmhb bench``."""

    name = "speed"
    place = 70

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("speed.title")

    def render(self, view: ReportView) -> Fragment:
        """One table; "n/a" where an engine does not measure a value."""
        import polars as pl

        none = view.text("word.none")
        many = len(view.datasets) > 1
        header = [view.text("word.label"), *([view.text("word.dataset")] if many else [])]
        header += [
            view.text(f"speed.{name}") for name in ("timed", *_TIMES, "answers", "tokens", "prompt", "output", "cached")
        ]
        lines, paused = [], 0.0
        for entry in view.entries:
            rows = view.rows(entry)
            rate = throughput(rows)
            paused = max(paused, rate.paused)
            line = [Cell(entry.label), *([Cell(entry.dataset)] if many else [])]
            line.append(count_cell(rows["total_time"].count()))
            line += [_percentiles(view, rows[name]) for name in _TIMES]
            line += [Cell(none if one is None else f"{one:.3g}", sort=one) for one in (rate.answers, rate.tokens)]
            for name in ("prompt_tokens", "output_tokens"):
                middle = quantile(rows[name].drop_nulls().to_list(), 0.5)
                line.append(Cell(none) if middle is None else Cell(f"{middle:.0f}", sort=middle))
            timed = rows.filter(pl.col("total_time").is_not_null())
            cached = share_of(timed["cached_tokens"].to_list(), timed["prompt_tokens"].to_list())
            line.append(Cell(none) if cached is None else Cell(f"{cached:.0%}", sort=cached))
            lines.append(line)
        table = Table(view.text("speed.caption"), header, lines, frozenset(range(1 + many, len(header))))
        notes = [view.text("speed.note")]
        if paused:
            notes.append(view.text("speed.paused", seconds=f"{paused:,.0f}"))
        return Fragment(
            html=template("tables.html.j2", tables=[table], notes=notes),
            markdown=table.markdown() + "\n" + markdown_text(" ".join(notes)) + "\n",
        )

    def tables(self, view: ReportView) -> dict[str, polars.DataFrame]:
        """One line an entry: seconds and rates as numbers."""
        return {"speed": records_table([_record(entry, view.rows(entry)) for entry in view.entries])}


def _record(entry: ReportEntry, rows: polars.DataFrame) -> dict[str, object]:
    rate = throughput(rows)
    times = {
        f"{name}_p{share:.0%}".rstrip("%"): quantile(rows[name].drop_nulls().to_list(), share)
        for name in _TIMES
        for share in (0.5, 0.9, 0.99)
    }
    rates = {"answers_per_second": rate.answers, "output_tokens_per_second": rate.tokens}
    return {**entry_columns(entry), "timed": rows["total_time"].count(), **times, **rates}


def _percentiles(view: ReportView, times: polars.Series) -> Cell:
    known = times.drop_nulls().to_list()
    middle = quantile(known, 0.5)
    if middle is None:
        return Cell(view.text("word.none"))
    high = (f"p{share:.0%}".rstrip("%") + f" {seconds(view, quantile(known, share))}" for share in (0.9, 0.99))
    return Cell(seconds(view, middle), sort=middle, hint="\n".join(high))
