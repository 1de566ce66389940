"""Regression trees as Gaussian members: the mean of a leaf, and the variance of the training targets around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, name, one_member
from uqprism.adapters.numbers import around_mean
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UnsupportedError
from uqprism.families import Draws

VARIANCE_CRITERIA = ("squared_error", "friedman_mse")  # those whose impurity is the variance of the targets in a node
ROUNDING = 32.0 * float(np.finfo(np.float64).eps)  # relative to the mean square of the targets


@adapters.register("forest")
class Forest(Adapter):
    """scikit-learn's random forests and extra trees, one Gaussian per tree."""

    supports = "random forests and extra trees (RandomForestRegressor, ExtraTreesRegressor)"
    kind = "forest"

    def matches(self, model: Any) -> bool:
        """Whether it is a forest of regression trees."""
        return is_a(model, "sklearn", "RandomForestRegressor", "ExtraTreesRegressor")

    def predict(
        self, model: Any, X: Array, *, min_samples: int = 5, training: tuple[Array, Array] | None = None
    ) -> EnsemblePrediction:
        """The mean and variance of the leaf that each tree sends a point to; with the training rows, their targets there."""
        if training is not None:
            return _training_draws(model, X, training)
        leaves = model.apply(X)  # checks the input as the forest does; its trees know no feature names
        mean, variance = (np.empty(leaves.shape[::-1]) for _ in range(2))
        for i, tree in enumerate(model.estimators_):
            label = f"tree {i} of the {name(model)}"
            mean[i], variance[i] = leaf_moments(tree, leaves[:, i], min_samples=min_samples, label=label)
        return EnsemblePrediction.gaussian(mean=mean, variance=variance, member_axis=0)

    def predict_member(self, model: Any, X: Array, *, validation: Any = None, variance: Array = None) -> EnsemblePrediction:
        """One Gaussian around the mean of the forest."""
        return around_mean(model, X, validation, variance)


@adapters.register("tree")
class Tree(Adapter):
    """scikit-learn's regression trees, one Gaussian each."""

    supports = "regression trees (DecisionTreeRegressor, ExtraTreeRegressor)"
    kind = "forest"

    def matches(self, model: Any) -> bool:
        """Whether it is a regression tree."""
        return is_a(model, "sklearn", "DecisionTreeRegressor")

    def predict(self, model: Any, X: Array, *, min_samples: int = 5) -> EnsemblePrediction:
        """The mean and variance of each point's leaf."""
        mean, variance = leaf_moments(model, model.apply(X), min_samples=min_samples, label=f"the {name(model)}")
        return one_member(model, "gaussian", mean=mean, variance=variance)


def leaf_moments(tree: Any, leaves: Array, *, min_samples: int, label: str) -> tuple[Array, Array]:
    """The mean and variance, (points,) each, that a fitted scikit-learn tree gives points in these leaves."""
    if min_samples < 1:
        raise InvalidValueError(f"min_samples must be at least 1, got {min_samples}")
    _check_tree(tree, label)
    values = tree.tree_.value[:, 0, 0]
    variances = node_variances(tree.tree_, min_samples)
    if variances is None:
        raise InvalidValueError(
            f"{label} was trained on targets that are all {values[0]:g}, so that there is no noise to estimate; "
            "use other training data, or subtract the mean from targets that vary less than their own rounding"
        )
    return values[leaves], variances[leaves]  # the mean stays that of the leaf, which is what the tree predicts


def leaf_draws(draws: Array, kept: Array) -> EnsemblePrediction:
    """One member per tree from the targets in its leaves, (most in a leaf, trees, points), equal weight where `kept` is true."""
    counts = kept.sum(axis=0)
    return EnsemblePrediction(Draws(np.where(kept, draws, 0.0), kept / counts))


def _training_draws(forest: Any, rows: Array, training: tuple[Array, Array]) -> EnsemblePrediction:
    """The targets of the training rows in each tree's leaf, as often as its bootstrap sample has them."""
    if len(training) != 2:
        raise ArgumentError("training must be a pair of rows and targets, (X_train, y_train)")
    inputs, targets = training[0], np.asarray(training[1], dtype=np.float64).reshape(-1)
    leaves, trained = forest.apply(rows).T, forest.apply(inputs).T
    if trained.shape[1] != len(targets):
        raise ShapeError(f"training must hold a target for each row, got {trained.shape[1]} rows and {len(targets)} targets")
    found = []
    for i, (tree, sample) in enumerate(zip(forest.estimators_, forest.estimators_samples_, strict=True)):
        _check_tree(tree, f"tree {i} of the {name(forest)}")
        if len(sample) and sample.max() >= len(targets):
            raise InvalidValueError(_other_rows(forest))
        drawn = trained[i][sample]
        order = np.argsort(drawn, kind="stable")
        first, last = (np.searchsorted(drawn[order], leaves[i], side=side) for side in ("left", "right"))
        places = first + np.arange((last - first).max(initial=1))[:, None]
        kept = places < last
        values = np.where(kept, targets[sample[order[np.minimum(places, len(order) - 1)]]], 0.0)
        # Other rows than those of the fit, or weights of rows, would pass unnoticed.
        if not np.allclose(values.sum(axis=0), kept.sum(axis=0) * tree.tree_.value[leaves[i], 0, 0], rtol=1e-6, atol=1e-9):
            raise InvalidValueError(_other_rows(forest))
        found.append((values, kept))
    most = max(len(kept) for _, kept in found)
    draws, kept = (np.stack([np.pad(x, ((0, most - len(x)), (0, 0))) for x in each], axis=1) for each in zip(*found, strict=True))
    return leaf_draws(draws, kept)


def _other_rows(forest: Any) -> str:
    return (
        f"training must be the rows and targets that the {name(forest)} was fitted to, without sample_weight: the means "
        "of its leaves are others"
    )


def node_variances(tree: Any, min_samples: int) -> Array | None:
    """For each node, the variance within the nearest node towards the root, itself included, that has enough rows.

    Enough is at least `min_samples` distinct training rows whose targets are not all equal; the root counts in any case. None
    if the root's targets are all equal.
    """
    # The impurity divides by n, not by n - 1, which is one reason to ask for several rows.
    variance, size = tree.impurity, tree.value[:, 0, 0]
    varies = variance > ROUNDING * (size * size + variance)  # an impurity is a difference of squares
    if not varies[0]:
        return None
    enough = varies & (tree.n_node_samples >= min_samples)  # a row that a bootstrap repeats counts once
    enough[0] = True
    parent = _parents(tree)
    found = np.arange(tree.node_count)
    climbing = np.flatnonzero(~enough)
    # A step for each level of the tree, not for each node.
    while len(climbing):
        found[climbing] = parent[found[climbing]]
        climbing = climbing[~enough[found[climbing]]]
    return variance[found]


def _parents(tree: Any) -> Array:
    parent = np.zeros(tree.node_count, dtype=np.intp)
    # Scikit-learn keeps the children of a node, not its parent.
    for children in (tree.children_left, tree.children_right):
        inner = np.flatnonzero(children >= 0)
        parent[children[inner]] = inner
    return parent


def _check_tree(tree: Any, label: str) -> None:
    if tree.criterion not in VARIANCE_CRITERIA:
        raise UnsupportedError(
            f"{label} was grown with criterion={tree.criterion!r}, whose nodes do not keep their variance; "
            "fit it with criterion='squared_error'"
        )
    if tree.n_outputs_ > 1:
        raise UnsupportedError(f"{label} predicts {tree.n_outputs_} targets; fit one model for each target")
