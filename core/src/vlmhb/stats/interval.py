"""Confidence intervals of a mean over rows that come in pages.

Several questions are asked about one page, and a page that is hard to read spoils all of them. What is drawn again
is therefore the page with all its rows, not the row (the cluster bootstrap: Davison, Hinkley, 1997, section 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]

RESAMPLES = 2_000
MOST_UNITS = 500
"""Of more pages, equally many are put together at random; the sums of such bundles are independent as pages are, and
time and memory no longer grow with the data."""


_AT_ONCE = 250


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
        The interval, or None where the rows do not say: fewer than two pages, or all pages equal and not at a bound.
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
    return page_intervals(
        totals[:, None], rows, confidence=confidence, bounds=[bounds], resamples=resamples, seed=seed
    )[0]


def page_intervals(
    totals: Numbers,
    rows: Numbers,
    *,
    confidence: float = 0.95,
    bounds: Sequence[tuple[float, float] | None],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Interval | None]:
    """:func:`mean_interval` of several numbers at once, from what each page adds up to; the same pages are drawn.

    Args:
        totals: the sums of the pages, one line a page, one column a number.
        rows: how many rows each page has; pages without any do not count.
        confidence, resamples, seed: as for :func:`mean_interval`.
        bounds: for each column as for :func:`mean_interval`.
    """
    groups = [(totals, rows)]
    return intervals_of_groups(groups, confidence=confidence, bounds=bounds, resamples=resamples, seed=seed)[0]


def intervals_of_groups(
    groups: Sequence[tuple[Numbers, Numbers]],
    *,
    confidence: float = 0.95,
    bounds: Sequence[tuple[float, float] | None],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[list[Interval | None]]:
    """:func:`page_intervals` of many groups of pages, each with its totals and rows; one line a group.

    Groups with equally many pages are worked out together, which is many times faster than one after another.
    """
    import numpy as np

    found: list[list[Interval | None]] = []
    drawn: dict[int, list[tuple[int, int, Numbers, Numbers]]] = {}
    for number, (totals, rows) in enumerate(groups):
        totals, rows = totals[rows > 0], rows[rows > 0]
        line: list[Interval | None] = [None] * len(bounds)
        found.append(line)
        if len(rows) < 2:
            continue
        of_pages = totals / rows[:, None]
        equal = np.isclose(of_pages, of_pages[0], rtol=1e-12, atol=1e-300).all(axis=0)
        for at, limits in enumerate(bounds):
            if equal[at]:
                line[at] = _all_equal(float(of_pages[0, at]), len(rows), confidence, limits)
            else:
                sums = _bundled(totals[:, at], rows, seed)
                drawn.setdefault(len(sums[0]), []).append((number, at, *sums))
    for count, columns in drawn.items():
        draws, tail = _draws(count, resamples, seed), widened_tail((1 - confidence) / 2, count)
        for some in (columns[start : start + _AT_ONCE] for start in range(0, len(columns), _AT_ONCE)):
            totals, rows = (np.stack([column[part] for column in some], axis=1) for part in (2, 3))
            ends = np.quantile((draws @ totals) / (draws @ rows), (tail, 1 - tail), axis=0)
            for (number, at, _, _), (low, high) in zip(some, ends.T, strict=True):
                found[number][at] = Interval(float(low), float(high))
    return found


@lru_cache(maxsize=64)
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


def _bundled(totals: Numbers, rows: Numbers, seed: int) -> tuple[Numbers, Numbers]:
    """At most :data:`MOST_UNITS` sums of totals and of rows, each over as many pages (one more for some).

    They come in the order of their values, so that the order in which the pages came does not matter.
    """
    import numpy as np

    order = np.lexsort((totals, rows))
    totals, rows = totals[order], rows[order]
    if len(rows) <= MOST_UNITS:
        return totals, rows
    bundle = np.random.default_rng(seed).permutation(len(rows)) % MOST_UNITS
    sums = [np.bincount(bundle, weights=numbers).astype(np.float64) for numbers in (totals, rows)]
    return sums[0], sums[1]


@lru_cache(maxsize=2)
def _draws(count: int, resamples: int, seed: int) -> Numbers:
    """How often each of ``count`` pages is drawn, one line a draw; the same for all tables with as many pages."""
    import numpy as np

    drawn = np.random.default_rng(seed).integers(count, size=(resamples, count), dtype=np.int32)
    drawn += np.arange(resamples, dtype=np.int32)[:, None] * count
    often = np.bincount(drawn.ravel(), minlength=resamples * count).reshape(resamples, count)
    return often.astype(np.float64)
