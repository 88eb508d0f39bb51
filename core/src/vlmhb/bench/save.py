"""The result as files: ``bench.json`` with everything, ``bench.html`` to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from vlmhb.bench.figures import Figures
from vlmhb.bench.result import Bench, EngineRecord
from vlmhb.run.folder import RunFolder

SHORT = 2.0
"""Seconds below which a repeat says little."""
MOST_NAMED = 5
"""Most requests with another answer that are named."""


def save(bench: Bench, found: Sequence[Figures], home: RunFolder) -> Path:
    """Write both files into a folder; returns the page.

    Raises:
        RunError: they cannot be written.
    """
    from vlmhb.bench.page import page

    text = msgspec.json.format(msgspec.json.encode(bench), indent=1).decode()
    home.replace_text(home.path / "bench.json", text + "\n")
    home.replace_text(home.path / "bench.html", page(bench, found))
    return home.path / "bench.html"


def notes(bench: Bench, found: Sequence[Figures]) -> list[str]:
    """What a reader of the figures must know, in sentences."""
    sentences = [_order(bench)]
    if len(bench.engines) > 1:
        sentences.append(f"speed-up and equal answers: against {bench.engines[0].name}")
    if bench.repeats > 1:
        sentences.append(f"[low, high]: 95 % interval over the {bench.repeats} repeats")
    shortest = min((one.seconds for engine in bench.engines for one in engine.passes), default=SHORT)
    if shortest < SHORT:
        sentences.append(
            f"a repeat took {shortest:.1f} s only: more requests or repeats would make the intervals narrow"
        )
    for engine in bench.engines:
        if engine.problem:
            sentences.append(f"{engine.name} was not measured to the end: {engine.problem}")
        if first := engine.facts.get("time_to_first_token"):
            sentences.append(f"{engine.name}: the time to first token is {first}")
        sentences += [f"{engine.name}: {hint}" for hint in engine.facts.get("hints", ())]
    sentences += [_memory(bench)] if _memory(bench) else []
    for engine in bench.engines[1:]:
        sentences += _unequal(engine, bench.engines[0].name, [f for f in found if f.engine == engine.name])
    sentences += _failures(bench)
    return list(dict.fromkeys(sentences))


def _order(bench: Bench) -> str:
    if len(bench.engines) < 2:
        return "one engine"
    if bench.order == "alternating":
        return "the engines were loaded side by side and took turns, repeat by repeat"
    return f"one engine after another: {bench.order_reason}"


def _memory(bench: Bench) -> str:
    seen = next((engine.memory for engine in bench.engines if engine.memory), None)
    if seen is None:
        return ""
    counted = "shared pages counted once" if seen.kind == "pss" else "pages shared by processes counted for each"
    return f"memory: of the worker and everything below it, {counted}, looked at every {seen.interval:g} s"


def _unequal(engine: EngineRecord, first: str, found: Sequence[Figures]) -> list[str]:
    """That an engine gave other answers, to which requests, and what may be the reason."""
    ids = list(dict.fromkeys(id for figures in found for id in figures.unequal))
    if not ids:
        return []
    count = sum((figures.compared or 0) - (figures.equal or 0) for figures in found)
    named = ", ".join(ids[:MOST_NAMED]) + (", ..." if len(ids) > MOST_NAMED else "")
    dtype = engine.facts.get("dtype")
    rounded = (
        f" (rounding in {dtype} can do that; -o dtype=float32 shows the rest)" if dtype not in (None, "float32") else ""
    )
    return [
        f"{engine.name}: {count} answers are not those of {first}, to requests {named}: its speed is not for quite the "
        f"same work{rounded}"
    ]


def _failures(bench: Bench) -> list[str]:
    found: dict[str, int] = {}
    for engine in bench.engines:
        for timing in (timing for one in engine.passes for timing in one.requests):
            if timing.error:
                text = f"{engine.name}: no answer: {timing.error.splitlines()[0]}"
                found[text] = found.get(text, 0) + 1
    return [f"{text} ({count} times)" for text, count in found.items()]
