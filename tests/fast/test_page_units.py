"""Pages and the numbers under which their sums are kept."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.metrics.page_units import PageUnits
from vlmhb.metrics.scoring import Scorer
from vlmhb.stats.interval import MOST_UNITS, mean_interval

EXACT = [metric for metric in vlmhb_metrics() if metric.name == "exact_match"]


def names(count: int) -> list[str]:
    return [f"стр. {n}" for n in range(count)]


def test_the_first_pages_have_numbers_of_their_own() -> None:
    units = PageUnits()
    first = units.of(pl.Series(["b", "a", "b", ""]))
    assert first.tolist() == [0, 1, 0, 2] or len({*first.tolist()}) == 3
    more = units.of(pl.Series(names(MOST_UNITS - 3)))
    assert len({*first.tolist(), *more.tolist()}) == MOST_UNITS
    assert units.of(pl.Series(["b", "a", "b", ""])).tolist() == first.tolist()


def test_further_pages_share_numbers_evenly_and_keep_them() -> None:
    units = PageUnits()
    pages = pl.Series(names(50_000))
    numbers = np.concatenate([units.of(pages.slice(start, 7_000)) for start in range(0, 50_000, 7_000)])
    assert units.of(pages).tolist() == numbers.tolist()
    shares = np.bincount(numbers, minlength=MOST_UNITS)
    assert len(shares) == MOST_UNITS
    assert 0.4 * shares.mean() < shares.min() <= shares.max() < 1.8 * shares.mean()
    assert PageUnits().of(pl.Series([], dtype=pl.String)).tolist() == []


def test_intervals_over_many_pages_are_about_those_of_the_pages() -> None:
    rng = np.random.default_rng(0)
    pages = np.repeat(np.arange(4_000), 2)
    right = rng.random(8_000) < np.repeat(rng.beta(2, 1, 4_000), 2)
    scorer = Scorer(EXACT)
    frame = pl.DataFrame(
        {
            "row": np.arange(8_000),
            "data_index": pages.astype(str),
            "doc_class": [""] * 8_000,
            "question_type": [""] * 8_000,
            "reference": ["a"] * 8_000,
            "answer": np.where(right, "a", "b"),
            "status": ["ok"] * 8_000,
        }
    )
    for start in range(0, 8_000, 1_500):
        scorer.add(frame.slice(start, 1_500))
    general = scorer.table("general").to_dicts()[0]
    exact = mean_interval(right.astype(float), pages)
    assert exact is not None
    assert (general["exact_match_low"], general["exact_match_high"]) == pytest.approx(tuple(exact), abs=0.002)
