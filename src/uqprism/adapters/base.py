"""`from_model`, and what an adapter for another library's models is.

An adapter is one file in this package: a class registered in `adapters` that recognises a kind of model and predicts with it.
Models are recognised by the names of their classes and modules, so that no library is imported before it is used.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import numpy as np

from uqprism.adapters.levels import Level, together
from uqprism.arrays import Array, is_array, namespace
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.origin import UNKNOWN_KIND, Origin
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UnsupportedError, UqprismError
from uqprism.families import Draws, Family, Gaussian, families
from uqprism.registry import Registry
from uqprism.support.optional import require


class Adapter(ABC):
    """One kind of model that `from_model` accepts.

    Attributes:
        supports: the kind of model, in the plural, for messages.
        priority: where several adapters match a model, the one with the highest priority predicts.
        takes_rows: False for what has predicted already, which takes no X.
        kind: what the members are, one of `uqprism.ensemble.origin.KINDS`.
    """

    supports: ClassVar[str]
    priority: ClassVar[int] = 0
    takes_rows: ClassVar[bool] = True
    kind: ClassVar[str] = UNKNOWN_KIND

    @abstractmethod
    def matches(self, model: Any) -> bool:
        """Whether this adapter can predict with the model; it must not import the model's library to find out."""

    @abstractmethod
    def predict(self, model: Any, X: Array, *args: Any, **options: Any) -> EnsemblePrediction:
        """What the model predicts for the rows of X. Its keyword-only arguments are the options that `from_model` accepts."""

    def kind_of(self, model: Any) -> str:
        """What the members of this model are; by default the same for all models of the adapter."""
        return self.kind

    def predict_member(self, model: Any, X: Array, *args: Any, **options: Any) -> EnsemblePrediction | Level:
        """What the model predicts as one member of a list or a bag, or as the part of a member that it is."""
        prediction = self.predict(model, X, **options)
        if prediction.n_members > 1:
            raise UnsupportedError(f"{name(model)} is an ensemble itself, not one member of another; pass it by itself")
        return prediction


class Wrapper(Adapter):
    """A model around another model, which predicts in its place."""

    @abstractmethod
    def unwrap(self, model: Any, X: Array) -> tuple[Any, Array]:
        """The model inside, and the rows that it takes."""

    def predict(self, model: Any, X: Array, *args: Any, **options: Any) -> EnsemblePrediction:
        """What the model inside predicts."""
        return from_model(*self.unwrap(model, X), **options)


adapters: Registry[type[Adapter]] = Registry("adapter", "uqprism.adapters")


def from_model(model: Any, X: Array = None, **options: Any) -> EnsemblePrediction:
    """What a fitted model of another library predicts for the rows of X, as an ensemble.

    The [table of models](../models.md) says which members each kind of model gives, and with which options. A list of models
    gives one member per model; of models that predict one quantile each, the first of every level make a member. A pipeline
    transforms X first. A finished search such as `GridSearchCV` predicts with its best model. An ensemble of one
    member has an excess risk of zero.

    **Trees.** The variance is that of the training targets in the leaf, with the tree's bootstrap sample and weights.
    Leaves of fully grown trees hold one row or a few, which have no variance. The nearest node towards the root is then used
    that has `min_samples` distinct rows and different targets. This has two biases: few rows that the tree itself chose to be
    alike understate the noise, and the rows of a larger node differ also in what can be predicted, which overstates it. The
    default of 5 was best or nearly so (log score of the mixture, within 0.1 of the best of 2 to 50) for forests of several
    kinds on three public tables. Where the noise itself matters, fit with `min_samples_leaf` of 5 or more, so that mean and
    variance come from the same leaf.

    **Gaussian processes.** The noise is `alpha` plus the white part of the kernel, with `normalize_y` undone. An `alpha` up to
    scikit-learn's default of 1e-10 counts as jitter, not as noise. The members lie at evenly spaced quantiles of the posterior
    at each point, so that their mean and variance are the posterior's own. Member i is not a sample of a function: its quantile
    is the same everywhere. In a list or a bag, a process is one Gaussian, with latent uncertainty and noise together.

    Args:
        model: a fitted model, or a list of them; or what has predicted already: a distribution object, or a list of those.
        X: rows to predict, as the model takes them: array, data frame, sparse matrix, tensor or loader; none for what has
            predicted already.
        options: of the adapter that recognises the model.

    Raises:
        UnsupportedError: a kind of model that does not say how uncertain it is, or one with several targets.
        ArgumentError: an option that the model's adapter does not have, or an X that is missing or too much.
        InvalidValueError: a model without noise: constant training targets, a standard deviation of zero.
    """
    adapter, model, rows, options = _resolve(model, X, options)
    check_options(options, option_names(adapter.predict), model)
    found: Any = adapter.predict(model, rows, **options)
    if not isinstance(found, EnsemblePrediction):  # of a `predict_ensemble` that returns something else, which callers refuse
        return found
    # A model of this package, or a list, says itself what its members are.
    kind = found.origin.kind if found.origin.is_known else adapter.kind_of(model)
    return found.made_by(Origin(adapters.name_of(type(adapter)) or UNKNOWN_KIND, kind, found.n_members))


