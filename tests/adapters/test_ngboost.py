"""NGBoost models: the members are the distributions that each model predicts."""

from __future__ import annotations

import numpy as np
import pytest
from ngboost import NGBRegressor
from ngboost.distns import Laplace, MultivariateNormal, Normal
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import BayesianRidge

import uqprism as up
from uqprism.errors import UqprismError

RNG = np.random.default_rng(9)
X = RNG.normal(size=(80, 2))
y = 5.0 + X[:, 0] + 0.2 * RNG.normal(size=80)


def fitted(seed: int, distribution: type, targets: np.ndarray = y) -> NGBRegressor:
    model = NGBRegressor(Dist=distribution, n_estimators=8, minibatch_frac=0.5, verbose=False, random_state=seed)
    return model.fit(X, targets)


@pytest.mark.parametrize(("distribution", "family"), [(Normal, up.Gaussian), (Laplace, up.Laplace)])
def test_members_are_of_the_family_that_the_models_predict(distribution: type, family: type) -> None:
    models = [fitted(seed, distribution) for seed in range(2)]
    members = up.from_model(models, X).members
    assert isinstance(members, family)
    for i, model in enumerate(models):
        assert_array_equal(members.centre[i], model.pred_dist(X).params["loc"])
        assert_array_equal(members.scale[i], model.pred_dist(X).params["scale"])
    assert up.from_model(models[0], X).n_members == 1


def test_gaussian_members_may_come_from_different_models() -> None:
    ens = up.from_model([fitted(0, Normal), BayesianRidge().fit(X, y)], X)
    assert_array_equal(ens.members.mean[1], BayesianRidge().fit(X, y).predict(X))


def test_other_distributions_and_mixed_families_are_refused() -> None:
    with pytest.raises(UqprismError, match="one family, got gaussian and laplace"):
        up.from_model([fitted(0, Normal), fitted(0, Laplace)], X)
    with pytest.raises(UqprismError, match=r"model 0 of the list: the distribution MVN has no family"):
        up.from_model([fitted(0, MultivariateNormal(2), np.stack([y, X[:, 1]], axis=1))], X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        up.from_model([NGBRegressor()], X)
