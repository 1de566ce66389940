"""Distribution objects of other libraries, read by their attributes: SciPy, PyTorch, NumPyro, TensorFlow Probability, skpro."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, name
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


@dataclass(frozen=True)
class Kind:
    """How one kind of distribution is read.

    Attributes:
        family: the family of this package.
        classes: what libraries call it: their classes, and the names of SciPy's distributions.
        parameters: those of the family, from a function that gives the attribute which has one of some names. No library has two
            of them.
        at_zero: whether the family begins at zero, so that SciPy's distribution must not be moved.
    """

    family: str
    classes: frozenset[str]
    parameters: Callable[[Callable[..., Any]], dict[str, Any]]
    at_zero: bool = False


LOCATION, SCALE = ("loc", "mu"), ("scale", "sigma")


def _located(of: Callable[..., Any]) -> dict[str, Any]:
    return {"location": of(*LOCATION), "scale": of(*SCALE)}


def _cut(of: Callable[..., Any]) -> dict[str, Any]:
    return {"low": of("low", "l_trunc"), "high": of("high", "r_trunc")}


def _cut_in_scales(of: Callable[..., Any]) -> dict[str, Any]:
    """The bounds of SciPy's truncated Gaussian, which counts them in standard deviations from the location."""
    return {bound: of("loc") + of("scale") * of(name) for bound, name in (("low", "a"), ("high", "b"))}


def _odds(of: Callable[..., Any], count: str, probability: str, *, success: bool = False) -> dict[str, Any]:
    """A negative binomial by the count of one outcome and the probability of the other, or of the same."""
    p = of(probability)
    return {"rate": of(count) * ((1.0 - p) / p if success else p / (1.0 - p)), "size": of(count)}


