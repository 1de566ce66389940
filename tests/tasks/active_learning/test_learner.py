"""The loop: what a state holds and what is picked."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge

import uqprism as up
from uqprism.tasks.active_learning import gumbel_top_k

from .problems import EXCESS, Counted, X, Y, cubics, data, loop, picks


def test_each_round_labels_a_batch_and_looks_at_the_rest() -> None:
    fit = Counted()
    learner = loop(fit, measures=["crps.bayes.members"])
    states = list(learner)
    assert [state.round for state in states] == [0, 1, 2, 3]
    labelled = states[0].labelled
    assert len(set(labelled.tolist())) == 12
    for state, (inputs, targets) in zip(states, fit.calls, strict=True):
        assert_array_equal(state.labelled, labelled)
        assert_array_equal(inputs, X[labelled])
        assert_array_equal(targets, Y[labelled])
        assert_array_equal(state.pool, np.setdiff1d(np.arange(200), labelled))
        ensemble = cubics(inputs, targets, learner._loop.settings.fit_seed(state.round)).predict_ensemble(X[state.pool])
        expected = up.evaluate(ensemble, [EXCESS, "crps.bayes.members"])
        assert list(state.measures) == [EXCESS, "crps.bayes.members"]
        for name in expected:
            assert_array_equal(state.measures[name], expected[name])
        assert_array_equal(state.scores, expected[EXCESS])
        assert set(state.picked) <= set(state.pool)
        labelled = np.concatenate([labelled, state.picked])
    assert len(states[-1].labelled) == 12 + 3 * 6
    assert_array_equal(learner.labelled, labelled)
    assert len(set(learner.labelled.tolist())) == 12 + 4 * 6


def test_metrics_are_those_of_the_mixture_on_the_test_set() -> None:
    """Density, mean and CRPS of the mixture by direct computation; the CRPS by integrating its definition."""
    x, y = data(8, seed=5)
    learner = loop(rounds=1, test=(x, y))
    (state,) = learner
    ensemble = cubics(*(part[state.labelled] for part in (X, Y)), learner._loop.settings.fit_seed(0)).predict_ensemble(x)
    mean, scale = ensemble.members.mean, ensemble.members.scale
    density = norm.pdf(y, mean, scale).mean(axis=0)
    assert state.metrics["nll"] == pytest.approx(-np.log(density).mean(), rel=1e-12)
    assert state.metrics["rmse"] == pytest.approx(np.sqrt(np.mean((mean.mean(axis=0) - y) ** 2)), rel=1e-12)

    def gap(t: float, i: int) -> float:
        return (norm.cdf(t, mean[:, i], scale[:, i]).mean() - (t >= y[i])) ** 2

    crps = [quad(gap, -8.0, y[i], args=(i,))[0] + quad(gap, y[i], 8.0, args=(i,))[0] for i in range(8)]
    assert state.metrics["crps"] == pytest.approx(np.mean(crps), rel=1e-6)
    assert str(state) == f"round 0: 12 labelled, {', '.join(f'{name} {value:.4g}' for name, value in state.metrics.items())}"


def test_averages_are_over_rounds_and_without_a_test_set_there_are_no_metrics() -> None:
    learner = loop()
    states = list(learner)
    for name in ("nll", "rmse", "crps"):
        assert learner.averages[name] == pytest.approx(np.mean([state.metrics[name] for state in states]))
    learner = loop(test=None)
    states = list(learner)
    assert [dict(state.metrics) for state in states] == [{}] * 4
    assert learner.averages == {}
    assert str(states[1]) == "round 1: 18 labelled"


@pytest.mark.parametrize("selection", ["softmax", "top", "diverse"])
def test_iterating_again_gives_the_same_and_another_seed_something_else(selection: str) -> None:
    learner = loop(selection=selection)
    first = picks(learner)
    assert picks(learner) == first
    assert picks(loop(selection=selection, random_state=1)) != first


def test_selections_and_scores_change_what_is_picked() -> None:
    choices = [("selection", "softmax"), ("selection", "top"), ("selection", "diverse"), ("temperature", 100.0)]
    choices += [("scores", "raw"), ("scores", "rank")]
    assert len({str(picks(loop(initial=range(12), rounds=1, **{name: value}))) for name, value in choices}) == len(choices)


def test_top_picks_the_highest_scores_also_when_all_are_negative() -> None:
    learner = loop(acquisition=lambda ensemble: -np.exp(ensemble.members.mean[0]) - 5.0, selection="top")
    for state in learner:
        assert state.scores.max() < 0.0
        assert_array_equal(state.picked, state.pool[np.argsort(-state.scores)[:6]])
        assert len(state.measures) == 0


def test_softmax_of_negative_scores_prefers_the_higher_ones() -> None:
    """What Baal gets wrong: minus 1 is likelier than minus 9."""
    for state in loop(acquisition=lambda ensemble: -1.0 - 8.0 * (np.arange(ensemble.n_points) % 2), scores="raw"):
        assert_array_equal(state.scores[np.searchsorted(state.pool, state.picked)], np.full(6, -1.0))


def test_random_picks_do_not_depend_on_the_model_or_the_selection() -> None:
    plain = list(loop(acquisition="random"))
    for change in ({"selection": "top"}, {"selection": "diverse"}, {"fit": BayesianRidge()}):
        assert picks(loop(acquisition="random", **change)) == picks(plain)
    assert not np.array_equal(*(np.searchsorted(state.pool, state.picked) for state in plain[:2]))  # each round draws afresh
    assert not plain[0].scores.any()
    counts = np.zeros(40)
    for seed in range(300):
        (state,) = loop(x=X[:40], y=Y[:40], acquisition="random", rounds=1, random_state=seed, test=None)
        counts[state.picked] += 1
    assert counts.min() > 20  # 45 expected, with a standard deviation of 6.2
    assert counts.max() < 72


def test_initial_points_can_be_given_and_the_whole_pool_be_used_up() -> None:
    assert next(iter(loop(initial=[5, 3, 199, 7]))).labelled.tolist() == [5, 3, 199, 7]
    learner = loop(x=X[:36], y=Y[:36])
    last = list(learner)[-1]
    assert sorted(last.picked) == last.pool.tolist()
    assert sorted(learner.labelled) == list(range(36))


def test_measures_with_rules_of_ones_own_are_acquisitions_too() -> None:
    measure = up.Measure("narrow", "excess", "members", "members", up.rules.GaussianKernel(0.3, name="narrow"))
    state = next(iter(loop(acquisition=measure)))
    assert list(state.measures) == ["narrow.excess.members.members"]
    assert state.scores.min() > 0.0


def test_excess_risk_finds_the_half_that_nobody_has_labelled() -> None:
    """Labelled points lie on the left; more picks than chance's go to the right, and the model is better there for it."""
    start = np.flatnonzero(X[:, 0] < 0.0)[:12]
    right = data(400, seed=9)
    right = right[0][right[0][:, 0] > 0.0], right[1][right[0][:, 0] > 0.0]
    shares, errors = {}, {}
    for acquisition in ("random", EXCESS):
        chosen, error = [], []
        for seed in range(5):
            changed = {"initial": start, "scores": "rank", "random_state": seed, "rounds": 3, "test": right}
            states = list(loop(acquisition=acquisition, **changed))
            chosen.append(np.mean(X[states[0].picked, 0] > 0.0))
            error.append(states[1].metrics["rmse"])
        shares[acquisition], errors[acquisition] = np.mean(chosen), np.mean(error)
    assert shares[EXCESS] > shares["random"] + 0.25
    assert errors[EXCESS] < errors["random"]


def test_softmax_draws_are_those_of_gumbel_top_k() -> None:
    learner = loop(temperature=0.5, scores="raw", rounds=1)
    (state,) = learner
    rng = learner._loop.settings._random(1, 0)
    assert_array_equal(state.picked, state.pool[gumbel_top_k(state.scores / 0.5, 6, rng)])
    assert_allclose(state.scores[gumbel_top_k(state.scores / 1e-12, 6, rng)], np.sort(state.scores)[::-1][:6])
