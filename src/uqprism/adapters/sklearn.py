"""Fitted models of scikit-learn, NGBoost and whoever keeps their manners, as Gaussian or Laplace ensembles.

Two tables say what is understood: `ENSEMBLES`, models that hold several members, and `MEMBERS`, models that are one. In both
the first row whose test accepts the model is taken. Classes are looked up among the modules already loaded, so nothing here
imports a library that the caller does not use.
"""

# ruff: noqa: ARG001 (the functions of a table share their arguments)

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.adapters import gaussian_processes
from uqprism.adapters.trees import tree_member
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UnsupportedError

GP_MEMBERS = 50
ACCEPTED = (
    "a random forest or extra trees regressor, a BaggingRegressor, a GaussianProcessRegressor, an NGBoost model with a Normal or "
    "Laplace distribution, a regression tree, any regressor with predict(X, return_std=True), a Pipeline or a finished parameter "
    "search of one of these, a list of such models, or any model with predict_ensemble(X)"
)


@dataclass(frozen=True)
class Options:
    """What a caller may choose; not every kind of model asks for all of it."""

    n_members: int | None
    min_samples: int


@dataclass(frozen=True)
class Member:
    """One distribution per point: the family's door and its parameters, (points,) each."""

    family: str
    parameters: dict[str, Array]


def from_sklearn(model: Any, rows: Array, *, n_members: int | None = None, min_samples: int = 5) -> EnsemblePrediction:
    """See `EnsemblePrediction.from_sklearn`."""
    if min_samples < 1:
        raise InvalidValueError(f"min_samples must be at least 1, got {min_samples}")
    model, rows = _unwrapped(model, rows)
    if n_members is not None and not _is_process(model):
        raise ArgumentError(
            f"n_members is for Gaussian processes; the members of a {_name(model)} are the models it holds: "
            "leave n_members out, or fit more or fewer of them"
        )
    return _first(ENSEMBLES, model)(model, rows, Options(n_members, min_samples))


# What a model is ------------------------------------------------------------------------------------------------------


def _class_test(module: str, *names: str) -> Callable[[Any], bool]:
    """Whether a model is of one of these classes; while their module is not loaded, it is not."""

    def test(model: Any) -> bool:
        loaded = sys.modules.get(module)
        return loaded is not None and isinstance(model, tuple(getattr(loaded, name) for name in names))

    return test


_is_pipeline = _class_test("sklearn.pipeline", "Pipeline")
_is_transformed = _class_test("sklearn.compose", "TransformedTargetRegressor")
_is_forest = _class_test("sklearn.ensemble", "RandomForestRegressor", "ExtraTreesRegressor")
_is_bagging = _class_test("sklearn.ensemble", "BaggingRegressor")
_is_process = _class_test("sklearn.gaussian_process", "GaussianProcessRegressor")
_is_tree = _class_test("sklearn.tree", "DecisionTreeRegressor")


def _is_list(model: Any) -> bool:
    return isinstance(model, list | tuple)


def _has_scale(model: Any) -> bool:
    try:
        return "return_std" in inspect.signature(model.predict).parameters
    except (AttributeError, TypeError, ValueError):  # no predict, or one that hides its arguments
        return False


def _name(model: Any) -> str:
    return type(model).__name__


