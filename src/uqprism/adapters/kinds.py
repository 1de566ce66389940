"""The distributions of other libraries by the names of their classes, and how their parameters are those of families here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import Array, is_array, namespace


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


def _log(x: Array) -> Array:
    return np.log(x)  # of SciPy's parameters


def _exp(x: Any) -> Any:
    return namespace(x).exp(x) if is_array(x) else np.exp(x)


LOCATION, SCALE = ("loc", "mu"), ("scale", "sigma")


def _located(of: Callable[..., Any]) -> dict[str, Any]:
    return {"location": of(*LOCATION), "scale": of(*SCALE)}


def _cut(of: Callable[..., Any]) -> dict[str, Any]:
    return {"low": of("low", "l_trunc"), "high": of("high", "r_trunc")}


def _cut_in_scales(of: Callable[..., Any]) -> dict[str, Any]:
    """The bounds of SciPy's truncated Gaussian, which counts them in standard deviations from the location."""
    return {bound: of("loc") + of("scale") * of(name) for bound, name in (("low", "a"), ("high", "b"))}


def _or_log(of: Callable[..., Any], *names: str, log: str) -> Any:
    """A parameter, which some libraries keep as its logarithm."""
    x = of(*names, optional=True)
    return _exp(of(log)) if x is None else x


def _odds(of: Callable[..., Any]) -> Any:
    """p / (1 - p), by p or its logit."""
    p = of("probs", "p", optional=True)
    return _exp(of("logits")) if p is None else p / (1.0 - p)


def _negative_binomial(of: Callable[..., Any]) -> dict[str, Any]:
    """By the count of one outcome and the probability of the other; skpro's is by mean and size."""
    if (mean := of("mu", optional=True)) is not None:
        return {"rate": mean, "size": of("alpha")}
    return {"rate": of("total_count") * _odds(of), "size": of("total_count")}


_FLAT = {"a": 1.0, "b": 1.0}
MULTIVARIATE = frozenset({"MultivariateNormal", "LowRankMultivariateNormal", "MultivariateNormalDiag", "MultivariateNormalTriL"})

KINDS = (
    Kind("gaussian", frozenset({"Normal", "StandardNormal", "norm"}), lambda of: {"mean": of(*LOCATION), "scale": of(*SCALE)}),
    Kind("laplace", frozenset({"Laplace", "laplace"}), _located),
    Kind("logistic", frozenset({"Logistic", "logistic"}), _located),
    Kind("student_t", frozenset({"StudentT", "TDistribution", "t"}), lambda of: {**_located(of), "df": of("df")}),
    Kind("student_t", frozenset({"Cauchy", "cauchy"}), lambda of: {**_located(of), "df": 1.0}),
    Kind("lognormal", frozenset({"LogNormal"}), lambda of: {"log_mean": of(*LOCATION), "log_scale": of(*SCALE)}),
    Kind("lognormal", frozenset({"lognorm"}), lambda of: {"log_mean": _log(of("scale")), "log_scale": of("s")}, at_zero=True),
    Kind("gaussian", MULTIVARIATE, lambda of: {"mean": of("loc"), "variance": of("variance")}),
    Kind(
        "gamma",
        frozenset({"Gamma"}),
        lambda of: {"shape": of("concentration", "alpha"), "scale": 1.0 / _or_log(of, "rate", "beta", log="log_rate")},
    ),
    Kind("gamma", frozenset({"Chi2", "ChiSquared"}), lambda of: {"shape": of("df", "dof") / 2.0, "scale": 2.0}),
    Kind("gamma", frozenset({"chi2"}), lambda of: {"shape": of("df") / 2.0, "scale": 2.0 * of("scale")}, at_zero=True),
    Kind("gamma", frozenset({"Erlang"}), lambda of: {"shape": of("k"), "scale": 1.0 / of("rate")}),
    Kind("gamma", frozenset({"gamma", "erlang"}), lambda of: {"shape": of("a"), "scale": of("scale")}, at_zero=True),
    Kind("gamma", frozenset({"Exponential"}), lambda of: {"shape": 1.0, "scale": 1.0 / of("rate")}),
    Kind("gamma", frozenset({"expon"}), lambda of: {"shape": 1.0, "scale": of("scale")}, at_zero=True),
    Kind("weibull", frozenset({"Weibull"}), lambda of: {"shape": of("concentration", "k"), "scale": of("scale")}),
    Kind("weibull", frozenset({"weibull_min"}), lambda of: {"shape": of("c"), "scale": of("scale")}, at_zero=True),
    Kind("beta", frozenset({"Beta"}), lambda of: {"a": of("concentration1", "alpha"), "b": of("concentration0", "beta")}),
    Kind("beta", frozenset({"beta"}), lambda of: {"a": of("a"), "b": of("b"), "low": of("loc"), "high": of("loc") + of("scale")}),
    Kind("beta", frozenset({"Uniform"}), lambda of: {**_FLAT, "low": of("low", "lower", "a"), "high": of("high", "upper", "b")}),
    Kind("beta", frozenset({"uniform"}), lambda of: {**_FLAT, "low": of("loc"), "high": of("loc") + of("scale")}),
    Kind("truncated_gaussian", frozenset({"HalfNormal"}), lambda of: {"location": 0.0, "scale": of(*SCALE), "low": 0.0}),
    Kind("truncated_gaussian", frozenset({"halfnorm"}), lambda of: {**_located(of), "low": of("loc")}),
    Kind("truncated_gaussian", frozenset({"TruncatedNormal"}), lambda of: {**_located(of), **_cut(of)}),
    Kind("truncated_gaussian", frozenset({"truncnorm"}), lambda of: {**_located(of), **_cut_in_scales(of)}),
    Kind(
        "poisson",
        frozenset({"Poisson", "poisson"}),
        lambda of: {"rate": _or_log(of, "rate", "mu", log="log_rate")},
        at_zero=True,
    ),
    Kind(
        "negative_binomial",
        frozenset({"NegativeBinomial", "NegativeBinomialProbs", "NegativeBinomialLogits"}),
        _negative_binomial,
    ),
    Kind(
        "negative_binomial",
        frozenset({"GammaPoisson"}),
        lambda of: {"rate": of("concentration") / of("rate"), "size": of("concentration")},
    ),
    Kind(
        "negative_binomial",
        frozenset({"Geometric", "GeometricProbs", "GeometricLogits"}),  # how often before the first success
        lambda of: {"rate": 1.0 / _odds(of), "size": 1.0},
    ),
    Kind("negative_binomial", frozenset({"NegativeBinomial2"}), lambda of: {"rate": of("mean"), "size": of("concentration")}),
    Kind("negative_binomial", frozenset({"nbinom"}), lambda of: {"rate": of("n") / _odds(of), "size": of("n")}, at_zero=True),
)
