"""laplace-torch: the Laplace approximation of a network's posterior, linearised around its mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, name, one_member
from uqprism.adapters.latent import latent_members
from uqprism.adapters.torch import batches
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UnsupportedError


@adapters.register("laplace")
class LaplaceTorch(Adapter):
    """Fitted approximations of regression networks with one output."""

    supports = "Laplace approximations of laplace-torch"
    kind = "posterior"

    def matches(self, model: Any) -> bool:
        """Whether it is one of laplace-torch's approximations."""
        return is_a(model, "laplace", "BaseLaplace")

    def predict(self, model: Any, X: Any, *, n_members: int = 50) -> EnsemblePrediction:
        """Gaussians whose means spread like the posterior of the function, with the variance `sigma_noise ** 2`."""
        mean, latent, noise = _predicted(model, X)
        return latent_members(mean, latent, noise, n_members)

    def predict_member(self, model: Any, X: Any) -> EnsemblePrediction:
        """One Gaussian for new observations, with latent uncertainty and noise together."""
        mean, latent, noise = _predicted(model, X)
        return one_member(model, "gaussian", mean=mean, variance=latent + noise)


def _predicted(model: Any, rows: Any) -> tuple[Array, Array, float]:
    """Mean and variance of the function, (points,), and the variance of the noise."""
    if str(getattr(model.likelihood, "value", model.likelihood)) != "regression":
        raise UnsupportedError(f"{name(model)} has the likelihood {model.likelihood}; uqprism is for regression")
    parts = [[x.detach().cpu().double().numpy() for x in model(batch)] for batch in batches(rows, [model.model], None)]
    mean, latent = (np.concatenate(each) for each in zip(*parts, strict=True))
    if mean.shape[1] != 1:
        raise UnsupportedError(f"{name(model)} predicts {mean.shape[1]} targets; fit one network for each target")
    return mean[:, 0], latent.reshape(len(mean)), float(model.sigma_noise) ** 2
