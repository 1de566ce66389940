"""NGBoost models: the members are the distributions that each model predicts."""

# ruff: noqa: N806 (X is what scikit-learn calls it)

from __future__ import annotations

import numpy as np
import pytest
from ngboost import NGBRegressor
from ngboost.distns import Laplace, LogNormal, Normal
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import BayesianRidge

import uqprism as up
from uqprism.errors import UqprismError


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(80, 2))
    return X, 5.0 + X[:, 0] + 0.2 * rng.normal(size=80)


def fitted(seed: int, distribution: type) -> NGBRegressor:
    X, y = data()
    return NGBRegressor(Dist=distribution, n_estimators=8, minibatch_frac=0.5, verbose=False, random_state=seed).fit(X, y)


def test_normal_models_are_gaussian_members() -> None:
    X, _ = data()
    models = [fitted(seed, Normal) for seed in range(3)]
    ens = up.from_model(models, X)
    for i, model in enumerate(models):
        assert_array_equal(ens.members.mean[i], model.pred_dist(X).params["loc"])
        assert_array_equal(ens.members.scale[i], model.pred_dist(X).params["scale"])
    assert up.from_model(models[0], X).n_members == 1


def test_laplace_models_are_laplace_members() -> None:
    X, _ = data()
    models = [fitted(seed, Laplace) for seed in range(2)]
    ens = up.from_model(models, X)
    assert isinstance(ens.members, up.Laplace)
    assert_array_equal(ens.members.location[1], models[1].pred_dist(X).params["loc"])
    assert_array_equal(ens.members.scale[1], models[1].pred_dist(X).params["scale"])


def test_gaussian_members_may_come_from_different_models() -> None:
    X, y = data()
    ens = up.from_model([fitted(0, Normal), BayesianRidge().fit(X, y)], X)
    assert_array_equal(ens.members.mean[1], BayesianRidge().fit(X, y).predict(X))


def test_other_distributions_and_mixed_families_are_refused() -> None:
    X, _ = data()
    with pytest.raises(UqprismError, match="one family, got gaussian and laplace"):
        up.from_model([fitted(0, Normal), fitted(0, Laplace)], X)
    with pytest.raises(UqprismError, match=r"model 0 of the list: NGBRegressor predicts a LogNormal"):
        up.from_model([fitted(0, LogNormal)], X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        up.from_model([NGBRegressor()], X)
