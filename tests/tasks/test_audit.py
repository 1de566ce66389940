"""The audit finds what is promised and what is kept, on models whose promises are known."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

import uqprism as up
from uqprism.arrays import normal_quantile
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.tasks.active_learning.models import Fit
from uqprism.tasks.audit import Audit, Promise
from uqprism.tasks.audit.evidence import KEPT
from uqprism.tasks.audit.plan import Plan
from uqprism.tasks.audit.promise import FOUND, RETURN, SPREAD, WANDER, correction, doubled, sums, weights_of, widened

SQUARED, CRPS = "squared_error.excess.members.members", "crps.excess.members.members"
ROOT = Path(__file__).parents[2]
SCALE = 0.5
EVEN = normal_quantile((np.arange(50) + 0.5) / 50)  # the quantiles of a Gaussian
EVEN /= EVEN.std()


class Draws:
    """Members that predict one number everywhere, each the mean of a sample of the targets of its own size."""

    def __init__(self, means: Any, scale: float = SCALE) -> None:
        self.means, self.scale = np.asarray(means, float), scale

    def predict_ensemble(self, X: Any) -> up.EnsemblePrediction:
        mean = np.repeat(self.means[:, None], len(X), axis=1)
        return up.EnsemblePrediction.gaussian(mean=mean, scale=np.full_like(mean, self.scale), member_axis=0)


def posterior(X: Any, y: Any, seed: int = 0) -> Draws:
    """The posterior of a mean with known noise, by its quantiles: the model is true, so what it promises is what goes."""
    return Draws(np.mean(y) + SCALE / np.sqrt(len(y)) * EVEN)


def stubborn(X: Any, y: Any, seed: int = 0) -> Draws:
    """Members that disagree as much however many rows there are."""
    return Draws(np.mean(y) + 0.3 * EVEN)


def problem(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return np.zeros((n, 1)), SCALE * rng.standard_normal(n)


X, Y = problem(512)
TEST = problem(500, 1)


def test_a_true_posterior_keeps_its_promise() -> None:
    """The excess of its mixture at m rows is what is lost by not knowing the mean: half of it goes with twice the rows."""
    measure = "squared_error.excess.mixture.members"
    found = [up.audit(posterior, *problem(512, seed), test=TEST, measures=measure, repeats=1, resamples=0) for seed in range(40)]
    excess, penalty = (np.mean([getattr(each, name)[0] for each in found], axis=0) for name in ("excess", "penalty"))
    np.testing.assert_allclose(excess, SCALE**2 / np.array(found[0].sizes), rtol=1e-6)
    went = penalty[:-1] - penalty[1:]
    np.testing.assert_allclose(went[:2] / excess[:2], 0.5, atol=0.1)


def test_members_that_never_agree_promise_what_does_not_go() -> None:
    promise = up.audit(stubborn, X, Y, test=TEST, measures=CRPS, repeats=2, resamples=50).first
    value, low, high = promise.after(4)
    assert abs(value) < 0.1
    assert low <= value <= high
    assert promise.promised[-1] > 0.1
    assert promise.procedural[0] == pytest.approx(promise.excess[0], rel=0.2)
    assert abs(promise.data[0]) < 0.3 * promise.procedural[0]


def test_the_parts_of_the_disagreement_are_those_of_seeds_and_rows() -> None:
    """Members of one training set differ by seeds alone, those of two also by rows: twice the variance of their means."""

    def fit(X: Any, y: Any, seed: int = 0) -> Draws:
        return Draws(np.mean(y) + np.random.default_rng(seed).normal(scale=0.1, size=50))

    found = [up.audit(fit, *problem(256, seed), test=TEST, measures=SQUARED, repeats=1, resamples=0).first for seed in range(40)]
    seeds, rows = (np.mean([getattr(each, name)[0] for each in found]) for name in ("procedural", "data"))
    assert seeds == pytest.approx(2.0 * 0.1**2, rel=0.1)
    assert rows == pytest.approx(2.0 * SCALE**2 / 32.0, rel=0.2)


def test_penalties_are_those_of_the_rules() -> None:
    """The penalty of each prediction is the score that its rule gives."""
    ens = Draws([0.0, 0.3, -0.1]).predict_ensemble(X[:5])
    from uqprism.measures import Measure
    from uqprism.tasks.audit.measuring import realised

    for rule in (up.rules.CRPS(), up.rules.Log(), up.rules.Quadratic(), up.rules.SquaredError()):
        for role in ("mixture", "matched", "pooled"):
            measure = Measure.parse(f"{rule.name}.excess.{role}.members")
            expected = rule.score(getattr(ens, role), Y[:5])
            np.testing.assert_allclose(realised(ens, Y[:5], measure), expected, rtol=1e-9, atol=1e-12)
        each = Measure.parse(f"{rule.name}.excess.members.members")
        np.testing.assert_allclose(realised(ens, Y[:5], each), rule.score(ens.members, Y[:5]).mean(axis=0))


def test_parts_of_a_size_share_no_row_and_are_unions_of_two() -> None:
    plan = Plan.of(100, has_test=False, parts=4, repeats=3, test_share=0.25, seed=0)
    assert plan.sizes == [18, 36, 72]
    for repeat in range(3):
        rows = [plan.rows(level, repeat) for level in range(3)]
        assert len(np.unique(rows[2])) == 72
        assert set(rows[1][0]) == {*rows[0][0], *rows[0][1]}
        assert not set(rows[2][0]) & set(plan.test[repeat])
    assert len(np.unique(plan.test)) == 75


def test_networks_are_trained_as_one_stack_and_alike_alone() -> None:
    from uqprism.training import MLP, StackedFit

    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(96, 2))
    targets = inputs[:, 0] + 0.1 * rng.normal(size=96)
    settings = {"n_members": 2, "network": MLP((4,)), "max_epochs": 3, "bootstrap": True, "progress": False}
    stack = StackedFit(**settings)
    how = {"measures": CRPS, "parts": 2, "repeats": 2, "resamples": 0}
    together = up.audit(stack, inputs, targets, **how)
    alone = up.audit(stack.__call__, inputs, targets, **how)
    np.testing.assert_allclose(together.penalty, alone.penalty, rtol=1e-4)
    np.testing.assert_allclose(together.excess, alone.excess, rtol=1e-3)


def test_a_regressor_of_networks_is_trained_as_one_stack_and_alike_alone() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(96, 2))
    targets = inputs[:, 0] + 0.1 * rng.normal(size=96)
    regressor = up.MCDropoutRegressor(n_members=3, hidden=(8,), max_epochs=3, progress=False)
    how = {"measures": CRPS, "parts": 2, "repeats": 1, "resamples": 0}
    together = up.audit(regressor, inputs, targets, **how)

    alone = Fit.of(regressor).one
    np.testing.assert_allclose(together.penalty, up.audit(alone, inputs, targets, **how).penalty, rtol=1e-4)
    by_hand = clone(regressor).set_params(random_state=5).fit(inputs, targets)
    (stacked,) = regressor.many(inputs, targets, np.arange(96)[None], [5])
    np.testing.assert_allclose(stacked.predict(inputs), by_hand.predict(inputs), rtol=1e-4, atol=1e-5)


def test_a_forest_in_two_processes_is_that_of_one() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(96, 2))
    how = {"measures": CRPS, "parts": 2, "repeats": 2, "resamples": 10}
    one, two = (up.audit(RandomForestRegressor(3), inputs, inputs[:, 0], n_jobs=jobs, **how) for jobs in (None, 2))
    np.testing.assert_array_equal(one.penalty, two.penalty)
    np.testing.assert_array_equal(one.replicates, two.replicates)


def test_an_audit_goes_on_where_it_stopped(tmp_path: Path) -> None:
    trained = []

    def fit(X: Any, y: Any, seed: int = 0) -> Draws:
        if len(trained) == 5:
            raise KeyboardInterrupt
        trained.append(len(y))
        return posterior(X, y, seed)

    how = {"measures": CRPS, "parts": 4, "repeats": 1, "test": TEST, "folder": tmp_path / "kept"}
    with pytest.raises(KeyboardInterrupt):
        up.audit(fit, X, Y, **how)
    trained.clear()
    found = up.audit(fit, X, Y, **how)
    assert trained == [256, 256, 512]
    whole = up.audit(posterior, X, Y, **{**how, "folder": None})
    np.testing.assert_array_equal(found.penalty, whole.penalty)
    with pytest.raises(ArgumentError, match="holds another audit: pool_targets differ"):
        up.audit(fit, X, Y + 1.0, **how)


def test_an_audit_is_saved_and_loaded(tmp_path: Path) -> None:
    found = up.audit(posterior, X, Y, test=TEST, measures=[CRPS, SQUARED], repeats=2, resamples=20)
    found.save(tmp_path / "audit.npz")
    again = Audit.load(tmp_path / "audit.npz")
    assert str(again) == str(found)
    assert again.to_json() == found.to_json()
    assert list(again) == [CRPS, SQUARED]
    assert found.to_pandas().shape == (8, 8)
    assert found.summary()[0]["factor_2x"] == found[CRPS].factor


def test_a_factor_is_the_slope_of_what_went() -> None:
    """With a promise that is kept at a fixed share below face value, the correction says what follows, also between doublings."""
    promise = 2.0 * 0.5 ** np.arange(4)
    penalty = 1.0 + 0.8 * promise
    found, _ = correction(promise, penalty, None)
    np.testing.assert_allclose(doubled(promise, penalty), 0.4)
    assert (found.factor, found.rate, found.settles) == pytest.approx((0.4, 0.5, 0.4))
    assert found.after(4) == pytest.approx(0.6)
    assert found.after(2**20) == pytest.approx(0.8)
    assert found.after(1) == 0.0
    assert sums(1.0, 3.0) == 3.0


def test_what_goes_beyond_face_value_goes_less_with_every_doubling() -> None:
    """Of an excess that halves, half goes with a doubling at face value; what went beyond that shrinks doubling by doubling."""
    promise, beyond = 0.5 ** np.arange(4), 0.8
    penalty = 5.0 - np.cumsum([0.0, *((0.5 + beyond) * promise[:-1])])
    found, _ = correction(promise, penalty, None)
    shares = 0.5 + beyond * RETURN ** np.arange(1, 30)
    assert found.factor == pytest.approx(shares[0])
    assert found.settles == 0.5
    for doublings in (1, 2, 29):
        assert found.after(2.0**doublings) == pytest.approx(shares[:doublings] @ 0.5 ** np.arange(doublings))


def test_weights_are_those_of_the_conditional_mean() -> None:
    """The share at the last doubling given all measurements, by conditioning the joint Gaussian of shares and errors."""
    rng = np.random.default_rng(0)
    shares, errors = rng.normal(size=4), rng.uniform(0.1, 1.0, size=4)
    wander = WANDER**2 * np.mean(shares**2)
    first = 1e9  # of which nothing is known before it is measured
    spread = np.empty((4, 4))
    for i in range(4):
        for j in range(4):
            steps = sum(RETURN ** (i - k) * RETURN ** (j - k) * wander for k in range(1, min(i, j) + 1))
            spread[i, j] = RETURN ** (i + j) * first + steps
    expected = spread[3] @ np.linalg.inv(spread + np.diag(errors))
    np.testing.assert_allclose(weights_of(shares, errors), expected, rtol=1e-5)
    np.testing.assert_array_equal(weights_of(shares, np.zeros(4)), [0.0, 0.0, 0.0, 1.0])


def test_uncertain_doublings_count_together() -> None:
    shares = np.array([0.9, 0.7, 0.5])
    certain, uncertain = (weights_of(shares, np.full(3, error**2)) for error in (0.01, 1.0))
    assert certain[-1] > 0.99
    assert uncertain[0] > 0.2
    assert uncertain.sum() < 1.0  # the share has returned since


def test_intervals_are_wider_than_those_of_resamples() -> None:
    """By how far factors are off on other sets, also where resamples agree."""
    low, high = widened(0.5, (0.5, 0.5))
    assert (low, high) == pytest.approx((0.5 - 1.96 * SPREAD * 0.5, 0.5 + 1.96 * FOUND * 0.5))
    assert widened(0.0, (-0.1, 0.2)) == pytest.approx((-0.1, 0.2))
    low, high = widened(-0.5, (-0.6, -0.2))
    assert low < -0.6
    assert high > -0.2


def test_a_share_that_still_rises_is_told() -> None:
    excess = 0.5 ** np.arange(4)
    for shares, settled in (((0.2, 0.4, 0.9), False), ((0.9, 0.4, 0.2), True)):
        penalty = 1.0 - np.cumsum([0.0, *(np.array(shares) * excess[:-1])])
        found = Promise(CRPS, (50, 100, 200, 400), excess, excess, penalty, excess, excess)
        assert found.settled == settled
        assert ("still rising" in found.sentence()) != settled


@pytest.fixture(scope="module")
def measured() -> Any:
    """The page of the stored audits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("audit_page")


