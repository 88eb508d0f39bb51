"""Tests of differences: against enumeration, textbook values and simulated data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vlmhb.stats.interval import mean_interval
from vlmhb.stats.paired import holm, mcnemar_p, sign_flip_p, smallest_detectable


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test(one: int, other: int) -> None:
    count = one + other
    tail = sum(math.comb(count, k) for k in range(min(one, other) + 1)) / 2**count
    assert mcnemar_p(one, other) == pytest.approx(min(1.0, 2 * tail))
    assert mcnemar_p(one, other) == mcnemar_p(other, one)


def test_mcnemar_of_many_rows() -> None:
    assert mcnemar_p(0, 0) == 1.0
    assert mcnemar_p(50_000, 50_000) == pytest.approx(1.0, abs=0.01)
    # the normal approximation, which is good here
    assert mcnemar_p(10_000, 10_400) == pytest.approx(math.erfc(399 / math.sqrt(20_400) / math.sqrt(2)), rel=0.01)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=10))
def test_signs_are_flipped_as_if_all_ways_were_tried(differences: list[float]) -> None:
    values = np.array(differences)
    every = [abs(float(np.dot(signs, values))) for signs in itertools.product((-1, 1), repeat=len(values))]
    exact = np.mean([total >= abs(values.sum()) - 1e-9 for total in every])
    assert sign_flip_p(values, np.arange(len(values))) == pytest.approx(exact, abs=0.02)


def test_the_rows_of_a_page_change_sign_together() -> None:
    values, pages = np.ones(40), np.repeat(np.arange(4), 10)
    assert sign_flip_p(values, pages) == pytest.approx(2 / 2**4, abs=0.01)
    assert sign_flip_p(values, np.arange(40)) < 0.001
    assert sign_flip_p(np.zeros(5), np.arange(5)) == 1.0


def test_many_pages_go_by_the_normal_distribution() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(0.03, 1, 2_500)
    assert sign_flip_p(values, np.arange(2_500)) == pytest.approx(
        sign_flip_p(values[:], np.arange(2_500) % 1_999), abs=0.1
    )
    z = abs(values.sum()) / math.sqrt((values**2).sum())
    assert sign_flip_p(values, np.arange(2_500)) == pytest.approx(math.erfc(z / math.sqrt(2)))


def test_no_difference_is_found_in_one_of_twenty() -> None:
    rng = np.random.default_rng(0)
    pages = np.repeat(np.arange(30), 3)
    found = [sign_flip_p(rng.normal(size=30)[pages] + rng.normal(size=90), pages, draws=400) for _ in range(400)]
    assert 0.02 < np.mean(np.array(found) < 0.05) < 0.09


def test_holm_of_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.6, 0.9]) == [1.0, 1.0]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_keeps_the_order_and_never_makes_smaller(values: list[float]) -> None:
    corrected = holm(values)
    assert all(0 <= before <= after <= 1 for before, after in zip(values, corrected, strict=True))
    order = sorted(range(len(values)), key=values.__getitem__)
    assert [corrected[at] for at in order] == sorted(corrected)


def test_the_detectable_difference_is_detected_in_four_of_five() -> None:
    rng = np.random.default_rng(4)
    pages = np.repeat(np.arange(50), 2)

    def sample(shift: float) -> np.ndarray:
        return rng.normal(size=50)[pages] * 0.3 + rng.normal(size=100) * 0.3 + shift

    detectable = float(np.mean([smallest_detectable(sample(0.0), pages) for _ in range(50)]))
    seen = 0
    for _ in range(300):
        found = mean_interval(sample(detectable), pages, resamples=400)
        assert found is not None
        seen += not found.low <= 0 <= found.high
    assert 0.73 < seen / 300 < 0.87


def test_nothing_can_be_said_about_one_page_or_without_any_difference() -> None:
    assert smallest_detectable(np.array([1.0, 2.0]), np.array([0, 0])) is None
    assert smallest_detectable(np.zeros(4), np.arange(4)) is None
    assert smallest_detectable(np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 3, 5, 9])) is not None