def _unwrapped(model: Any, rows: Array) -> tuple[Any, Array]:
    """The model that predicts, and its input: pipelines transform first, searches hand on their best model."""
    while True:
        if _is_pipeline(model):
            if len(model) > 1:
                rows = model[:-1].transform(rows)
            model = model[-1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif _is_transformed(model):
            raise UnsupportedError(
                "a TransformedTargetRegressor predicts a transformed target, whose variance is not that of the target; "
                "pass its fitted .regressor_, and take the results as those of the transformed target"
            )
        else:
            return model, rows


def _first(table: Iterable[tuple[Callable[[Any], bool], Any]], model: Any) -> Any:
    for accepts, function in table:
        if accepts(model):
            return function
    raise UnsupportedError(f"cannot make an ensemble of {_name(model)}; accepted is {ACCEPTED}")


# Models that hold several members -------------------------------------------------------------------------------------


def _own(model: Any, rows: Array, options: Options) -> EnsemblePrediction:
    return model.predict_ensemble(rows)


def _forest(model: Any, rows: Array, options: Options) -> EnsemblePrediction:
    leaves = model.apply(rows)  # checks the input as the forest does; its trees know no feature names
    mean, variance = (np.empty(leaves.shape[::-1]) for _ in range(2))
    for i, tree in enumerate(model.estimators_):
        label = f"tree {i} of the {_name(model)}"
        mean[i], variance[i] = tree_member(tree, leaves[:, i], min_samples=options.min_samples, label=label)
    return EnsemblePrediction.gaussian(mean=mean, variance=variance)


def _bagging(model: Any, rows: Array, options: Options) -> EnsemblePrediction:
    rows = rows.tocsr() if hasattr(rows, "tocsr") else rows
    model.predict(rows[:1])  # checks the fit and the input as the bag does; its models know no feature names
    table = rows if hasattr(rows, "tocsr") else np.asarray(rows)
    parts = zip(model.estimators_, model.estimators_features_, strict=True)
    return _joined(_member(part, table[:, columns], options, f"model {i} of the bag") for i, (part, columns) in enumerate(parts))


def _process(model: Any, rows: Array, options: Options) -> EnsemblePrediction:
    n_members = GP_MEMBERS if options.n_members is None else options.n_members
    mean, variance = gaussian_processes.latent_draws(model, rows, n_members)
    return EnsemblePrediction.gaussian(mean=mean, variance=variance)


def _list(models: Any, rows: Array, options: Options) -> EnsemblePrediction:
    if not models:
        raise ArgumentError("the list must hold at least one fitted model, got none")
    return _joined(_member(model, rows, options, f"model {i} of the list") for i, model in enumerate(models))


def _single(model: Any, rows: Array, options: Options) -> EnsemblePrediction:
    return _joined([_member(model, rows, options, "the model")])


ENSEMBLES: tuple[tuple[Callable[[Any], bool], Callable[[Any, Array, Options], EnsemblePrediction]], ...] = (
    (lambda model: hasattr(model, "predict_ensemble"), _own),
    (_is_list, _list),
    (_is_forest, _forest),
    (_is_bagging, _bagging),
    (_is_process, _process),
    (lambda _: True, _single),
)


def _joined(members: Iterable[Member]) -> EnsemblePrediction:
    """One prediction out of members of one family, for the same points."""
    members = list(members)
    families = sorted({member.family for member in members})
    if len(families) > 1:
        raise ArgumentError(f"members must be of one family, got {' and '.join(families)}; make an ensemble of each")
    door = getattr(EnsemblePrediction, families[0])
    return door(**{name: np.stack([member.parameters[name] for member in members]) for name in members[0].parameters})


# Models that are one member -------------------------------------------------------------------------------------------


def _member(model: Any, rows: Array, options: Options, label: str) -> Member:
    model, rows = _unwrapped(model, rows)
    label = f"{label} ({_name(model)})"
    member: Member = _first(MEMBERS, model)(model, rows, options, label)
    for name, x in member.parameters.items():
        if np.ndim(x) != 1:
            raise ShapeError(f"{label} must predict one target, got {name} of shape {np.shape(x)}; fit one model for each target")
        bad = np.flatnonzero(~(np.isfinite(x) & ((x > 0.0) | (name in {"mean", "location"}))))
        if len(bad):
            rows = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
            wanted = "finite" if name in {"mean", "location"} else "finite and greater than zero"
            raise InvalidValueError(f"{label} must predict a {name} that is {wanted}, got {x[bad[0]]:g} in row {rows}")
    return member


def _nested(model: Any, rows: Array, options: Options, label: str) -> Member:
    raise UnsupportedError(f"{label} is an ensemble itself, not one member of another; pass it by itself")


def _tree(model: Any, rows: Array, options: Options, label: str) -> Member:
    mean, variance = tree_member(model, model.apply(rows), min_samples=options.min_samples, label=label)
    return Member("gaussian", {"mean": mean, "variance": variance})


def _process_member(model: Any, rows: Array, options: Options, label: str) -> Member:
    mean, variance = gaussian_processes.process_member(model, rows)
    return Member("gaussian", {"mean": mean, "variance": variance})


def _with_scale(model: Any, rows: Array, options: Options, label: str) -> Member:
    mean, scale = model.predict(rows, return_std=True)
    return Member("gaussian", {"mean": np.asarray(mean), "scale": np.asarray(scale)})


NGBOOST_FAMILIES = {  # by the name of the distribution's class: what `loc` and `scale` are called here
    "Normal": ("gaussian", "mean"),
    "NormalFixedMean": ("gaussian", "mean"),
    "NormalFixedVar": ("gaussian", "mean"),
    "Laplace": ("laplace", "location"),
}


def _boosted(model: Any, rows: Array, options: Options, label: str) -> Member:
    if getattr(model, "init_params", ()) is None:  # NGBoost itself fails on this later, without saying why
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"{label} is not fitted yet; call fit first")
    predicted = model.pred_dist(rows)
    kind = next(c.__name__ for c in type(predicted).__mro__ if not c.__name__.startswith("DistWith"))  # how NGBoost wraps some
    if kind not in NGBOOST_FAMILIES:
        raise UnsupportedError(f"{label} predicts a {kind}; of NGBoost's distributions, Normal and Laplace are accepted")
    family, centre = NGBOOST_FAMILIES[kind]
    location, scale = np.broadcast_arrays(predicted.loc, predicted.scale)
    return Member(family, {centre: location, "scale": scale})


MEMBERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Array, Options, str], Member]], ...] = (
    (lambda model: hasattr(model, "predict_ensemble") or _is_list(model) or _is_forest(model) or _is_bagging(model), _nested),
    (_is_tree, _tree),
    (_is_process, _process_member),
    (_has_scale, _with_scale),
    (lambda model: hasattr(model, "pred_dist"), _boosted),
)
