"""How often the 95 % interval of vlmhb.stats holds the true mean.

Draws data sets whose true mean is known, pages first and then the rows of each page, so that rows of one page are
alike; makes the interval of each, and counts how many hold the true mean. 93 to 97 in a hundred is the aim.

Usage: python benchmarks/interval_coverage.py [--simulations N] [--compare]
With --compare, the two textbook intervals that the product could have used instead stand beside it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from _results import record
from vlmhb.stats.interval import interval_of

AIM = (0.93, 0.97)
TAIL = 0.025
Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
"""Makes the values of one data set, and the page number of each."""


def answers(share: float, pages: int, questions: int, alike: float) -> tuple[float, Draw]:
    """Right and wrong answers; ``alike`` is the correlation of two answers about one page."""
    spread = 1 / alike - 1

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        page = np.repeat(rng.beta(share * spread, (1 - share) * spread, pages), questions)
        return (rng.random(page.size) < page).astype(float), np.repeat(np.arange(pages), questions)

    return share, draw


def uneven(pages: int) -> tuple[float, Draw]:
    """Three pages in ten are hard, and more is asked about those."""
    easy_right, hard_right = 0.95, 0.5
    mean_rows = (0.7 * 2.5, 0.3 * 7)
    truth = (mean_rows[0] * easy_right + mean_rows[1] * hard_right) / sum(mean_rows)

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        hard = rng.random(pages) < 0.3
        rows = np.where(hard, rng.integers(4, 11, pages), rng.integers(1, 5, pages))
        page = np.repeat(np.arange(pages), rows)
        return (rng.random(page.size) < np.where(hard, hard_right, easy_right)[page]).astype(float), page

    return truth, draw


def error_rates(pages: int, questions: int) -> tuple[float, Draw]:
    """Rates such as CER: six in ten are 0, the others skewed, some above 1; pages differ in how bad they are."""
    wrong, scale = 0.4, 0.3

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        page = np.repeat(rng.gamma(2.0, 0.5, pages), questions)
        rates = np.where(rng.random(page.size) < wrong, rng.exponential(scale, page.size) * page, 0.0)
        return rates, np.repeat(np.arange(pages), questions)

    return wrong * scale, draw


CASES = {
    "9 of 10 right, 100 pages of 4": answers(0.9, 100, 4, 0.2),
    "9 of 10 right, 30 pages of 4": answers(0.9, 30, 4, 0.2),
    "6 of 10 right, 40 pages of 5": answers(0.6, 40, 5, 0.3),
    "97 of 100 right, 150 pages of 4": answers(0.97, 150, 4, 0.2),
    "8 of 10 right, 100 pages of 1": answers(0.8, 100, 1, 1e-6),
    "more asked about hard pages, 80": uneven(80),
    "error rates, 100 pages of 4": error_rates(100, 4),
}


def textbook(values: np.ndarray, page: np.ndarray, seed: int) -> dict[str, tuple[float, float]]:
    """The percentile and the BCa interval (Efron, Tibshirani, 1993, chapters 13 and 14) over pages."""
    normal = statistics.NormalDist()
    rows, totals = np.bincount(page).astype(float), np.bincount(page, weights=values)
    drawn = np.random.default_rng(seed).integers(len(rows), size=(2_000, len(rows)))
    means = totals[drawn].sum(axis=1) / rows[drawn].sum(axis=1)
    mean = totals.sum() / rows.sum()
    without = (totals.sum() - totals) / (rows.sum() - rows)
    pull = without.mean() - without
    bend = (pull**3).sum() / (6 * (pull**2).sum() ** 1.5)
    shift = normal.inv_cdf(min(max(((means < mean) + 0.5 * (means == mean)).mean(), 1e-4), 1 - 1e-4))
    ends = [shift + normal.inv_cdf(share) for share in (TAIL, 1 - TAIL)]
    shares = [normal.cdf(shift + end / (1 - bend * end)) for end in ends]
    return {
        "percentile": tuple(np.quantile(means, (TAIL, 1 - TAIL))),
        "BCa": tuple(np.quantile(means, shares)),
    }


def coverage(case: tuple[float, Draw], simulations: int, compare: bool) -> dict[str, float]:
    """The share of intervals that hold the truth, by kind of interval."""
    truth, draw = case
    rng = np.random.default_rng(20260801)
    held: dict[str, int] = {}
    for seed in range(simulations):
        values, page = draw(rng)
        found = {"vlmhb": interval_of(values, page, bounds=(0.0, 1.0), seed=seed)}
        if compare:
            found |= textbook(values, page, seed)
        for name, interval in found.items():
            held[name] = held.get(name, 0) + (interval[0] <= truth <= interval[1])
    return {name: count / simulations for name, count in held.items()}


def main() -> int:
    """Print the coverage of each case; 1 if one is outside the aim."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--compare", action="store_true")
    arguments = parser.parse_args()
    started, missed = time.perf_counter(), 0
    print(f"coverage of the 95 % interval, {arguments.simulations:,} simulations each; the aim is 93 to 97 %")
    for name, case in CASES.items():
        found = coverage(case, arguments.simulations, arguments.compare)
        record(f"coverage, {name}", found["vlmhb"] * 100, unit="%")
        missed += not AIM[0] <= found["vlmhb"] <= AIM[1]
        print(f"{name:36}" + "".join(f"{kind:>12} {share:6.1%}" for kind, share in found.items()), flush=True)
    print(f"{time.perf_counter() - started:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
