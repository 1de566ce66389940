"""Scores as they are, standardised or by rank; batches: the law of softmax sampling, its limits, ties, distances."""

from __future__ import annotations

import itertools
from collections import Counter
from time import perf_counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare, rankdata

from uqprism.errors import UnknownNameError
from uqprism.tasks.active_learning import diverse, gumbel_top_k, scaled, softmax, top
from uqprism.tasks.active_learning.pool import in_standard_units

WEIGHTS = np.array([1.0, 30.0, 0.1, 1e-3, 4.0])


def chance_of(order: tuple[int, ...], weights: np.ndarray) -> float:
    """Of drawing these points one after the other, each time in proportion to the weights of those left."""
    chance, left = 1.0, weights.sum()
    for point in order:
        chance *= weights[point] / left
        left -= weights[point]
    return chance


@pytest.mark.parametrize("count", [1, 2, 3])
def test_gumbel_top_k_draws_as_successive_sampling_does(count: int, rng: np.random.Generator) -> None:
    """Every ordered outcome as often as its exact probability says; outcomes too rare to test are taken together."""
    orders = list(itertools.permutations(range(5), count))
    exact = np.array([chance_of(order, WEIGHTS) for order in orders])
    assert exact.sum() == pytest.approx(1.0)
    draws = 15_000
    seen = Counter(tuple(gumbel_top_k(np.log(WEIGHTS), count, rng).tolist()) for _ in range(draws))
    observed, expected = np.array([seen[order] for order in orders]), exact * draws
    rare = expected < 5.0
    pooled = [np.append(x[~rare], x[rare].sum()) for x in (observed, expected)] if rare.any() else [observed, expected]
    assert chisquare(*pooled).pvalue > 1e-3


def test_huge_and_tiny_scores_neither_underflow_nor_overflow(rng: np.random.Generator) -> None:
    """exp(-1e5) is zero and exp(1e5) infinite, yet points 3 apart in score are drawn as exp(3) to 1."""
    for level in (-1e5, 0.0, 1e5):
        scores = np.array([level, level + 3.0, level - 1e5])
        first = np.array([softmax(scores, 2, rng)[0] for _ in range(4000)])
        assert np.mean(first == 1) == pytest.approx(np.exp(3.0) / (1.0 + np.exp(3.0)), abs=0.015)
        assert not (first == 2).any()
    widest = np.array([-1.7e308, 1.7e308, 0.0, 1.0])
    assert softmax(widest, 4, rng, temperature=1e-300)[0] == 1
    assert sorted(softmax(widest, 4, rng)) == [0, 1, 2, 3]


def test_small_differences_between_huge_log_weights_count(rng: np.random.Generator) -> None:
    """At 2^53 there are no odd numbers: noise added there would be rounded to even ones."""
    first = np.array([gumbel_top_k(np.array([2.0**53, 2.0**53 + 2.0]), 1, rng)[0] for _ in range(10_000)])
    assert np.mean(first == 1) == pytest.approx(np.exp(2.0) / (1.0 + np.exp(2.0)), abs=0.01)


def test_equal_points_far_below_the_best_are_drawn_alike(rng: np.random.Generator) -> None:
    """At -1e30 the noise is rounded away, which must not make the first or the last of equal points the likelier one."""
    scores = np.array([0.0, -1e30, -1e30, -1e30])
    second = [gumbel_top_k(scores, 2, rng)[1] for _ in range(3000)]
    assert chisquare(np.bincount(second, minlength=4)[1:]).pvalue > 1e-3


def test_a_low_temperature_takes_the_highest_and_a_high_one_anything(rng: np.random.Generator) -> None:
    scores = rng.normal(size=50)
    assert_array_equal(softmax(scores, 8, rng, temperature=1e-9), np.argsort(-scores)[:8])
    first = [softmax(scores, 1, rng, temperature=1e9)[0] for _ in range(10_000)]
    assert chisquare(np.bincount(first, minlength=50)).pvalue > 1e-3


def test_temperature_divides_the_scores() -> None:
    scores = np.linspace(-3.0, 5.0, 40)
    picks = [softmax(scores * factor, 10, np.random.default_rng(3), temperature=2.0 * factor) for factor in (1.0, 100.0)]
    assert_array_equal(picks[0], picks[1])
    assert_array_equal(picks[0], gumbel_top_k(scores / 2.0, 10, np.random.default_rng(3)))


def test_top_takes_the_highest_in_order_and_breaks_ties_at_random(rng: np.random.Generator) -> None:
    scores = np.array([-5.0, 7.0, -1.0, -1.0, -1.0, 9.0])
    thirds = []
    for _ in range(3000):
        picked = top(scores, 3, rng)
        assert_array_equal(picked[:2], [5, 1])
        thirds.append(picked[2])
    assert chisquare(np.bincount(thirds, minlength=5)[2:]).pvalue > 1e-3


