"""Ranks, bets and evidence against exact counts."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from uqprism.tasks.watch.bets import CELLS, all_bets
from uqprism.tasks.watch.evidence import Evidence, cash
from uqprism.tasks.watch.pool import BINS, BLOCK, Pool
from uqprism.tasks.watch.series import MOST


@pytest.mark.parametrize("bins", [2, 3, 4])
def test_bins_of_new_rows_have_the_probabilities_of_the_urn(bins):
    """Over all orders of three reference rows and three new ones, each sequence of bins is as frequent as the urn says."""
    found: Counter[tuple[int, ...]] = Counter()
    for order in itertools.permutations(range(6)):
        pool = Pool.of(np.array(order[:3], float), np.random.default_rng(0), bins)
        found[tuple(pool.places(np.array(order[3:], float), np.random.default_rng(0)).tolist())] += 1
    counts = Pool.of(np.arange(3.0), np.random.default_rng(0), bins).counts.tolist()
    assert sum(counts) == 4
    for sequence in itertools.product(range(len(counts)), repeat=3):
        expected, urn = Fraction(720), list(counts)
        for place in sequence:
            expected *= Fraction(urn[place], sum(urn))
            urn[place] += 1
        assert found[sequence] == expected


def test_ranks_are_those_of_the_urn_row_by_row():
    rng = np.random.default_rng(1)
    pool = Pool.of(rng.normal(size=300), rng, 40)
    bins, drawn = rng.integers(40, size=5 * BLOCK + 3), rng.random(5 * BLOCK + 3)
    urn, expected = pool.counts.copy(), []
    for place, share in zip(bins, drawn, strict=True):
        expected.append((urn[:place].sum() + share * urn[place]) / urn.sum())
        urn[place] += 1
    assert_array_equal(pool.ranks(bins, drawn), expected)
    assert_array_equal(pool.counts, urn)


def test_ranks_of_equal_values_are_uniform_and_independent():
    """Five rows among three, all of one of three values: every rank is uniform, whatever the ranks before were."""
    rng = np.random.default_rng(2)
    found = np.empty((1_600, 5))
    for i in range(len(found)):
        values = rng.integers(3, size=8).astype(float)
        pool = Pool.of(values[:3], rng)
        found[i] = pool.ranks(pool.places(values[3:], rng), rng.random(5))
    halves = (found < 0.5).astype(int) @ (2 ** np.arange(5))
    counts = np.bincount(halves, minlength=32)
    assert ((counts - 50.0) ** 2 / 50.0).sum() < 61.1  # 0.999 quantile of chi-squared with 31 degrees of freedom


def test_a_row_beyond_all_others_has_the_highest_rank():
    rng = np.random.default_rng(3)
    pool = Pool.of(np.arange(100.0), rng)
    ranks = pool.ranks(pool.places(np.array([1e9, -np.inf, np.inf]), rng), np.full(3, 0.5))
    assert_allclose(ranks, [100.5 / 101, 0.5 / 102, 101.0 / 103 + 1.0 / 103])


def test_every_bet_integrates_to_one():
    bets = all_bets()
    assert_allclose(np.exp(bets.logs).mean(axis=1), 1.0, rtol=1e-12)
    assert_allclose(bets.stakes.sum(), 1.0, rtol=1e-12)
    assert {"higher", "lower", "spread", "narrowed", "gathered"} == set(bets.kinds)


def test_the_page_counts_bets_cells_bins_and_windows():
    page = (Path(__file__).parents[3] / "docs" / "watch.md").read_text()
    assert f"with {len(all_bets().kinds)} densities on {CELLS} cells" in page
    assert f"the state is {BINS} counts and the money on {len(all_bets().kinds)} bets" in page
    assert f"the size that it has after {MOST:,} windows at most" in page


def test_money_stays_the_same_on_average():
    """The mean over a uniform rank of the money after the next row is the money before it."""
    rng = np.random.default_rng(4)
    evidence = Evidence()
    for _ in range(5):
        evidence.update(np.bincount(rng.integers(CELLS, size=30), minlength=CELLS))
    after = []
    for cell in range(CELLS):
        next_one = Evidence(evidence.money.copy(), evidence.windows)
        next_one.update(np.eye(CELLS, dtype=int)[cell])
        after.append(np.exp(next_one.log))
    assert_allclose(np.mean(after), np.exp(evidence.log), rtol=1e-12)


def test_all_money_is_cash_at_first_and_bets_begin_with_every_window():
    assert Evidence().log == 0.0
    released = -np.diff([cash(windows) for windows in range(1_000)])
    assert (released > 0.0).all()
    assert_allclose(released.sum() + cash(999), 1.0, rtol=1e-12)
