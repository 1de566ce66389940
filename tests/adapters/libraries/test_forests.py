"""Draws of leaves against the forests' own distributions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from uqprism.errors import InvalidValueError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore")  # of quantiles that cross


def test_the_mixture_of_the_trees_is_what_the_quantile_forest_predicts(page: Callable) -> None:
    """Its mean, its quantiles, and its CRPS against the targets from a thousand of its quantiles."""
    names = page("quantile_forest")
    forest, ens, X_new = names["forest"], names["ens"], names["X_new"]
    weighted = {"weighted_leaves": True}
    assert_allclose(ens.mixture.mean, forest.predict(X_new, quantiles="mean", **weighted), rtol=1e-10)
    levels = [0.01317, 0.2113, 0.4971, 0.7713, 0.9537]
    low, high = (forest.predict(X_new, quantiles=levels, interpolation=side, **weighted).T for side in ("lower", "higher"))
    for i, level in enumerate(levels):  # of the two targets between which it interpolates, one is ours
        ours = ens.mixture.quantile(level)
        assert (np.isclose(ours, low[i], rtol=1e-12) | np.isclose(ours, high[i], rtol=1e-12)).all()
    y = np.sin(2.0 * X_new[:, 0])
    grid = (np.arange(1000) + 0.5) / 1000
    values = forest.predict(X_new, quantiles=grid.tolist(), interpolation="lower", **weighted)
    pinball = 2.0 * np.mean(np.where(y[:, None] < values, 1.0 - grid, -grid) * (values - y[:, None]), axis=1)
    assert_allclose(up.rules.CRPS().score(ens.mixture, y), pinball, rtol=0.01)


def test_with_levels_a_quantile_forest_is_one_member(page: Callable) -> None:
    names = page("quantile_forest")
    members = names["quantiles"].members
    for i, forest in enumerate(names["forests"]):
        own = forest.predict(names["X_new"], quantiles=list(members.levels))
        assert_array_equal(members.values[:, i].T, own)
    assert up.from_model(names["forest"], names["X_new"], levels=[0.1, 0.9], tails="none").n_members == 1


def test_the_rows_in_the_leaves_have_the_mean_and_variance_of_the_leaves(page: Callable) -> None:
    names = page("sklearn")
    forest, draws, X_new = names["forest"], names["draws"], names["X_new"]
    gaussian = up.from_model(forest, X_new)
    assert_allclose(draws.mixture.mean, forest.predict(X_new), rtol=1e-12)
    assert_allclose(draws.members.mean, gaussian.members.mean, rtol=1e-12)
    assert_allclose(draws.members.variance, gaussian.members.variance, rtol=1e-9)  # leaves of five rows or more


def test_the_rows_in_the_leaves_are_those_that_the_tree_was_grown_on(page: Callable) -> None:
    names = page("sklearn")
    forest, draws, X_new = names["forest"], names["draws"].members, names["X_new"]
    leaves, trained = forest.apply(X_new), forest.apply(names["X"])
    for tree, point in ((0, 0), (7, 20), (99, 39)):
        sample = forest.estimators_samples_[tree]
        inside = names["y"][sample[trained[sample, tree] == leaves[point, tree]]]
        kept = draws.weights[:, tree, point] > 0.0
        assert_array_equal(np.sort(draws.draws[kept, tree, point]), np.sort(inside))
        assert_allclose(draws.weights[kept, tree, point], 1.0 / len(inside))


def test_other_training_rows_are_refused(page: Callable) -> None:
    names = page("sklearn")
    for training, error in (
        ((names["X"], -names["y"]), InvalidValueError),
        ((names["X"][::-1], names["y"]), InvalidValueError),
        ((names["X"], names["y"][:-1]), ShapeError),
    ):
        with pytest.raises(error, match="training must"):
            up.from_model(names["forest"], names["X_new"], training=training)
