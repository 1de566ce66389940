"""Posteriors of a latent function at each point as members, for Gaussian processes and Laplace approximations."""

from __future__ import annotations

import numpy as np

from uqprism.arrays import Array, normal_quantile
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import InvalidValueError


def latent_members(mean: Array, latent_variance: Array, noise: Array, n_members: int) -> EnsemblePrediction:
    """Gaussians whose means spread like the latent function's posterior at each point, with the variance of the noise.

    Member i lies at the same posterior quantile at every point. The levels are midpoints, (i + 1/2) / n_members, and their
    normal quantiles are stretched to variance one, so that mean and variance over members are exactly the posterior's.

    Args:
        mean: of the posterior, (points,).
        latent_variance: of the latent function, (points,).
        noise: the variance of the noise, (points,) or one number.
        n_members: how many.
    """
    if n_members < 2:
        raise InvalidValueError(f"n_members must be at least 2 to show a posterior, got {n_members}")
    latent = np.sqrt(np.maximum(latent_variance, 0.0))  # rounding may leave a negative difference
    draws = normal_quantile((np.arange(n_members) + 0.5) / n_members)
    # Midpoints leave out the tails, so that their variance is a little below one.
    draws = draws / np.sqrt(np.mean(draws * draws))
    variance = np.broadcast_to(noise, (n_members, len(mean)))
    return EnsemblePrediction.gaussian(mean=mean + draws[:, None] * latent, variance=variance, member_axis=0)
