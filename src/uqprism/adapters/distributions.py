"""Distribution objects of other libraries, read by their attributes: SciPy, PyTorch, NumPyro, TensorFlow Probability, skpro."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, name
from uqprism.adapters.kinds import KINDS
from uqprism.adapters.transformed import through
from uqprism.arrays import Array, coerce, is_array, is_jax, namespace
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ShapeError, UnsupportedError
from uqprism.families import Draws, Family, Mixture, families

BASES = {  # what the distributions of each library inherit from
    "distrax": "Distribution",
    "ngboost": "Distn",
    "numpyro": "Distribution",
    "scipy": "_ProbabilityDistribution",
    "skpro": "BaseDistribution",
    "tensorflow_probability": "Distribution",
    "torch": "Distribution",
}


CLASSES = {"Bernoulli", "Categorical", "OneHotCategorical", "bernoulli"}  # of those that classify
# NumPyro's distributions within bounds.
CUT = ("LeftTruncatedDistribution", "RightTruncatedDistribution", "TwoSidedTruncatedDistribution")
# Distributions around another one, and where they have it.
AROUND = {"Independent": ("base_dist", "distribution"), "ExpandedDistribution": ("base_dist",)}


@adapters.register("distributions")
class Distributions(Adapter):
    """A distribution object with a batch of points, one member."""

    supports = "distributions of scipy.stats, torch.distributions, NumPyro, TensorFlow Probability and skpro"
    priority = 8
    takes_rows = False

    def matches(self, model: Any) -> bool:
        """Whether it is such an object."""
        return is_distribution(model)

    def predict(self, model: Any, X: Array) -> EnsemblePrediction:
        """One member of the distribution's own family, its batch as the points."""
        return EnsemblePrediction(member(model))


def is_distribution(x: Any) -> bool:
    """Whether it is a distribution object of one of the libraries."""
    return is_a(x, "scipy", "rv_frozen", "multi_rv_frozen") or any(is_a(x, library, base) for library, base in BASES.items())


def member(distribution: Any) -> Family:
    """A distribution object as a batch (1, *points) of this package's family; mixtures and draws are families too."""
    if is_a(distribution, "skpro", "Empirical"):
        return _empirical(distribution)
    mixture = mixed(distribution)
    if mixture is None:
        family, parameters = read(distribution)
        return families.get(family)(**{key: x[None] for key, x in parameters.items()})
    weights, (family, parameters) = mixture
    components = families.get(family)(**{key: x[:, None] for key, x in parameters.items()})
    return Mixture(components, namespace(weights).broadcast_to(weights[:, None], components.batch_shape))


def mixed(distribution: Any) -> tuple[Array, tuple[str, dict[str, Array]]] | None:
    """The weights (components, *points) and components of a mixture of one family; None if it is no mixture."""
    inner = distribution
    while (found := _inside(inner)) is not inner:
        inner = found
    if name(inner) in {"Mixture", "MixtureGeneral"}:
        return _mixed_apart(inner)
    if not name(inner).startswith("MixtureSameFamily"):
        return None
    component = _first_of(inner, "component_distribution", "components_distribution")
    weights, (family, parameters) = _mixing(inner), read(component)
    xp, shape = namespace(*parameters.values()), tuple(component.batch_shape)
    # The components are along the last axis of the batch; those of the event, if there are some, follow.
    axis, depth = len(shape) - 1, next(iter(parameters.values())).ndim
    weights = xp.moveaxis(weights, -1, 0)
    missing, events = axis - (weights.ndim - 1), depth - len(shape)
    weights = xp.reshape(weights, (weights.shape[0], *(1,) * missing, *weights.shape[1:], *(1,) * events))
    return weights, (family, {key: xp.moveaxis(x, axis, 0) for key, x in parameters.items()})