def farthest_first(scores: np.ndarray, count: int, candidates: np.ndarray, labelled: np.ndarray) -> list[int]:
    """The definition, point by point, for scores without ties."""
    shortlist = sorted(range(len(scores)), key=lambda i: -scores[i])[: 5 * count]
    known, picked = list(labelled), []
    for _ in range(count):
        gaps = [np.linalg.norm(np.array(known) - candidates[i], axis=1).min() if i not in picked else -1.0 for i in shortlist]
        picked.append(shortlist[int(np.argmax(gaps))])
        known.append(candidates[picked[-1]])
    return picked


def test_diverse_batches_are_those_of_the_definition(rng: np.random.Generator) -> None:
    candidates, labelled = rng.normal(size=(200, 3)), rng.normal(size=(1100, 3))
    scores = rng.normal(size=200)
    picked = diverse(scores, 6, rng, candidates=candidates, labelled=labelled)
    assert_array_equal(picked, farthest_first(scores, 6, candidates, labelled))


def test_diverse_batches_do_not_repeat_what_is_there(rng: np.random.Generator) -> None:
    """The ten highest scores are copies of one point: the highest alone takes nothing else, a diverse batch one of them."""
    candidates = np.vstack([np.full((10, 2), 3.0), rng.normal(size=(90, 2))])
    scores = np.append(np.full(10, 100.0), rng.uniform(size=90))
    assert set(top(scores, 10, rng)) == set(range(10))
    picked = diverse(scores, 10, rng, candidates=candidates, labelled=np.zeros((1, 2)))
    assert np.sum(picked < 10) == 1
    assert len(set(picked)) == 10


def test_diverse_batches_stay_within_the_shortlist(rng: np.random.Generator) -> None:
    candidates = np.append(np.zeros(95), np.full(5, 1e3))[:, None] + 0.01 * rng.normal(size=(100, 1))
    scores = -np.arange(100.0)  # the far points are the last: no shortlist of 10 has them
    assert set(diverse(scores, 2, rng, candidates=candidates, labelled=np.zeros((1, 1)))) <= set(range(10))
    assert len(set(diverse(scores[:7], 5, rng, candidates=candidates[:7], labelled=np.zeros((1, 1))))) == 5


def test_features_have_standard_units_and_constant_ones_do_not_count(rng: np.random.Generator) -> None:
    features = np.column_stack([rng.normal(5.0, 1e6, 200), rng.normal(-1.0, 1e-6, 200), np.full(200, 0.1)])
    units = in_standard_units(features)
    assert_allclose(units.mean(axis=0), 0.0, atol=1e-9)
    assert_allclose(units.std(axis=0), [1.0, 1.0, 0.0], rtol=1e-9)


def test_twenty_thousand_points_are_quick(rng: np.random.Generator) -> None:
    """A batch of 500 out of 20,000: the shortlist of 2,500 against 5,000 labelled points of 20 features."""
    candidates, labelled = rng.normal(size=(20_000, 20)), rng.normal(size=(5000, 20))
    started = perf_counter()
    assert len(set(diverse(rng.normal(size=20_000), 500, rng, candidates=candidates, labelled=labelled))) == 500
    assert len(set(softmax(rng.normal(size=20_000), 500, rng))) == 500
    assert perf_counter() - started < 5.0


SCORES = np.array([-3.0, 2.0, 2.0, 0.5, -7.0])


def test_raw_scores_are_left_alone_and_standardised_ones_count_standard_deviations() -> None:
    """Ten times 0.1 has a mean that is not 0.1; that rounding must not become a standard deviation."""
    assert_array_equal(scaled(SCORES, "raw"), SCORES)
    for unit in (1e-200, 1.0, 1e200):
        assert_allclose(scaled(SCORES * unit, "standardised"), (SCORES - SCORES.mean()) / SCORES.std(), rtol=1e-12)
    for level in (0.0, 0.1, -1e12):
        assert_array_equal(scaled(np.full(10, level), "standardised"), np.zeros(10))
    with pytest.raises(UnknownNameError, match="did you mean 'standardised'"):
        scaled(SCORES, "standardized")  # type: ignore[arg-type]


def test_ranks_are_logs_of_places_from_the_top_with_ties_averaged() -> None:
    assert_allclose(scaled(SCORES, "rank"), -np.log([4.0, 1.5, 1.5, 3.0, 5.0]))
    many = np.random.default_rng(0).integers(-20, 20, 1000) / 7.0
    assert_allclose(scaled(many, "rank"), -np.log(rankdata(-many)))


def test_ranks_do_not_depend_on_units_where_raw_scores_do() -> None:
    """What CRPS in metres picks, CRPS in millimetres picks too."""
    scores = np.random.default_rng(1).exponential(size=200)
    for how, same in (("raw", False), ("standardised", True), ("rank", True)):
        picks = [softmax(scaled(scores * unit, how), 20, np.random.default_rng(2)) for unit in (1.0, 1024.0)]
        assert np.array_equal(*picks) is same
