"""From the times of requests to the figures of a table; the formulas are in :mod:`vlmhb.stats.speed`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from vlmhb.bench.arrivals import Arrivals
from vlmhb.bench.result import Bench, EngineRecord, Pass, Timing
from vlmhb.stats.speed import (
    Estimate,
    mean_over_repeats,
    per_second,
    quantile,
    ratio_of_groups,
    ratio_of_pairs,
    share_of,
)

SHARES = (0.5, 0.9, 0.99)


class Spread(msgspec.Struct, frozen=True):
    """Quantiles of a time over all requests of all repeats, in seconds; None where no request has that time."""

    p50: float | None
    p90: float | None
    p99: float | None


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What one engine did under one way of requests to come; None is "not measured".

    Attributes:
        engine: its name.
        arrivals: how the requests came, in words.
        requests, answered: over all repeats.
        equal: of the answers that the first engine gave too, how many have its token ids; None for the first engine.
        compared: how many that are.
        unequal: ids of requests with another answer, each once.
        requests_per_second, output_tokens_per_second, prompt_tokens_per_second: over the repeats.
        speedup: requests a second, as times those of the first engine; None for the first engine.
        time_to_first_token, time_per_output_token, latency: spreads.
        cached: share of prompt tokens that came from the engine's cache.
        output_tokens: in one repeat, on average.
    """

    engine: str
    arrivals: str
    requests: int
    answered: int
    equal: int | None
    compared: int | None
    unequal: tuple[str, ...]
    requests_per_second: Estimate | None
    output_tokens_per_second: Estimate | None
    prompt_tokens_per_second: Estimate | None
    speedup: Estimate | None
    time_to_first_token: Spread
    time_per_output_token: Spread
    latency: Spread
    cached: float | None
    output_tokens: float | None


def figures_of(bench: Bench) -> list[Figures]:
    """The figures of every engine under each way of requests to come, in the order measured."""
    ways = list(dict.fromkeys(one.arrivals for engine in bench.engines for one in engine.passes))
    first = bench.engines[0]
    paired = bench.order == "alternating"
    return [
        _figures(engine, first, arrivals, paired)
        for arrivals in ways
        for engine in bench.engines
        if passes_of(engine, arrivals)
    ]


def passes_of(engine: EngineRecord, arrivals: Arrivals) -> list[Pass]:
    """An engine's repeats of one way, in their order."""
    return sorted((one for one in engine.passes if one.arrivals == arrivals), key=lambda one: one.repeat)


def _figures(engine: EngineRecord, first: EngineRecord, arrivals: Arrivals, paired: bool) -> Figures:
    passes, others = passes_of(engine, arrivals), passes_of(first, arrivals)
    timings = [timing for one in passes for timing in one.requests]
    answered = [timing for timing in timings if timing.error is None]
    is_first = engine.name == first.name
    compared, unequal = _compare(passes, others)
    return Figures(
        engine=engine.name,
        arrivals=str(arrivals),
        requests=len(timings),
        answered=len(answered),
        equal=None if is_first else compared - len(unequal),
        compared=None if is_first else compared,
        unequal=() if is_first else tuple(dict.fromkeys(unequal)),
        requests_per_second=mean_over_repeats(rates(passes)),
        output_tokens_per_second=_token_rate(passes, lambda timing: timing.output_tokens),
        prompt_tokens_per_second=_token_rate(passes, lambda timing: timing.prompt_tokens),
        speedup=None if is_first else _speedup(passes, others, paired),
        time_to_first_token=spread(timing.time_to_first_token for timing in answered),
        time_per_output_token=spread(timing.time_per_output_token for timing in answered),
        latency=spread(timing.ended - timing.due for timing in answered),
        cached=share_of([t.cached_tokens for t in answered], [t.prompt_tokens for t in answered]),
        output_tokens=sum(timing.output_tokens or 0 for timing in answered) / len(passes),
    )


def rates(passes: Sequence[Pass]) -> list[float]:
    """Answered requests a second, one value a repeat; empty when a repeat has none."""
    found = [per_second(sum(timing.error is None for timing in one.requests), one.seconds) for one in passes]
    return [rate for rate in found if rate] if all(found) else []


def spread(values: Iterable[float | None]) -> Spread:
    """Quantiles of the values that there are."""
    known = [value for value in values if value is not None]
    return Spread(*(quantile(known, share) for share in SHARES))


def _speedup(passes: Sequence[Pass], others: Sequence[Pass], paired: bool) -> Estimate | None:
    ours, theirs = rates(passes), rates(others)
    if paired and len(ours) == len(theirs):
        return ratio_of_pairs(ours, theirs)
    return ratio_of_groups(ours, theirs)


def _compare(passes: Sequence[Pass], others: Sequence[Pass]) -> tuple[int, list[str]]:
    """How many requests both sides answered, and the ids of those with other tokens; repeat by repeat."""
    reference = {(one.repeat, t.id): t.output for one in others for t in one.requests if t.error is None}
    ours = {(one.repeat, t.id): t.output for one in passes for t in one.requests if t.error is None}
    both = reference.keys() & ours.keys()
    unequal = sorted(key for key in both if reference[key] != ours[key])
    return len(both), [id for _, id in unequal]


def _token_rate(passes: Sequence[Pass], count: Callable[[Timing], int | None]) -> Estimate | None:
    """Tokens of answered requests a second; None when the engine did not count them for each."""
    found = []
    for one in passes:
        tokens = [count(timing) for timing in one.requests if timing.error is None]
        if not tokens or None in tokens:
            return None
        found.append(per_second(sum(number or 0 for number in tokens), one.seconds) or 0.0)
    return mean_over_repeats(found)