def join(parts: Iterable[tuple[str, Any, Callable[[Array], Array]]], X: Array, options: dict[str, Any]) -> EnsemblePrediction:
    """One ensemble of several models, each with a label for messages and a function that gives it its part of the rows.

    Each model takes the options that its adapter has; an option that none of them has is refused.
    """
    members: list[EnsemblePrediction] = []
    levels: list[Level] = []
    known: set[str] = set()
    kinds: set[str] = set()
    for label, given, view in parts:
        with _labelled(label):
            adapter, model, rows, seen = _resolve(given, None if X is None else view(X), _viewed(view, options))
            names = option_names(adapter.predict_member)
            names = option_names(adapter.predict) if "**" in names else names  # it passes them on to `predict`
            member = adapter.predict_member(model, rows, **{key: value for key, value in seen.items() if key in names})
            (levels if isinstance(member, Level) else members).append(member)  # type: ignore[arg-type]
            kinds.add(adapter.kind_of(model))
        known |= names
    check_options(options, known, model)
    found = stacked(members + (together(levels) if levels else []))
    return found.made_by(Origin(kind=kinds.pop() if len(kinds) == 1 else UNKNOWN_KIND, n_members=found.n_members))


def one_member(model: Any, family: str, **parameters: Any) -> EnsemblePrediction:
    """One member of this family, from parameters of shape (points,); a value out of range is reported by model and row."""
    given = {key: np.asarray(x) for key, x in parameters.items()}
    for key, x in given.items():
        if x.ndim != 1:
            raise ShapeError(
                f"{name(model)} must predict one target, got {key} of shape {x.shape}; fit one model for each target"
            )
        free = key in {"mean", "location", "log_mean", "low", "high"}  # to have any sign
        bad = np.flatnonzero(~(np.isfinite(x) & (free | (x > 0.0))))
        if len(bad):
            rows = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
            wanted = "finite" if free else "finite and greater than zero"
            raise InvalidValueError(f"{name(model)} must predict a {key} that is {wanted}, got {x[bad[0]]:g} in row {rows}")
    members: dict[str, Any] = {key: x[None] for key, x in given.items()}
    return EnsemblePrediction(families.get(family)(**members))


def is_a(model: Any, library: str, *classes: str) -> bool:
    """Whether the model's class, or one that it inherits from, is one of these classes of a library."""
    # By their names: `isinstance` would import libraries that the model is not from.
    return any(c.__name__ in classes and c.__module__.partition(".")[0] == library for c in type(model).__mro__)


def has(model: Any, attribute: str) -> bool:
    """Whether the model, or its class, has this attribute itself."""
    # `hasattr` also finds what a model makes up for any name, as NGBoost's distributions and LightGBM's CVBooster do.
    return inspect.getattr_static(model, attribute, None) is not None


def not_fitted(model: Any) -> Exception:
    """scikit-learn's error for a model that is not fitted yet, for libraries that fail later without saying why."""
    kind: type[Exception] = require("sklearn.exceptions", extra="sklearn").NotFittedError
    return kind(f"{name(model)} is not fitted yet; call fit first")


def name(model: Any) -> str:
    """The model's class, for messages."""
    return type(model).__name__


def check_options(options: dict[str, Any], known: set[str], model: Any) -> None:
    """Refuse options whose names are not among those known.

    Raises:
        ArgumentError: it names the first such option, the models that have it, and the options of this model.
    """
    unknown = sorted(set(options) - known) if "**" not in known else []
    if unknown:
        owners = [each.supports for _, each in adapters.items() if unknown[0] in option_names(each.predict)]
        whose = f"is for {' and '.join(owners)}" if owners else "is not an option of any model"
        takes = f"takes {' and '.join(sorted(known))}" if known else "has no options"
        raise ArgumentError(f"{unknown[0]} {whose}; {name(model)} {takes}")