def _mixed_apart(mixture: Any) -> tuple[Array, tuple[str, dict[str, Array]]]:
    """The same of a mixture that has a list of components, each a distribution or a pair of its name and it."""
    held = _first_of(mixture, "distributions", "component_distributions", "components")
    parts = [read(each[1] if isinstance(each, tuple) else each) for each in held]
    if len({(family, *parameters) for family, parameters in parts}) > 1:
        raise UnsupportedError(f"components of {name(mixture)} must be of one family; pass draws of it to from_draws")
    xp = namespace(*parts[0][1].values())
    stacked = {key: xp.stack([values[key] for _, values in parts]) for key in parts[0][1]}
    depth = next(iter(stacked.values())).ndim
    if is_a(mixture, "skpro", "Mixture") or is_a(mixture, "scipy", "Mixture"):
        given = getattr(mixture, "weights", None)
        weights = np.full(len(parts), 1.0) if given is None else np.asarray(given, dtype=np.float64)
        return (weights / weights.sum()).reshape(len(parts), *(1,) * (depth - 1)), (parts[0][0], stacked)
    weights = xp.moveaxis(_mixing(mixture), -1, 0)
    return xp.reshape(weights, (*weights.shape, *(1,) * (depth - weights.ndim))), (parts[0][0], stacked)


def _mixing(mixture: Any) -> Array:
    """The weights of a mixture, (*points, components)."""
    mixing = _first_of(mixture, "mixture_distribution", "mixing_distribution", "cat")
    return mixing.probs if getattr(mixing, "probs", None) is not None else mixing.probs_parameter()


def _first_of(x: Any, *names: str) -> Any:
    return next(found for each in names if (found := getattr(x, each, None)) is not None)


def _empirical(distribution: Any) -> Draws:
    """skpro's draws, a table with a row for each draw of each point."""
    table, weights = distribution.spl, distribution.weights
    if table.shape[1] != 1:
        raise ShapeError(f"Empirical has {table.shape[1]} columns, one for each target; pass one column at a time")
    draws = table.iloc[:, 0].unstack().reindex(columns=distribution.index).to_numpy(dtype=np.float64)
    if weights is not None:
        weights = weights.unstack().reindex(columns=distribution.index).to_numpy(dtype=np.float64)
        weights = (weights / weights.sum(axis=0))[:, None]
    return Draws(draws[:, None], weights)


def read(distribution: Any) -> tuple[str, dict[str, Array]]:
    """The name of the family of a distribution object, and its parameters, all of the shape of its batch.

    PyTorch and JAX arrays stay what they are, with their gradients.

    Raises:
        UnsupportedError: a kind of distribution that has no family here.
    """
    inner = _inside(distribution)
    if inner is not distribution:
        family, parameters = read(inner)
        shape = sum((tuple(getattr(distribution, each, None) or ()) for each in ("batch_shape", "event_shape")), ())
        return family, {key: namespace(x).broadcast_to(x, shape or x.shape) for key, x in parameters.items()}
    called = distribution.dist.name if _is_frozen(distribution) else name(distribution)
    found = next((kind for kind in KINDS if called in kind.classes), None)
    if called in CLASSES:
        raise UnsupportedError(f"{called} is a distribution of classes, not of numbers; uqprism is for regression")
    if found is None and called in CUT:
        return _cut_off(distribution)
    if found is None and any(each.__name__ == "TransformedDistribution" for each in type(distribution).__mro__):
        return through(distribution, read(_first_of(distribution, "base_dist", "distribution")))
    if found is None or found.family not in families:
        known = sorted({each.family for each in KINDS if each.family in families})
        raise UnsupportedError(
            f"the distribution {called} has no family in this package, which reads {', '.join(known)}; pass draws of it to "
            "from_draws"
        )
    if found.at_zero and _is_frozen(distribution) and np.any(np.asarray(_attribute(distribution, ("loc",))) != 0.0):
        raise UnsupportedError(f"the distribution {called} must begin at zero, without loc; pass draws of it to from_draws")

    def of(*names: str, optional: bool = False) -> Any:
        x = _attribute(distribution, names, optional=optional)
        return x if x is None else _array(x() if callable(x) else x)

    given = found.parameters(of)
    if any(is_jax(x) for x in given.values()):  # NumPyro keeps numbers as NumPy arrays beside those of JAX
        xp = namespace(*(x for x in given.values() if is_jax(x)))
        given = {key: xp.asarray(x) for key, x in given.items()}
    values = coerce(**given)
    xp = namespace(*values.values())
    shape = np.broadcast_shapes(*(tuple(x.shape) for x in values.values()))
    return found.family, _one_target(distribution, {key: xp.broadcast_to(x, shape) for key, x in values.items()})