def test_what_the_report_quotes_and_the_page_shows_was_measured(measured: Any) -> None:
    """The numbers of each kind are those of the stored audits, and so are the tables of the page on audits."""
    assert {kind: (each.sets, each.middle, each.low, each.high) for kind, each in KEPT.items()} == measured.evidence()
    page = (ROOT / "docs" / "audit.md").read_text()
    assert [line for line in measured.for_docs() if line not in page] == []


def test_factors_of_networks_on_resampled_rows_hold_on_most_sets_in_view_and_fewer_fresh_ones(measured: Any) -> None:
    """How many mean factors are within a fifth of what twice and four times the rows removed on other sets."""
    for measure, sets, count, least in (
        (measured.MAIN, measured.KNOWN, 11, (7, 7)),
        (measured.LOG, measured.KNOWN, 11, (8, 9)),
        (measured.MAIN, measured.FRESH, 7, (3, 3)),
        (measured.LOG, measured.FRESH, 7, (5, 5)),
    ):
        every = measured.judged(measured.CLOSELY, measure, sets)
        assert len(every) == count
        ratios = np.array([factors[..., 0].mean(axis=0) / truth for factors, truth, _, _ in every.values()])
        assert ((np.abs(ratios - 1.0) <= 0.2).sum(axis=0) >= least).all()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"parts": 6}, ArgumentError, "parts must be a power of two"),
        ({"parts": 256}, InvalidValueError, "too few for 256 parts"),
        ({"test_share": 1.0}, InvalidValueError, "test_share must be between 0 and 1"),
        ({"resamples": 1}, InvalidValueError, "resamples must be 0"),
        ({"measures": "crps.total.members.members"}, ArgumentError, "measures must have an excess risk"),
        ({"measures": "crps.excess.mixture.mixture"}, ArgumentError, "crps.excess.mixture.mixture, which promises nothing"),
        ({"predict": lambda *_: 3}, ArgumentError, "predict must return an EnsemblePrediction, got int"),
    ],
)
def test_what_cannot_be_audited_is_refused(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        up.audit(posterior, X, Y, **settings)


def test_a_growth_that_was_not_measured_is_refused_or_unknown() -> None:
    promise = up.audit(posterior, X, Y, test=TEST, measures=CRPS, repeats=1, resamples=0).first
    assert np.isnan(promise.went(16)).all()
    with pytest.raises(InvalidValueError, match="growth must be 2, 4, 8"):
        promise.went(3)
    with pytest.raises(InvalidValueError, match="growth must be at least 1"):
        promise.after(0.5)