def option_names(function: Callable[..., Any]) -> set[str]:
    """The keyword-only arguments of a function, and "**" where it takes any others."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} | {"**" for p in parameters if p.kind is p.VAR_KEYWORD}


def _resolve(model: Any, rows: Array, options: dict[str, Any]) -> tuple[Adapter, Any, Array, dict[str, Any]]:
    """The adapter for the model inside all wrappers, that model, and the rows and options that it takes."""
    if isinstance(model, np.ndarray) and model.dtype == object:  # of models
        model = model.tolist()
    while True:
        adapter = find(model)
        # A list may be of either kind; what is in it is checked when its turn comes.
        if adapter.takes_rows != (rows is not None) and not isinstance(model, list | tuple):
            missing = f"from_model needs X, the rows that {name(model)} shall predict"
            raise ArgumentError(missing if rows is None else f"{name(model)} has predicted already; leave X out")
        if not isinstance(adapter, Wrapper):
            return adapter, model, rows, options
        options = _viewed(partial(_inside, adapter, model), options)
        model, rows = adapter.unwrap(model, rows)


def _inside(wrapper: Wrapper, model: Any, rows: Array) -> Array:
    return wrapper.unwrap(model, rows)[1]


def _viewed(view: Callable[[Array], Array], options: dict[str, Any]) -> dict[str, Any]:
    """The options, with validation and training rows as a model inside another one takes them."""
    pairs = {key: options[key] for key in ("validation", "training") if key in options}
    pairs = {key: pair for key, pair in pairs.items() if isinstance(pair, tuple | list) and len(pair) == 2}
    return {**options, **{key: (view(pair[0]), pair[1]) for key, pair in pairs.items()}}


def find(model: Any) -> Adapter:
    """The adapter that recognises the model, among several the one of the highest priority."""
    if isinstance(model, type):  # a class has the methods by which models are recognised
        raise ArgumentError(f"model must be a fitted model, got the class {model.__name__}")
    for each in sorted((each for _, each in adapters.items()), key=lambda each: -each.priority):
        if (adapter := each()).matches(model):
            return adapter
    raise UnsupportedError(_refusal(model))


def _refusal(model: Any) -> str:
    """Why no adapter takes it, and what to do next."""
    if hasattr(model, "columns") or hasattr(model, "column_names"):
        return (
            f"the {name(model)} has no columns of intervals such as AutoETS-lo-90 and AutoETS-hi-90, or of quantiles such as "
            "TimeGPT-q-10. Name the columns of each member mean_0, variance_0 or q05_0, q50_0, q95_0 and pass the table to "
            "up.from_frame, or arrays to EnsemblePrediction.quantiles(levels=, values=)"
        )
    if isinstance(model, Iterable | Mapping) and not isinstance(model, str) and not is_array(model):
        values = ".values()" if isinstance(model, Mapping) else ""
        return f"from_model takes one model or a list of them, got a {name(model)}. Pass list(models{values}) if it holds models"
    return (
        f"no adapter knows {name(model)}, and it has none of the methods by which models are recognised: predict(X), predict(X, "
        "return_std=True), pred_dist(X), predict_ensemble(X). Pass what it predicts as arrays with the members first, to "
        "EnsemblePrediction.gaussian(mean=, variance=), .quantiles(levels=, values=) or up.from_draws(draws), or write an "
        "adapter of ten lines, as the page Extending of the documentation shows"
    )


@contextmanager
def _labelled(label: str) -> Iterator[None]:
    """Put a label before the message of this package's errors."""
    try:
        yield
    except UqprismError as error:
        error.args = (f"{label}: {error}", *error.args[1:])  # the same error, so that its class stays
        raise


def stacked(parts: list[EnsemblePrediction]) -> EnsemblePrediction:
    """One prediction with the members of all, which are of one family."""
    kinds = sorted({part.members.name for part in parts})
    if len(kinds) > 1:
        raise ArgumentError(f"members must be of one family, got {' and '.join(kinds)}; make an ensemble of each")
    shapes = [part.points_shape for part in parts]
    if len(set(shapes)) > 1:
        raise ShapeError(f"members must predict for the same points, got the shapes {', '.join(map(str, dict.fromkeys(shapes)))}")
    members = [part.members for part in parts]
    first = members[0]
    if isinstance(first, Gaussian):
        xp = namespace(first.centre)
        return EnsemblePrediction(
            Gaussian(**{key: xp.concat([getattr(each, key) for each in members]) for key in _parameters(members)})
        )
    if isinstance(first, Draws):
        members = list(_of_one_length(members))
    said = [each.options() for each in members]  # such as the levels of quantiles
    if any(each != said[0] for each in said):
        other = next(each for each in said if each != said[0])
        raise ArgumentError(f"members must have the same {' and '.join(other)}, got {_listed(said[0])} and {_listed(other)}")
    depth = len(first.batch_shape)
    if len({tuple(tuple(x.shape[: x.ndim - depth]) for x in each.stored().values()) for each in members}) > 1:
        raise ShapeError(f"members given by {first.name} must all have as many of them")
    return EnsemblePrediction(type(first).joined(members, 0))


def _listed(options: dict[str, Any]) -> str:
    return ", ".join(str(value) for value in options.values())


def _of_one_length(members: Sequence[Any]) -> Sequence[Draws]:
    """The same with as many draws each, filled up with draws of no weight."""
    most = max(len(each.draws) for each in members)

    def filled(x: Array) -> Array:
        xp = namespace(x)
        return x if len(x) == most else xp.concat([x, xp.broadcast_to(0.0 * x[:1], (most - len(x), *x.shape[1:]))])

    return [each.map(filled) for each in members]


def _parameters(members: list[Family]) -> list[str]:
    """Variances where all members were given by variance, else scales."""
    # A variance that went through its root and back would be rounded.
    return ["mean", "scale" if any(getattr(each, "given_variance", None) is None for each in members) else "variance"]
