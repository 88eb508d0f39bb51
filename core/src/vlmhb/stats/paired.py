"""Is a difference real? Two answers to the same rows, compared row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from vlmhb.stats.interval import student_quantile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from vlmhb.stats.interval import Numbers

DRAWS = 10_000
_MOST_PAGES = 2_000
_DRAWN_AT_ONCE = 2_000_000


def sign_flip_p(differences: Numbers, pages: npt.NDArray[np.integer], *, draws: int = DRAWS, seed: int = 0) -> float:
    """How often chance alone gives a difference at least as large, when the two sides are equally good.

    The randomisation test over pages (Fisher, 1935; Ernst, 2004, *Permutation Methods*): were both sides the same, each
    page's difference could as well have the other sign. Two-sided; above 2,000 pages that differ the normal
    approximation is taken.

    Args:
        differences: one number a row.
        pages: the page of each row, numbers from 0; the rows of a page change sign together.
        draws: how often signs are drawn.
        seed: of the draws.
    """
    import numpy as np

    sums = np.bincount(pages, weights=differences)
    sums = sums[np.abs(sums) > 1e-12]
    if not len(sums):
        return 1.0
    observed = abs(float(sums.sum()))
    if len(sums) > _MOST_PAGES:
        return 2 * NormalDist().cdf(-observed / math.sqrt(float((sums**2).sum())))
    rng = np.random.default_rng(seed)
    reached = 0
    step = max(1, _DRAWN_AT_ONCE // len(sums))
    for start in range(0, draws, step):
        signs = rng.integers(2, size=(min(step, draws - start), len(sums)), dtype=np.int8) * 2.0 - 1.0
        reached += int((np.abs(signs @ sums) >= observed - 1e-9).sum())
    return (reached + 1) / (draws + 1)


def mcnemar_p(only_first: int, only_second: int) -> float:
    """McNemar's exact test of two right-or-wrong results (McNemar, 1947; the binomial form).

    It takes the rows as independent: where several are about one page it is too sure.

    Args:
        only_first: rows that only the first side has right.
        only_second: rows that only the second side has right.

    Returns:
        The two-sided probability of a split at least as uneven, were both sides equally good.
    """
    count, fewer = only_first + only_second, min(only_first, only_second)
    if count == 0:
        return 1.0
    logs = [
        math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) - count * math.log(2)
        for k in range(fewer + 1)
    ]
    return min(1.0, 2 * math.fsum(map(math.exp, logs)))


def holm(values: Sequence[float]) -> list[float]:
    """Probabilities corrected for how many comparisons are made at once (Holm, 1979), in the same order.

    To call those below 5 % real is wrong about any of them in at most 5 % of such families.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    corrected = [0.0] * len(values)
    largest = 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[at]))
        corrected[at] = largest
    return corrected


def smallest_detectable(
    differences: Numbers, pages: npt.NDArray[np.integer], *, confidence: float = 0.95, power: float = 0.8
) -> float | None:
    """The difference that this many pages would show with the given power, were it there.

    The standard error of the mean difference, pages drawn as a whole, times the sum of the two quantiles (Bloom, 1995,
    *Minimum detectable effects*).

    Args:
        differences: one number a row.
        pages: the page of each row, numbers from 0.
        confidence: of the interval that is to leave out 0.
        power: how often it is to do so.

    Returns:
        None for fewer than two pages, or where no page differs from another.
    """
    import numpy as np

    rows = np.bincount(pages).astype(np.float64)
    sums = np.bincount(pages, weights=differences)[rows > 0]
    rows = rows[rows > 0]
    count = len(rows)
    if count < 2:
        return None
    residual = sums - rows * differences.mean()
    error = math.sqrt(count / (count - 1) * float((residual**2).sum())) / float(rows.sum())
    if error < 1e-12:
        return None
    quantile = student_quantile((1 + confidence) / 2, count - 1)
    return (quantile + NormalDist().inv_cdf(power)) * error
