"""Constructors of predictions from arrays, for families whose members are not described by a location and a scale alone."""

from __future__ import annotations

import math
from typing import Any, Self

from uqprism.arrays import Array, coerce, namespace
from uqprism.ensemble.given import with_inner_second, with_members_first
from uqprism.families import (
    Beta,
    CensoredGaussian,
    Family,
    Gamma,
    Gaussian,
    LogNormal,
    Mixture,
    NegativeBinomial,
    Poisson,
    TruncatedGaussian,
    Weibull,
)
from uqprism.families.base import fits
from uqprism.synonyms import named_arguments


class Constructors:
    """Class methods of `EnsemblePrediction`; arrays are (members, *points), or have the members along `member_axis`."""

    def __init__(self, members: Family, weights: Array = None, *, check: bool = True) -> None:
        """Predictions are made of distributions and weights."""

    @classmethod
    def _of(cls, family: Any, member_axis: int | str | None, weights: Array, check: bool, **given: Array) -> Self:
        return cls(family(**with_members_first(member_axis, **given), check=check), weights, check=check)

    @classmethod
    @named_arguments()
    def lognormal(
        cls, *, log_mean: Array, log_scale: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True
    ) -> Self:
        """Lognormal members: the logarithm of the target is Gaussian with this mean and this scale (standard deviation)."""
        return cls._of(LogNormal, member_axis, weights, check, log_mean=log_mean, log_scale=log_scale)

    @classmethod
    @named_arguments(deviation="the standard deviation divided by the root of the shape")
    def gamma(
        cls, *, shape: Array, scale: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True
    ) -> Self:
        """Gamma members; the mean is shape * scale, and the rate that others use is 1 / scale."""
        return cls._of(Gamma, member_axis, weights, check, shape=shape, scale=scale)

    @classmethod
    @named_arguments()
    def weibull(
        cls, *, shape: Array, scale: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True
    ) -> Self:
        """Weibull members: P(Y > y) = exp(-(y / scale)**shape)."""
        return cls._of(Weibull, member_axis, weights, check, shape=shape, scale=scale)

    @classmethod
    @named_arguments()
    def beta(
        cls,
        *,
        a: Array,
        b: Array,
        low: Array = 0.0,
        high: Array = 1.0,
        weights: Array = None,
        member_axis: int | str | None = None,
        check: bool = True,
    ) -> Self:
        """Beta members between two bounds; the mean is low + (high - low) * a / (a + b).

        Where members have different bounds, one may rule out what another expects, and its log risk is infinite.
        """
        return cls._of(Beta, member_axis, weights, check, a=a, b=b, low=low, high=high)

    @classmethod
    @named_arguments(deviation="the standard deviation of the Gaussian before it is cut off")
    def truncated_gaussian(
        cls,
        *,
        location: Array,
        scale: Array,
        low: Array = -math.inf,
        high: Array = math.inf,
        weights: Array = None,
        member_axis: int | str | None = None,
        check: bool = True,
    ) -> Self:
        """Gaussian members of this mean and scale without what lies outside two bounds, either of which may be infinite."""
        given = {"location": location, "scale": scale, "low": low, "high": high}
        return cls._of(TruncatedGaussian, member_axis, weights, check, **given)

    @classmethod
    @named_arguments(deviation="the standard deviation of the Gaussian before it is cut off")
    def censored_gaussian(
        cls,
        *,
        location: Array,
        scale: Array,
        low: Array = -math.inf,
        high: Array = math.inf,
        weights: Array = None,
        member_axis: int | str | None = None,
        check: bool = True,
    ) -> Self:
        """Gaussian members of this mean and scale whose values outside two bounds lie at the bounds, as of limited sensors.

        Log scores the probability of a value at a bound, and compares members and their mixture only; quadratic is refused.
        """
        given = {"location": location, "scale": scale, "low": low, "high": high}
        return cls._of(CensoredGaussian, member_axis, weights, check, **given)

    @classmethod
    @named_arguments()
    def poisson(cls, *, rate: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True) -> Self:
        """Poisson members, for counts; the rate is the mean.

        Log and quadratic score the probability of a count, and compare members and their mixture only.
        """
        return cls._of(Poisson, member_axis, weights, check, rate=rate)

    @classmethod
    @named_arguments()
    def negative_binomial(
        cls, *, rate: Array, size: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True
    ) -> Self:
        """Negative binomial members, for counts: the mean is the rate, the variance rate + rate**2 / size.

        Log and quadratic score the probability of a count, and compare members and their mixture only.
        """
        return cls._of(NegativeBinomial, member_axis, weights, check, rate=rate, size=size)

    @classmethod
    @named_arguments()
    def gaussian_mixture(
        cls,
        *,
        mean: Array,
        variance: Array = None,
        scale: Array = None,
        shares: Array = None,
        weights: Array = None,
        member_axis: int | str | None = None,
        component_axis: int = 1,
        check: bool = True,
    ) -> Self:
        """Members that are mixtures of Gaussians, as of mixture density networks: arrays (members, components, *points).

        `shares` are the weights of the components, which sum to one over these; None means equal. For mixtures of another family,
        give `EnsemblePrediction` a `Mixture` whose components are (components, members, *points).
        """
        inner, given = ("component_axis", component_axis), {"mean": mean, "variance": variance, "scale": scale, "shares": shares}
        given = {name: x for name, x in given.items() if x is not None}
        numbers = {name for name, x in given.items() if isinstance(x, int | float) and name != "mean"}
        arrays = {n: x if n in numbers else with_inner_second(n, x, member_axis, inner)[0] for n, x in given.items()}
        shares = arrays.pop("shares", None)
        if shares is not None:  # one entry along an axis counts for all, as of parameters
            like, shares = coerce(mean=arrays["mean"], shares=shares).values()
            fine = fits(tuple(shares.shape), tuple(like.shape))
            shares = namespace(like).broadcast_to(shares, like.shape) if fine else shares
        return cls(Mixture(Gaussian(**arrays, check=check), shares, check=check), weights, check=check)
