"""Estimates of densities from draws, so that log and quadratic can be had of them; what they add is the user's choice."""

from __future__ import annotations

from typing import Literal

from uqprism.arrays import Array, coerce, constant, expand, is_traced, namespace
from uqprism.ensemble.prediction import EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.families import Draws, Gaussian, Histogram, Mixture
from uqprism.registry import unknown

Bandwidth = Literal["silverman", "scott"]
FACTORS = {"silverman": 0.9, "scott": 1.06}


def kernel_density(ensemble: EnsemblePrediction, *, bandwidth: Bandwidth | Array = "silverman") -> EnsemblePrediction:
    """Members with a density in place of draws: the mean of Gaussians around each member's draws.

    Risks are those of the estimates. A kernel adds the square of its bandwidth to each variance; log risks depend on the
    bandwidth more than others.

    Args:
        ensemble: members given by draws.
        bandwidth: the standard deviation of the Gaussians: a number, an array (members, *points), or by a rule of thumb from each
            member's draws: "silverman" is 0.9 min(scale, interquartile range / 1.34) / n**0.2, "scott" 1.06 scale / n**0.2.

    Returns:
        Members that are mixtures of Gaussians.
    """
    draws = _draws(ensemble, "kernel_density")
    if isinstance(bandwidth, str):
        if bandwidth not in FACTORS:
            raise unknown("bandwidth", bandwidth, FACTORS)
        width = _rule_of_thumb(draws, bandwidth)
    else:
        width = coerce(bandwidth=bandwidth, draws=draws.draws)["bandwidth"]
    if not is_traced(width) and not bool(namespace(width).all(width > 0.0)):
        raise InvalidValueError(
            "bandwidth must be greater than zero; where draws of a member are equal, no rule of thumb gives one, so pass a number"
        )
    scale = width + 0.0 * draws.draws
    members = Mixture(Gaussian(mean=draws.draws, scale=scale, check=False), draws.weights, check=False)
    return EnsemblePrediction(members, ensemble.weights, check=False)


def histogram_density(ensemble: EnsemblePrediction, *, bars: int = 20, pseudo_count: float = 0.5) -> EnsemblePrediction:
    """Members with a density in place of draws: bars of equal width over the range of all members' draws at each point.

    Args:
        ensemble: members given by draws.
        bars: how many.
        pseudo_count: what is added to the number of draws in each bar, so that no member rules out what another expects.

    Returns:
        Members given by bars.
    """
    draws = _draws(ensemble, "histogram_density")
    if bars < 1 or pseudo_count < 0.0:
        raise ArgumentError(f"bars must be at least one and pseudo_count not negative, got {bars} and {pseudo_count}")
    xp = namespace(draws.draws)
    values, count = constant(draws.draws), draws.draws.shape[0]
    low, high = (f(f(values, axis=0), axis=0) for f in (xp.min, xp.max))
    if not is_traced(values) and not bool(xp.all(high > low)):
        raise InvalidValueError(
            "histogram_density needs draws that differ at every point; where all are equal there is no density"
        )
    edges = xp.stack([low + (high - low) * (i / bars) for i in range(bars + 1)])
    bar = xp.clip(xp.floor((values - low) / (high - low) * bars), 0.0, bars - 1.0)
    shares = [xp.sum(xp.where(bar == i, draws.weights, xp.zeros_like(draws.weights)), axis=0) for i in range(bars)]
    probabilities = (count * xp.stack(shares) + pseudo_count) / (count + bars * pseudo_count)
    return EnsemblePrediction(Histogram(expand(edges, 1), probabilities, check=False), ensemble.weights, check=False)


def _draws(ensemble: EnsemblePrediction, name: str) -> Draws:
    members = getattr(ensemble, "members", ensemble)
    if not isinstance(members, Draws):
        kind = getattr(members, "name", type(members).__name__)
        raise ArgumentError(f"{name} takes members given by draws, as of EnsemblePrediction.samples, got {kind}")
    return members


def _rule_of_thumb(draws: Draws, name: str) -> Array:
    """The bandwidth of each member at each point, a constant."""
    fixed = draws.map(constant)
    xp = namespace(fixed.draws)
    scale = xp.sqrt(fixed.variance)
    if name == "silverman":
        quartiles = (fixed.quantile(0.75) - fixed.quantile(0.25)) / 1.34
        scale = xp.where(quartiles > 0.0, xp.minimum(scale, quartiles), scale)
    effective = 1.0 / xp.sum(fixed.weights**2, axis=0)  # as many equal weights have this variance
    return FACTORS[name] * scale * effective**-0.2
