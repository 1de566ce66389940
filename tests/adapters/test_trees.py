"""Forests, bags of trees and single trees against their own predictions and their training rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeRegressor

import uqprism as up
from uqprism.errors import UqprismError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 3)).astype(np.float32)
y = X[:, 0] ** 2 + 0.3 * RNG.normal(size=120)


def path(tree: object, leaf: int) -> list[int]:
    """The nodes from this leaf to the root, found from the children."""
    nodes = [leaf]
    while nodes[-1] != 0:
        left, right = tree.children_left, tree.children_right
        nodes.append(int(np.flatnonzero((left == nodes[-1]) | (right == nodes[-1]))[0]))
    return nodes


def by_hand(estimator: object, points: np.ndarray, min_samples: int) -> list[float]:
    """The variance of the training targets in the smallest telling node, counted row by row; for trees without bootstrap."""
    inside = estimator.decision_path(X).toarray().astype(bool)
    variances = []
    for leaf in estimator.apply(points):
        rows = [y[inside[:, node]] for node in path(estimator.tree_, int(leaf))]
        found = next((r for r in rows if len(r) >= min_samples and np.var(r) > 1e-20), rows[-1])
        variances.append(float(np.var(found)))
    return variances


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_the_members_average_to_the_prediction(kind: type) -> None:
    forest = kind(n_estimators=12, random_state=0).fit(X, y)
    ens = up.from_model(forest, X[:40])
    assert (ens.n_members, ens.points_shape) == (12, (40,))
    assert_allclose(ens.mixture.mean, forest.predict(X[:40]), rtol=1e-12)
    assert_allclose(ens.members.mean, [tree.predict(X[:40]) for tree in forest.estimators_], rtol=1e-12)


@pytest.mark.parametrize("leaf", [1, 4])
@pytest.mark.parametrize("min_samples", [1, 5, 20, 1000])
def test_the_variance_is_that_of_the_training_rows_around_the_point(leaf: int, min_samples: int) -> None:
    """Without bootstrap the rows of each node are known, so every variance is counted again by hand."""
    forest = RandomForestRegressor(4, bootstrap=False, max_features=1, min_samples_leaf=leaf, random_state=0).fit(X, y)
    points = np.random.default_rng(4).normal(size=(30, 3)).astype(np.float32)
    ens = up.from_model(forest, points, min_samples=min_samples)
    expected = [by_hand(tree, points, min_samples) for tree in forest.estimators_]
    assert_allclose(ens.members.variance, expected, rtol=1e-9)


def test_bootstrapped_rows_count_once_for_the_size_and_as_drawn_for_the_variance() -> None:
    forest = RandomForestRegressor(3, min_samples_leaf=6, random_state=0).fit(X, y)
    ens = up.from_model(forest, X, min_samples=5)
    for i, tree in enumerate(forest.estimators_):
        rows = forest.estimators_samples_[i]
        leaves, drawn = tree.apply(X), tree.apply(X[rows])
        for point in range(20):
            inside = rows[drawn == leaves[point]]
            if len(np.unique(inside)) >= 5:
                assert_allclose(ens.members.variance[i, point], np.var(y[inside]), rtol=1e-9)


def test_ties_far_from_zero_are_not_taken_for_noise() -> None:
    """Impurities are differences of squares: equal targets of 1e5 must not leave a variance of rounding size."""
    forest = ExtraTreesRegressor(10, random_state=0).fit(X, 1e5 + np.round(y, 1))
    assert up.from_model(forest, X, min_samples=2).members.variance.min() > 1e-4


def test_bags_of_trees_are_forests() -> None:
    bag = BaggingRegressor(n_estimators=5, max_features=2, random_state=0).fit(X, y)
    ens = up.from_model(bag, X[:10])
    assert_allclose(ens.mixture.mean, bag.predict(X[:10]), rtol=1e-12)
    tree, columns = bag.estimators_[2], bag.estimators_features_[2]
    assert_array_equal(ens.members.variance[2], up.from_model(tree, X[:10][:, columns]).members.variance[0])


def test_noise_is_found_within_its_stated_bias() -> None:
    """With leaves large enough, the mean variance is near the noise that made the data."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.0, 1.0, size=(2000, 2))
    forest = RandomForestRegressor(20, min_samples_leaf=10, random_state=0)
    forest.fit(points, points[:, 0] + 0.5 * rng.normal(size=2000))
    assert 0.15 < up.decompose(up.from_model(forest, points), rule="squared_error").aleatoric.mean() < 0.3


def test_data_frames_pass_without_a_warning() -> None:
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for model in (RandomForestRegressor(3, random_state=0), BaggingRegressor(n_estimators=3, random_state=0)):
        named, plain = model.fit(frame, y), up.from_model(model, frame)
        assert_array_equal(plain.members.mean, up.from_model(model.fit(X, y), X).members.mean)
        with pytest.raises(ValueError, match="feature names"):
            up.from_model(named.fit(frame, y), frame.rename(columns={"a": "z"}))


def test_sparse_input() -> None:
    from scipy.sparse import coo_matrix, csr_matrix

    for model in (RandomForestRegressor(3, random_state=0), BaggingRegressor(n_estimators=3, max_features=2, random_state=0)):
        model.fit(X, y)
        for sparse in (csr_matrix, coo_matrix):
            assert_array_equal(up.from_model(model, sparse(X)).members.mean, up.from_model(model, X).members.mean)


def test_friedman_trees_keep_variances_too() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # scikit-learn 1.9 renames the criterion
        tree = DecisionTreeRegressor(criterion="friedman_mse", min_samples_leaf=5, random_state=0).fit(X, y)
    assert_allclose(up.from_model(tree, X[:20]).members.variance[0], by_hand(tree, X[:20], 5), rtol=1e-9)


def test_what_has_no_variance_is_refused() -> None:
    with pytest.raises(UqprismError, match=r"criterion='absolute_error'.*squared_error"):
        up.from_model(RandomForestRegressor(2, criterion="absolute_error").fit(X[:30], y[:30]), X)
    for targets, options, message in (
        (np.stack([y, y], axis=1), {}, "tree 0 of the RandomForestRegressor predicts 2 targets"),
        (np.full(len(X), 7.0), {}, "all 7, so that there is no noise"),
        (y, {"min_samples": 0}, "min_samples must be at least 1"),
        (y, {"n_members": 1}, "n_members is for .*Gaussian processes"),
    ):
        with pytest.raises(UqprismError, match=message):
            up.from_model(RandomForestRegressor(2).fit(X, targets), X, **options)
    for model in (RandomForestRegressor(), BaggingRegressor(), DecisionTreeRegressor()):
        with pytest.raises(NotFittedError):
            up.from_model(model, X)
