"""Distribution objects of other libraries, read by their attributes: SciPy, PyTorch, NumPyro, TensorFlow Probability, skpro."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, name
from uqprism.arrays import Array, coerce, is_array, namespace
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ShapeError, UnsupportedError
from uqprism.families import families

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
        attributes: for each parameter of the family, what libraries call it. No library has two of them.
        fixed: parameters that have the same value in every such distribution.
    """

    family: str
    classes: frozenset[str]
    attributes: Mapping[str, tuple[str, ...]]
    fixed: tuple[tuple[str, float], ...] = ()


LOCATION, SCALE = ("loc", "mu"), ("scale", "sigma")
LOCATED = {"location": LOCATION, "scale": SCALE}
KINDS = (
    Kind("gaussian", frozenset({"Normal", "StandardNormal", "norm"}), {"mean": LOCATION, "scale": SCALE}),
    Kind("laplace", frozenset({"Laplace", "laplace"}), LOCATED),
    Kind("logistic", frozenset({"Logistic", "logistic"}), LOCATED),
    Kind("student_t", frozenset({"StudentT", "TDistribution", "t"}), {**LOCATED, "df": ("df",)}),
    Kind("student_t", frozenset({"Cauchy", "cauchy"}), LOCATED, (("df", 1.0),)),
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
        family, parameters = read(model)
        members = families.get(family)(**{key: x[None] for key, x in parameters.items()})
        return EnsemblePrediction(members)


def is_distribution(x: Any) -> bool:
    """Whether it is a distribution object of one of the libraries."""
    return is_a(x, "scipy", "rv_frozen", "multi_rv_frozen") or any(is_a(x, library, base) for library, base in BASES.items())


def read(distribution: Any) -> tuple[str, dict[str, Array]]:
    """The name of the family of a distribution object, and its parameters, all of the shape of its batch.

    PyTorch and JAX arrays stay what they are, with their gradients.

    Raises:
        UnsupportedError: a kind of distribution that has no family here.
    """
    inner = _inside(distribution)
    if inner is not distribution:
        family, parameters = read(inner)
        shape = tuple(getattr(distribution, "batch_shape", ())) + tuple(getattr(distribution, "event_shape", ()))
        return family, {key: namespace(x).broadcast_to(x, shape or x.shape) for key, x in parameters.items()}
    called = distribution.dist.name if _is_frozen(distribution) else name(distribution)
    found = next((kind for kind in KINDS if called in kind.classes), None)
    if found is None:
        known = sorted({each.family for each in KINDS})
        raise UnsupportedError(
            f"the distribution {called} has no family in this package, which reads {', '.join(known)}; pass draws of it to "
            "from_draws"
        )
    values = coerce(**{key: _array(_attribute(distribution, names)) for key, names in found.attributes.items()})
    xp = namespace(*values.values())
    first = next(iter(values.values()))
    values |= {key: xp.full_like(first, value) for key, value in found.fixed}
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
    if not _is_frozen(distribution):
        return getattr(distribution, next(each for each in names if hasattr(distribution, each)))
    shapes = [each.strip() for each in (distribution.dist.shapes or "").split(",") if each.strip()]
    given = dict(zip([*shapes, "loc", "scale"], distribution.args, strict=False)) | distribution.kwds
    return ({"loc": 0.0, "scale": 1.0} | given)[names[0]]


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
