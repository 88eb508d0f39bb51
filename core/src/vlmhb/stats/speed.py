"""The formulas behind every figure of speed, in ``vlmhb bench`` and in the report alike.

Speeds are compared as ratios, and ratios are symmetric on the logarithmic scale: twice as fast is as far from equal as
half as fast. So repeats are averaged geometrically, and intervals are Student's t intervals of the mean logarithm. The
bootstrap of :mod:`vlmhb.stats.interval` needs more repeats than anybody waits for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance
from typing import NamedTuple

from vlmhb.stats.interval import student_quantile


class Estimate(NamedTuple):
    """A value over repeats with its interval; the ends are None where the repeats do not say (fewer than two)."""

    value: float
    low: float | None = None
    high: float | None = None


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value below which a share of ``values`` lies, linear between neighbours; None without values.

    With the values in order, x[0] to x[n-1], and h = share * (n - 1): x[floor(h)] + (h - floor(h)) * (x[floor(h) + 1] -
    x[floor(h)]) (type 7 of Hyndman, Fan, 1996, the default of numpy).
    """
    if not values:
        return None
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def per_second(count: float, seconds: float) -> float | None:
    """``count / seconds``; None when no time has passed."""
    return count / seconds if seconds > 0 else None


def share_of(parts: Sequence[float | None], wholes: Sequence[float | None]) -> float | None:
    """``sum(parts) / sum(wholes)``, such as cached tokens of prompt tokens; None when one of them is not known."""
    known = [(part, whole) for part, whole in zip(parts, wholes, strict=True) if part is not None and whole is not None]
    total = sum(whole for _, whole in known)
    return sum(part for part, _ in known) / total if total > 0 and len(known) == len(parts) else None


def mean_over_repeats(values: Sequence[float], confidence: float = 0.95) -> Estimate | None:
    """The geometric mean of one positive value a repeat, with its interval; None without repeats.

    exp(m ± t s / sqrt(n)), m and s the mean and the standard deviation of the logarithms, t the quantile of Student's
    distribution with n - 1 degrees of freedom.
    """
    if not values or min(values) <= 0:
        return None
    logs = [math.log(value) for value in values]
    if len(logs) < 2:
        return Estimate(values[0])
    return _estimate(fmean(logs), math.sqrt(variance(logs) / len(logs)), len(logs) - 1, confidence)


def ratio_of_pairs(ours: Sequence[float], theirs: Sequence[float], confidence: float = 0.95) -> Estimate | None:
    """How many times as much: :func:`mean_over_repeats` of ``ours[i] / theirs[i]``, for repeats made side by side.

    Pairing takes out what disturbed both sides of a repeat alike.
    """
    if not ours or len(ours) != len(theirs) or min(*ours, *theirs) <= 0:
        return None
    return mean_over_repeats([one / other for one, other in zip(ours, theirs, strict=True)], confidence)


def ratio_of_groups(ours: Sequence[float], theirs: Sequence[float], confidence: float = 0.95) -> Estimate | None:
    """The same for repeats made apart, by Welch's interval of the difference of mean logarithms (Welch, 1947).

    The degrees of freedom are Satterthwaite's, rounded down.
    """
    if not ours or not theirs or min(*ours, *theirs) <= 0:
        return None
    groups = [[math.log(value) for value in group] for group in (ours, theirs)]
    difference = fmean(groups[0]) - fmean(groups[1])
    if min(map(len, groups)) < 2:
        return Estimate(math.exp(difference))
    squares = [variance(group) / len(group) for group in groups]
    total = sum(squares)
    if total == 0:
        return Estimate(*[math.exp(difference)] * 3)
    freedom = total**2 / sum(s**2 / (len(group) - 1) for s, group in zip(squares, groups, strict=True))
    return _estimate(difference, math.sqrt(total), max(1, math.floor(freedom)), confidence)


def _estimate(middle: float, error: float, freedom: int, confidence: float) -> Estimate:
    reach = student_quantile((1 + confidence) / 2, freedom) * error
    return Estimate(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))