def _inside(distribution: Any) -> Any:
    """The distribution inside one that only changes its shape, else itself."""
    if is_a(distribution, "ngboost", "Distn"):
        return getattr(distribution, "dist", distribution)  # SciPy's
    for attribute in AROUND.get(name(distribution), ()):
        if hasattr(distribution, attribute):
            return getattr(distribution, attribute)
    return distribution


def _is_frozen(distribution: Any) -> bool:
    """Whether it is one of SciPy's frozen distributions of one variable."""
    return is_a(distribution, "scipy", "rv_frozen")


def _attribute(distribution: Any, names: tuple[str, ...], *, optional: bool = False) -> Any:
    """The parameter that has one of these names; None if it may be missing and is."""
    if is_a(distribution, "skpro", "BaseDistribution"):
        given = distribution.get_params(deep=False)  # `.loc` is an indexer there, as that of pandas
        found = _found(distribution, given, names, optional=optional)
        return found if found is None else np.broadcast_to(_array(found), distribution.shape)
    if not _is_frozen(distribution):
        given = {each: x for each in names if (x := getattr(distribution, each, None)) is not None}
        return _found(distribution, given, names, optional=optional)
    shapes = [each.strip() for each in (distribution.dist.shapes or "").split(",") if each.strip()]
    given = dict(zip([*shapes, "loc", "scale"], distribution.args, strict=False)) | distribution.kwds
    given = {"loc": 0.0, "scale": 1.0} | given
    return _found(distribution, given, names, optional=optional)


def _found(distribution: Any, given: dict[str, Any], names: tuple[str, ...], *, optional: bool = False) -> Any:
    """What is given under one of these names."""
    for each in names:
        if each in given:
            return given[each]
    if optional:
        return None
    raise UnsupportedError(
        f"{name(distribution)} must have {' or '.join(names)}; make it with these parameters, or pass draws of it to from_draws"
    )


def _cut_off(distribution: Any) -> tuple[str, dict[str, Array]]:
    """A Gaussian within bounds."""
    family, parameters = read(distribution.base_dist)
    if family != "gaussian" or "scale" not in parameters:
        raise UnsupportedError(f"{name(distribution)} of {family} has no family in this package; pass draws of it to from_draws")
    like = parameters["mean"]
    xp = namespace(like)
    bounds = {key: x for key in ("low", "high") if (x := getattr(distribution, key, None)) is not None}
    held = {key: xp.broadcast_to(xp.asarray(x), like.shape) for key, x in bounds.items()}
    return "truncated_gaussian", {"location": like, "scale": parameters["scale"], **held}


def _array(x: Any) -> Array:
    """An array of a library that this package knows; of others, such as TensorFlow and pandas, a NumPy array."""
    return x if is_array(x) or isinstance(x, int | float) else np.asarray(x, dtype=np.float64)


def _one_target(distribution: Any, values: dict[str, Array]) -> dict[str, Array]:
    """Without the column of targets that skpro's distributions have."""
    if not hasattr(distribution, "columns") or next(iter(values.values())).ndim < 2:
        return values
    if (count := len(distribution.columns)) != 1:
        raise ShapeError(f"{name(distribution)} has {count} columns, one for each target; pass one column at a time")
    return {key: x[:, 0] for key, x in values.items()}
