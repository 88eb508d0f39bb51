"""This result beside an earlier one: ratios with intervals, and what else has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from vlmhb.bench.figures import passes_of, rates
from vlmhb.bench.result import Bench, EngineRecord, Pass, Timing
from vlmhb.errors import ConfigError
from vlmhb.stats.speed import Estimate, quantile, ratio_of_groups


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One figure now as times what it was; below 1 is less. ``now`` and ``before`` are the figure's repeats."""

    engine: str
    arrivals: str
    figure: str
    ratio: Estimate | None
    now: tuple[float, ...]
    before: tuple[float, ...]


def _median(of: Callable[[Timing], float | None]) -> Callable[[Sequence[Pass]], list[float]]:
    def values(passes: Sequence[Pass]) -> list[float]:
        found = [[of(t) for t in one.requests if t.error is None] for one in passes]
        medians = [quantile([value for value in times if value is not None], 0.5) for times in found]
        return [median for median in medians if median is not None]

    return values


FIGURES: dict[str, Callable[[Sequence[Pass]], list[float]]] = {
    "requests/s": rates,
    "time to first token": _median(lambda timing: timing.time_to_first_token),
    "time per output token": _median(lambda timing: timing.time_per_output_token),
    "latency": _median(lambda timing: timing.ended - timing.due),
}
"""One value a repeat; of times the median of the repeat."""


def changes(now: Bench, before: Bench) -> list[Change]:
    """Every figure that both results have.

    Raises:
        ConfigError: the results are not about the same work.
    """
    if now.digest != before.digest:
        raise ConfigError(
            f"the earlier result is about other work ({before.workload}, at most {before.max_tokens} tokens; now "
            f"{now.workload}, at most {now.max_tokens} tokens): speeds of different work cannot be compared"
        )
    earlier = {engine.name: engine for engine in before.engines}
    shared = [(engine, earlier[engine.name]) for engine in now.engines if engine.name in earlier]
    return [change for pair in shared for change in _changes(*pair)]


def differences(now: Bench, before: Bench) -> list[str]:
    """What else is not as it was, in sentences: the model, the machine, versions, options, the order."""
    notes = []
    if now.fingerprint != before.fingerprint:
        notes.append(f"the model is another one: {now.model}, before {before.model}")
    for name in ("processor", "cores", "memory_bytes", "system"):
        ours, theirs = now.machine.get(name), before.machine.get(name)
        if ours != theirs:
            notes.append(f"the machine is another one: {name} {ours}, before {theirs}")
    for name in ("options", "order", "vlmhb"):
        ours, theirs = getattr(now, name), getattr(before, name)
        if ours != theirs:
            notes.append(f"{name} {_words(ours)}, before {_words(theirs)}")
    versions = {engine.name: engine.engine_version for engine in before.engines}
    notes += [
        f"{engine.engine} {engine.engine_version}, before {versions[engine.name]}"
        for engine in now.engines
        if engine.name in versions and versions[engine.name] != engine.engine_version
    ]
    return notes


def _changes(now: EngineRecord, before: EngineRecord) -> list[Change]:
    found = []
    for arrivals in dict.fromkeys(one.arrivals for one in now.passes):
        for name, values in FIGURES.items():
            ours, theirs = values(passes_of(now, arrivals)), values(passes_of(before, arrivals))
            if ours and theirs:
                found.append(
                    Change(
                        engine=now.name,
                        arrivals=str(arrivals),
                        figure=name,
                        ratio=ratio_of_groups(ours, theirs),
                        now=tuple(ours),
                        before=tuple(theirs),
                    )
                )
    return found


def _words(value: object) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
