"""Intervals of means: against hand-made bootstraps, tables, and data whose true mean is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vlmhb.stats.interval import (
    MOST_UNITS,
    Interval,
    intervals_of_groups,
    mean_interval,
    page_intervals,
    student_quantile,
    widened_tail,
)


def sure(interval: Interval | None) -> Interval:
    assert interval is not None
    return interval


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (29, 2.0452), (99, 1.9842), (5000, 1.9604)],
)
def test_student_quantiles_are_those_of_the_tables(freedom: int, expected: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(expected, abs=2e-4)


def test_the_tail_is_narrower_for_few_pages_and_the_usual_one_for_many() -> None:
    assert widened_tail(0.025, 10) < widened_tail(0.025, 30) < 0.025
    assert widened_tail(0.025, 100_000) == pytest.approx(0.025, rel=1e-3)


def test_it_is_what_a_plain_bootstrap_over_pages_gives() -> None:
    rng = np.random.default_rng(3)
    pages = np.repeat(np.arange(60), rng.integers(1, 7, 60))
    values = (rng.random(len(pages)) < rng.beta(2, 1, 60)[pages]).astype(float)
    groups = [values[pages == page] for page in range(60)]
    means = []
    for _ in range(4_000):
        drawn = [groups[n] for n in rng.integers(60, size=60)]
        means.append(sum(group.sum() for group in drawn) / sum(len(group) for group in drawn))
    tail = widened_tail(0.025, 60)
    expected = np.quantile(means, (tail, 1 - tail))
    assert sure(mean_interval(values, pages)) == pytest.approx(tuple(expected), abs=0.012)


def test_repeating_the_rows_of_a_page_says_nothing_new() -> None:
    values = np.random.default_rng(0).random(40)
    once = mean_interval(values, np.arange(40))
    often = mean_interval(np.repeat(values, 25), np.repeat(np.arange(40), 25))
    assert sure(often) == pytest.approx(sure(once))
    as_if_independent = sure(mean_interval(np.repeat(values, 25), np.arange(1000)))
    assert as_if_independent.high - as_if_independent.low < 0.5 * (sure(once).high - sure(once).low)


def test_pages_may_be_named_by_text_and_come_in_any_order() -> None:
    rng = np.random.default_rng(1)
    values, names = rng.random(90), np.array([f"стр. {n % 30}" for n in range(90)])
    order = rng.permutation(90)
    assert sure(mean_interval(values[order], names[order])) == pytest.approx(sure(mean_interval(values, names)))


def test_equal_seeds_give_equal_intervals() -> None:
    values = np.random.default_rng(1).random(50)
    assert mean_interval(values, range(50)) == mean_interval(values, range(50))
    assert mean_interval(values, range(50), seed=1) != mean_interval(values, range(50), seed=2)


def test_more_confidence_makes_it_wider() -> None:
    values = np.random.default_rng(1).random(50)
    narrow, wide = (sure(mean_interval(values, range(50), confidence=share)) for share in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_one_page_has_no_interval() -> None:
    assert mean_interval([0.0, 1.0, 1.0], ["a", "a", "a"]) is None
    assert mean_interval([], []) is None


def test_rows_all_alike_say_something_only_with_bounds() -> None:
    assert mean_interval([0.0] * 20, range(20)) is None, "an error rate has no upper end"
    right = sure(mean_interval([1.0] * 20, range(20), bounds=(0, 1)))
    assert right.high == 1
    assert right.low == pytest.approx(0.8316, abs=1e-4), "Clopper and Pearson, 20 of 20"
    wrong = sure(mean_interval([0.0] * 20, range(20), bounds=(0, 100)))
    assert wrong == pytest.approx((0.0, 16.84), abs=1e-2)
    assert mean_interval([0.5] * 20, range(20), bounds=(0, 1)) is None


def test_more_pages_than_units_give_the_normal_interval() -> None:
    rng = np.random.default_rng(5)
    pages = np.repeat(np.arange(20_000), 3)
    values = rng.exponential(0.2, len(pages)) + rng.normal(0, 0.1, 20_000)[pages]
    assert len(np.unique(pages)) > MOST_UNITS
    page_means = values.reshape(-1, 3).mean(axis=1)
    reach = 1.96 * page_means.std(ddof=1) / math.sqrt(len(page_means))
    found = sure(mean_interval(values, pages))
    assert found.high - found.low == pytest.approx(2 * reach, rel=0.1)
    assert (found.high + found.low) / 2 == pytest.approx(page_means.mean(), abs=0.2 * reach)


def test_it_holds_the_true_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    held = 0
    for seed in range(300):
        page = np.repeat(rng.beta(4, 1, 40), 4)
        values = (rng.random(160) < page).astype(float)
        low, high = sure(mean_interval(values, np.repeat(np.arange(40), 4), seed=seed, resamples=600))
        held += low <= 0.8 <= high
    assert 0.91 <= held / 300 <= 0.985


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.floats(0, 50), st.integers(0, 8)), min_size=1, max_size=60))
def test_any_rows_give_an_interval_inside_their_range_or_none(rows: list[tuple[float, int]]) -> None:
    values, pages = [value for value, _ in rows], [page for _, page in rows]
    found = mean_interval(values, pages, resamples=200)
    if found is None:
        means = [np.mean([v for v, p in rows if p == page]) for page in set(pages)]
        assert len(means) < 2 or np.allclose(means, means[0], rtol=1e-11, atol=1e-290)
    else:
        assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9


def test_several_numbers_at_once_are_those_of_each_alone() -> None:
    rng = np.random.default_rng(5)
    pages = np.repeat(np.arange(80), rng.integers(1, 6, 80))
    values = np.column_stack([rng.random(len(pages)), rng.random(len(pages)) < 0.5, np.ones(len(pages))])
    totals = np.column_stack([np.bincount(pages, weights=column) for column in values.T])
    rows = np.bincount(pages).astype(float)
    bounds = [None, (0.0, 1.0), (0.0, 1.0)]
    together = page_intervals(totals, rows, bounds=bounds)
    for at, found in enumerate(together):
        assert sure(found) == pytest.approx(sure(mean_interval(values[:, at], pages, bounds=bounds[at])))


def test_pages_without_rows_do_not_count() -> None:
    totals, rows = np.array([[1.0], [0.0], [3.0], [0.0]]), np.array([2.0, 0.0, 4.0, 1.0])
    kept = rows > 0
    assert page_intervals(totals, rows, bounds=[None]) == page_intervals(totals[kept], rows[kept], bounds=[None])
    assert page_intervals(totals[:1], rows[:1], bounds=[None]) == [None]
    assert page_intervals(totals[:0], rows[:0], bounds=[None]) == [None]


def test_pages_that_do_not_differ_say_nothing() -> None:
    assert mean_interval([0.0, 1.0, 0.0, 1.0], [0, 0, 1, 1]) is None
    assert mean_interval([0.1] * 3 + [0.1] * 7, [0] * 3 + [1] * 7) is None


def test_many_groups_at_once_are_those_of_each_alone() -> None:
    rng = np.random.default_rng(8)
    groups = [
        (rng.random((count, 2)), rng.integers(0, 3, count).astype(float))
        for count in [1, 2, 30, 30, 30, MOST_UNITS + 7, *[12] * 300]
    ]
    together = intervals_of_groups(groups, bounds=[None, None], resamples=200)
    for (totals, rows), found in zip(groups, together, strict=True):
        alone = page_intervals(totals, rows, bounds=[None, None], resamples=200)
        for one, other in zip(found, alone, strict=True):
            assert (one is None) == (other is None)
            assert one is None or sure(other) == pytest.approx(one)