KINDS = (
    Kind("gaussian", frozenset({"Normal", "StandardNormal", "norm"}), lambda of: {"mean": of(*LOCATION), "scale": of(*SCALE)}),
    Kind("laplace", frozenset({"Laplace", "laplace"}), _located),
    Kind("logistic", frozenset({"Logistic", "logistic"}), _located),
    Kind("student_t", frozenset({"StudentT", "TDistribution", "t"}), lambda of: {**_located(of), "df": of("df")}),
    Kind("student_t", frozenset({"Cauchy", "cauchy"}), lambda of: {**_located(of), "df": 1.0}),
    Kind("lognormal", frozenset({"LogNormal"}), lambda of: {"log_mean": of(*LOCATION), "log_scale": of(*SCALE)}),
    Kind("lognormal", frozenset({"lognorm"}), lambda of: {"log_mean": _log(of("scale")), "log_scale": of("s")}, at_zero=True),
    Kind("gamma", frozenset({"Gamma"}), lambda of: {"shape": of("concentration", "alpha"), "scale": 1.0 / of("rate", "beta")}),
    Kind("gamma", frozenset({"gamma"}), lambda of: {"shape": of("a"), "scale": of("scale")}, at_zero=True),
    Kind("gamma", frozenset({"Exponential"}), lambda of: {"shape": 1.0, "scale": 1.0 / of("rate")}),
    Kind("gamma", frozenset({"expon"}), lambda of: {"shape": 1.0, "scale": of("scale")}, at_zero=True),
    Kind("weibull", frozenset({"Weibull"}), lambda of: {"shape": of("concentration", "k"), "scale": of("scale")}),
    Kind("weibull", frozenset({"weibull_min"}), lambda of: {"shape": of("c"), "scale": of("scale")}, at_zero=True),
    Kind("beta", frozenset({"Beta"}), lambda of: {"a": of("concentration1", "alpha"), "b": of("concentration0", "beta")}),
    Kind("beta", frozenset({"beta"}), lambda of: {"a": of("a"), "b": of("b"), "low": of("loc"), "high": of("loc") + of("scale")}),
    Kind("truncated_gaussian", frozenset({"HalfNormal"}), lambda of: {"location": 0.0, "scale": of(*SCALE), "low": 0.0}),
    Kind("truncated_gaussian", frozenset({"halfnorm"}), lambda of: {**_located(of), "low": of("loc")}),
    Kind("truncated_gaussian", frozenset({"TruncatedNormal"}), lambda of: {**_located(of), **_cut(of)}),
    Kind("truncated_gaussian", frozenset({"truncnorm"}), lambda of: {**_located(of), **_cut_in_scales(of)}),
    Kind("poisson", frozenset({"Poisson", "poisson"}), lambda of: {"rate": of("rate", "mu")}, at_zero=True),
    Kind(
        "negative_binomial",
        frozenset({"NegativeBinomial", "NegativeBinomialProbs"}),
        lambda of: _odds(of, "total_count", "probs"),
    ),
    Kind("negative_binomial", frozenset({"NegativeBinomial2"}), lambda of: {"rate": of("mean"), "size": of("concentration")}),
    Kind("negative_binomial", frozenset({"nbinom"}), lambda of: _odds(of, "n", "p", success=True), at_zero=True),
)
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
    if is_a(distribution, "skpro", "Mixture"):
        parts = [read(each) for _, each in distribution.distributions]
        if len({family for family, _ in parts}) > 1:
            raise UnsupportedError(f"components of {name(distribution)} must be of one family; pass draws of it to from_draws")
        stacked = {key: np.stack([values[key] for _, values in parts]) for key in parts[0][1]}
        weights = np.full(len(parts), 1.0) if distribution.weights is None else np.asarray(distribution.weights, dtype=np.float64)
        shape = (len(parts), *(1,) * (next(iter(stacked.values())).ndim - 1))
        return (weights / weights.sum()).reshape(shape), (parts[0][0], stacked)
    inner, names = distribution, ("mixture_distribution", "mixing_distribution")
    if not name(inner).startswith("MixtureSameFamily"):
        return None
    mixing = next(getattr(inner, each) for each in names if hasattr(inner, each))
    family, parameters = read(
        next(x for each in ("component_distribution", "components_distribution") if (x := getattr(inner, each, None)) is not None)
    )
    xp = namespace(*parameters.values())
    weights = mixing.probs if getattr(mixing, "probs", None) is not None else mixing.probs_parameter()
    # The components are along the last axis of the batch.
    return xp.moveaxis(weights, -1, 0), (family, {key: xp.moveaxis(x, -1, 0) for key, x in parameters.items()})


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
    if found is None or found.family not in families:
        known = sorted({each.family for each in KINDS if each.family in families})
        raise UnsupportedError(
            f"the distribution {called} has no family in this package, which reads {', '.join(known)}; pass draws of it to "
            "from_draws"
        )
    if found.at_zero and _is_frozen(distribution) and np.any(np.asarray(_attribute(distribution, ("loc",))) != 0.0):
        raise UnsupportedError(f"the distribution {called} must begin at zero, without loc; pass draws of it to from_draws")
    given = found.parameters(lambda *names: _array(_attribute(distribution, names)))
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


def _attribute(distribution: Any, names: tuple[str, ...]) -> Any:
    """The parameter that has one of these names."""
    if is_a(distribution, "skpro", "BaseDistribution"):
        given = distribution.get_params(deep=False)  # `.loc` is an indexer there, as that of pandas
        return np.broadcast_to(_array(_found(distribution, given, names)), distribution.shape)
    if not _is_frozen(distribution):
        return _found(distribution, {each: x for each in names if (x := getattr(distribution, each, None)) is not None}, names)
    shapes = [each.strip() for each in (distribution.dist.shapes or "").split(",") if each.strip()]
    given = dict(zip([*shapes, "loc", "scale"], distribution.args, strict=False)) | distribution.kwds
    given = {"loc": 0.0, "scale": 1.0} | given
    return _found(distribution, given, names)


def _found(distribution: Any, given: dict[str, Any], names: tuple[str, ...]) -> Any:
    """What is given under one of these names."""
    for each in names:
        if each in given:
            return given[each]
    raise UnsupportedError(
        f"{name(distribution)} must have {' or '.join(names)}; make it with these parameters, or pass draws of it to from_draws"
    )


def _log(x: Array) -> Array:
    return np.log(x)  # of SciPy's parameters


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
