"""The formulas of speed, against values worked out by hand or known from elsewhere."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vlmhb.stats.speed import (
    Estimate,
    mean_over_repeats,
    per_second,
    quantile,
    ratio_of_groups,
    ratio_of_pairs,
    share_of,
)

TIMES = st.lists(st.floats(0.001, 1e3), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1.0), (0.5, 2.5), (0.9, 3.7), (0.99, 3.97), (1.0, 4.0), (1 / 3, 2.0)]
)
def test_quantiles_of_four_values(share: float, expected: float) -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], share) == pytest.approx(expected)


@given(TIMES, st.floats(0, 1))
def test_quantiles_are_those_of_numpy(values: list[float], share: float) -> None:
    assert quantile(values, share) == pytest.approx(float(np.quantile(values, share)))


def test_nothing_has_no_quantile_and_no_rate() -> None:
    assert quantile([], 0.5) is None
    assert per_second(3, 0.0) is None
    assert per_second(3, 1.5) == 2.0
    assert mean_over_repeats([]) is None
    assert mean_over_repeats([1.0, 0.0]) is None
    assert ratio_of_pairs([1.0], []) is None
    assert ratio_of_groups([], [1.0]) is None


def test_a_share_needs_every_part() -> None:
    assert share_of([10, 0], [40, 60]) == 0.1
    assert share_of([10, None], [40, 60]) is None
    assert share_of([10, 1], [40, None]) is None
    assert share_of([], []) is None


def test_one_repeat_has_no_interval() -> None:
    assert mean_over_repeats([2.0]) == Estimate(2.0, None, None)
    assert ratio_of_groups([4.0], [2.0, 2.0]) == Estimate(2.0, None, None)


def test_the_interval_of_three_repeats() -> None:
    # logarithms -1, 0 and 1: mean 0, standard deviation 1, t(0.975, 2) = 4.30265
    found = mean_over_repeats([math.exp(-1), 1.0, math.exp(1)])
    assert found is not None
    assert found.value == pytest.approx(1.0)
    reach = math.exp(4.302653 / math.sqrt(3))
    assert (found.low, found.high) == (pytest.approx(1 / reach, rel=1e-5), pytest.approx(reach, rel=1e-5))


def test_pairs_take_out_what_slows_both() -> None:
    theirs = [1.0, 0.4, 2.0]
    found = ratio_of_pairs([2.0, 0.8, 4.0], theirs)
    assert found == (pytest.approx(2.0), pytest.approx(2.0), pytest.approx(2.0))
    apart = ratio_of_groups([2.0, 0.8, 4.0], theirs)
    assert apart is not None
    assert apart.low is not None
    assert apart.low < 1 < apart.value


def test_welch_of_equal_groups_is_students_two_sample_interval() -> None:
    # Logarithms 0 and 2 against 1 and 3: difference -1, variance 2 in both, standard error sqrt(2), 2 degrees of
    # freedom, t(0.975, 2) = 4.30265.
    found = ratio_of_groups([1.0, math.exp(2)], [math.exp(1), math.exp(3)])
    assert found is not None
    assert found.value == pytest.approx(math.exp(-1))
    assert found.high == pytest.approx(math.exp(-1 + 4.302653 * math.sqrt(2)), rel=1e-5)


@given(TIMES)
def test_a_ratio_turned_round_is_its_inverse(values: list[float]) -> None:
    others = [value * 1.1 + 0.01 for value in values]
    one, other = ratio_of_pairs(values, others), ratio_of_pairs(others, values)
    assert one is not None
    assert other is not None
    assert one.value == pytest.approx(1 / other.value)
    if one.low is not None and other.high is not None:
        assert one.low == pytest.approx(1 / other.high)


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_the_interval_holds_the_truth_as_often_as_it_says(repeats: int) -> None:
    draw = random.Random(repeats)
    held = 0
    for _ in range(2000):
        found = mean_over_repeats([3.0 * math.exp(draw.gauss(0, 0.2)) for _ in range(repeats)])
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 3.0 <= found.high
    assert 0.93 <= held / 2000 <= 0.97
