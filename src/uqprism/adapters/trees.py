"""Regression trees as Gaussian members: the mean of a leaf, and the variance of the training targets around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.arrays import Array
from uqprism.errors import InvalidValueError, UnsupportedError

VARIANCE_CRITERIA = ("squared_error", "friedman_mse")
ROUNDING = 32.0 * float(np.finfo(np.float64).eps)


def tree_member(tree: Any, leaves: Array, *, min_samples: int, label: str) -> tuple[Array, Array]:
    """The mean and variance, (points,) each, that a fitted scikit-learn tree gives points in these leaves."""
    _check_tree(tree, label)
    values = tree.tree_.value[:, 0, 0]
    variances = node_variances(tree.tree_, min_samples)
    if variances is None:
        raise InvalidValueError(
            f"{label} was trained on targets that are all {values[0]:g}, so that there is no noise to estimate; "
            "use other training data, or subtract the mean from targets that vary less than their own rounding"
        )
    return values[leaves], variances[leaves]


def node_variances(tree: Any, min_samples: int) -> Array | None:
    """For each node, the variance within the nearest node on its way to the root that can tell one, itself included.

    That is a node with at least `min_samples` distinct training rows whose targets are not all equal, or failing that the
    root. None where the root's targets are all equal too.
    """
    variance, size = tree.impurity, tree.value[:, 0, 0]
    varies = variance > ROUNDING * (size * size + variance)  # an impurity is a difference of squares
    if not varies[0]:
        return None
    tells = varies & (tree.n_node_samples >= min_samples)
    tells[0] = True
    parent = _parents(tree)
    found = np.arange(tree.node_count)
    climbing = np.flatnonzero(~tells)
    while len(climbing):
        found[climbing] = parent[found[climbing]]
        climbing = climbing[~tells[found[climbing]]]
    return variance[found]


def _parents(tree: Any) -> Array:
    parent = np.zeros(tree.node_count, dtype=np.intp)
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
