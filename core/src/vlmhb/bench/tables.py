"""The figures as tables of texts, for the terminal, the page and the CSV file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vlmhb.bench.arrivals import AT_ONCE
from vlmhb.bench.figures import Figures, Spread
from vlmhb.bench.result import Bench, EngineRecord
from vlmhb.stats.speed import Estimate

NONE = "-"


class Line(NamedTuple):
    """One line of the table of engines: a title, and what stands there for an engine."""

    title: str
    text: Callable[[EngineRecord, Figures | None], str]


def number(value: float | None) -> str:
    """Three digits, more for large numbers."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def estimate(value: Estimate | None) -> str:
    """A value and its interval."""
    if value is None:
        return NONE
    return number(value.value) + (f" [{number(value.low)}, {number(value.high)}]" if value.low is not None else "")


def spread(value: Spread, scale: float = 1.0) -> str:
    """Three quantiles, each times ``scale``."""
    parts = (value.p50, value.p90, value.p99)
    return NONE if value.p50 is None else " / ".join(number(None if p is None else p * scale) for p in parts)


def equal(figures: Figures) -> str:
    """How many answers are the first engine's, with a mark where not all are."""
    if not figures.compared or figures.equal is None:
        return NONE
    return f"{figures.equal} of {figures.compared}" + (" (!)" if figures.equal < figures.compared else "")


LINES = (
    Line("load time, s", lambda engine, _: number(engine.load_seconds)),
    Line("requests/s", lambda _, f: estimate(f.requests_per_second) if f else NONE),
    Line("speed-up", lambda _, f: estimate(f.speedup) if f else NONE),
    Line("output tokens/s", lambda _, f: estimate(f.output_tokens_per_second) if f else NONE),
    Line("prompt tokens/s", lambda _, f: estimate(f.prompt_tokens_per_second) if f else NONE),
    Line("time to first token p50 / p90 / p99, s", lambda _, f: spread(f.time_to_first_token) if f else NONE),
    Line("time per output token p50 / p90 / p99, ms", lambda _, f: spread(f.time_per_output_token, 1e3) if f else NONE),
    Line("latency p50 / p90 / p99, s", lambda _, f: spread(f.latency) if f else NONE),
    Line("peak memory, MiB", lambda engine, _: _mebibytes(engine.memory.host if engine.memory else None)),
    Line("peak GPU memory, MiB", lambda engine, _: _mebibytes(engine.memory.gpu if engine.memory else None)),
    Line("KV cache, tokens", lambda engine, _: number(engine.facts.get("kv_cache_tokens"))),
    Line("prompt tokens from cache", lambda _, f: NONE if f is None or f.cached is None else f"{f.cached:.0%}"),
    Line("output tokens a repeat", lambda _, f: number(f.output_tokens) if f else NONE),
    Line("answered", lambda _, f: f"{f.answered} of {f.requests}" if f else NONE),
    Line("equal answers", lambda _, f: equal(f) if f else NONE),
)


def engines_table(bench: Bench, found: Sequence[Figures]) -> list[list[str]]:
    """What every engine did with all requests at once: a header, then one line a figure."""
    at_once = {figures.engine: figures for figures in found if figures.arrivals == AT_ONCE}
    measured = [engine for engine in bench.engines if engine.name in at_once or engine.load_seconds is not None]
    body = [[line.title, *(line.text(engine, at_once.get(engine.name)) for engine in measured)] for line in LINES]
    return [["", *(engine.name for engine in measured)], *body]


def sweep_table(found: Sequence[Figures]) -> list[list[str]]:
    """Every way of requests to come: a header, then one line a way and engine; empty without a sweep."""
    if len({figures.arrivals for figures in found}) < 2:
        return []
    titles = ["requests come", "engine", "requests/s", "latency p50 / p90 / p99, s", "first token p50 / p90 / p99, s"]
    body = [
        [f.arrivals, f.engine, estimate(f.requests_per_second), spread(f.latency), spread(f.time_to_first_token)]
        for f in found
    ]
    return [[*titles, "equal answers"], *([*line, equal(f)] for line, f in zip(body, found, strict=True))]


def aligned(table: Sequence[Sequence[str]]) -> str:
    """A table for the terminal."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table)
    return "\n".join(line.rstrip() for line in lines)


def csv_rows(bench: Bench, found: Sequence[Figures]) -> list[dict[str, Any]]:
    """One record an engine and way of requests to come; an engine that did not load has one with its problem."""
    engines = {engine.name: engine for engine in bench.engines}
    rows = [_record(engines[figures.engine], figures) for figures in found]
    missing = [engine for engine in bench.engines if all(f.engine != engine.name for f in found)]
    return [*rows, *(_record(engine, None) for engine in missing)]


def write_csv(path: Path, bench: Bench, found: Sequence[Figures]) -> None:
    """Write :func:`csv_rows`."""
    from vlmhb.data.tables import write_table

    path.parent.mkdir(parents=True, exist_ok=True)
    rows = csv_rows(bench, found)
    write_table(path, COLUMNS, [[row.get(name) for name in COLUMNS] for row in rows])


_ESTIMATES = ("requests_per_second", "speedup", "output_tokens_per_second", "prompt_tokens_per_second")
_SPREADS = ("time_to_first_token", "time_per_output_token", "latency")
_PARTS = ("p50", "p90", "p99")
COLUMNS = (
    "engine",
    "engine_version",
    "arrivals",
    "requests",
    "answered",
    "equal",
    "compared",
    *(f"{name}{part}" for name in _ESTIMATES for part in ("", "_low", "_high")),
    *(f"{name}_{part}" for name in _SPREADS for part in _PARTS),
    "output_tokens",
    "cached",
    "load_seconds",
    "peak_memory_bytes",
    "peak_gpu_memory_bytes",
    "kv_cache_tokens",
    "problem",
)
"""Columns of the CSV file."""


def _record(engine: EngineRecord, found: Figures | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "engine": engine.name,
        "engine_version": engine.engine_version,
        "load_seconds": engine.load_seconds,
        "peak_memory_bytes": engine.memory.host if engine.memory else None,
        "peak_gpu_memory_bytes": engine.memory.gpu if engine.memory else None,
        "kv_cache_tokens": engine.facts.get("kv_cache_tokens"),
        "problem": engine.problem,
    }
    if found is None:
        return row
    for name in ("arrivals", "requests", "answered", "equal", "compared", "output_tokens", "cached"):
        row[name] = getattr(found, name)
    for name in _ESTIMATES:
        value: Estimate | None = getattr(found, name)
        row[name], row[f"{name}_low"], row[f"{name}_high"] = value or (None, None, None)
    for name in _SPREADS:
        row |= {f"{name}_{part}": getattr(getattr(found, name), part) for part in _PARTS}
    return row


def _mebibytes(size: int | None) -> str:
    return NONE if size is None else f"{size / (1 << 20):,.0f}"
