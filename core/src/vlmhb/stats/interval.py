"""Confidence intervals of a mean over rows that come in pages.

Several questions are asked about one page, and a page that is hard to read spoils all of them. What is drawn again
is therefore the page with all its rows, not the row (the cluster bootstrap: Davison, Hinkley, 1997, section 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]

RESAMPLES = 2_000
MOST_UNITS = 2_000
"""Of more pages, equally many are put together at random; the sums of such bundles are independent as pages are, and
time and memory no longer grow with the data."""
_DRAWN_AT_ONCE = 2_000_000


class Interval(NamedTuple):
    """Where the mean would lie, had other pages of the same kind been tested."""

    low: float
    high: float


def mean_interval(
    values: Sequence[float] | Numbers,
    pages: Sequence[object] | npt.NDArray[np.generic],
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """The bootstrap interval of the mean of ``values``, pages drawn as a whole.

    The percentile interval, widened for few pages as Student's t is against the normal distribution (Hesterberg,
    2015, *What Teachers Should Know About the Bootstrap*, section 4.3): the plain one is too narrow by a factor of
    sqrt((n - 1) / n) and more for n pages.

    Args:
        values: one number a row, all finite.
        pages: for each row the page (document) it belongs to, of any type that can be sorted.
        confidence: the share of intervals that are to hold the true mean.
        bounds: the least and greatest value a row can have, where both exist. Needed when all rows are at a bound,
            as when every answer is right: no page differs from another then, and the interval is the exact binomial
            one for "a page is not like this" (Clopper, Pearson, 1934), cautious since it takes such a page as wholly
            at the other bound.
        resamples: how often pages are drawn.
        seed: equal seeds give equal intervals.

    Returns:
        The interval, or None where the rows do not say: fewer than two pages, or all rows equal and no bounds.
    """
    import numpy as np

    numbers = np.asarray(values, dtype=np.float64)
    _, codes = np.unique(np.asarray(pages), return_inverse=True)
    return interval_of(numbers, codes, confidence=confidence, bounds=bounds, resamples=resamples, seed=seed)


def interval_of(
    values: Numbers,
    codes: npt.NDArray[np.integer],
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """:func:`mean_interval` for pages given as numbers from 0 (gaps do not matter)."""
    import numpy as np

    rows: Numbers = np.bincount(codes).astype(np.float64)
    totals: Numbers = np.bincount(codes, weights=values).astype(np.float64)
    totals, rows = totals[rows > 0], rows[rows > 0]
    count = len(rows)
    if count < 2:
        return None
    if np.all(values == values[0]):
        return _all_equal(float(values[0]), count, confidence, bounds)
    rng = np.random.default_rng(seed)
    totals, rows = _bundled(totals, rows, rng)
    means = _resampled(totals, rows, resamples, rng)
    tail = widened_tail((1 - confidence) / 2, len(rows))
    low, high = np.quantile(means, (tail, 1 - tail))
    return Interval(float(low), float(high))


def widened_tail(tail: float, count: int) -> float:
    """The tail to cut from the bootstrap distribution of ``count`` pages, instead of ``tail``."""
    t = student_quantile(1 - tail, count - 1)
    return NormalDist().cdf(-math.sqrt(count / (count - 1)) * t)


def student_quantile(share: float, freedom: int) -> float:
    """A quantile of Student's t distribution, by bisection of its distribution function; share above one half."""
    low, high = 0.0, 2.0
    while _student_cdf(high, freedom) < share:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_cdf(middle, freedom) < share else (low, middle)
    return (low + high) / 2


def _student_cdf(t: float, freedom: int) -> float:
    """P(T <= t) for t >= 0 and a whole number of degrees of freedom (Abramowitz, Stegun, 26.7.3 and 26.7.4)."""
    if freedom > 1_000:
        return NormalDist().cdf(t * (1 - 1 / (4 * freedom)) / math.sqrt(1 + t * t / (2 * freedom)))
    angle = math.atan2(t, math.sqrt(freedom))
    cosine = math.cos(angle) ** 2
    odd = freedom % 2
    term, total = 1.0, 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * k / (k + 1)
    if odd:
        return 0.5 + (angle + math.sin(angle) * math.cos(angle) * total) / math.pi
    return 0.5 + math.sin(angle) * total / 2


def _all_equal(value: float, count: int, confidence: float, bounds: tuple[float, float] | None) -> Interval | None:
    """Every row at one value: what can still be said about pages that were not seen."""
    if bounds is None or value not in bounds:
        return None
    low, high = bounds
    unseen = 1 - ((1 - confidence) / 2) ** (1 / count)
    reach = unseen * (high - low)
    return Interval(low, low + reach) if value == low else Interval(high - reach, high)


def _bundled(totals: Numbers, rows: Numbers, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
    """At most :data:`MOST_UNITS` sums of totals and of rows, each over as many pages (one more for some)."""
    import numpy as np

    if len(rows) <= MOST_UNITS:
        return totals, rows
    bundle = rng.permutation(len(rows)) % MOST_UNITS
    sums = (np.bincount(bundle, weights=numbers).astype(np.float64) for numbers in (totals, rows))
    return next(sums), next(sums)


def _resampled(totals: Numbers, rows: Numbers, resamples: int, rng: np.random.Generator) -> Numbers:
    """The mean over as many pages as there are, drawn with replacement, ``resamples`` times."""
    import numpy as np

    count = len(rows)
    means = np.empty(resamples)
    step = max(1, _DRAWN_AT_ONCE // count)
    for start in range(0, resamples, step):
        drawn = rng.integers(count, size=(min(step, resamples - start), count), dtype=np.int32)
        means[start : start + step] = totals[drawn].sum(axis=1) / rows[drawn].sum(axis=1)
    return means
