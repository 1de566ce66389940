"""scikit-learn's Gaussian processes: the posterior of the latent function, and the noise around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, one_member
from uqprism.adapters.latent import latent_members
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import InvalidValueError, UnsupportedError
from uqprism.support.optional import require

JITTER = 1e-10  # scikit-learn's default alpha, which keeps its Cholesky factor stable and models no noise
ROUNDING = 1e-12  # of the diagonal: a smaller difference is no noise
BLOCK = 128  # rows of a kernel matrix computed at a time; only its diagonal is used


@adapters.register("gaussian_process")
class GaussianProcess(Adapter):
    """scikit-learn's Gaussian process regressors."""

    supports = "Gaussian processes (GaussianProcessRegressor)"
    kind = "process"

    def matches(self, model: Any) -> bool:
        """Whether it is a Gaussian process regressor."""
        return is_a(model, "sklearn", "GaussianProcessRegressor")

    def predict(self, model: Any, X: Array, *, n_members: int = 50) -> EnsemblePrediction:
        """Gaussians whose means spread like the latent function's posterior, see `latent_members`."""
        mean, scale = _fitted_prediction(model, X)
        unit, white = model._y_train_std**2, _white_noise(model, X)  # scikit-learn has no public name for it
        noise = white + _alpha(model)
        if not np.all(noise > 0.0):
            raise InvalidValueError(
                "the Gaussian process has no noise, so that its members would have no variance; add WhiteKernel() to the "
                f"kernel, or give alpha the variance of the noise (up to {JITTER:g} it only steadies the fit)"
            )
        return latent_members(mean, scale * scale - white * unit, noise * unit, n_members)

    def predict_member(self, model: Any, X: Array) -> EnsemblePrediction:
        """One Gaussian for new observations, with latent uncertainty and noise together."""
        mean, scale = _fitted_prediction(model, X)
        return one_member(model, "gaussian", mean=mean, variance=scale * scale + _alpha(model) * model._y_train_std**2)


def _fitted_prediction(model: Any, rows: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the latent function plus white noise; an unfitted model raises, it has only its prior."""
    require("sklearn.utils.validation", extra="sklearn").check_is_fitted(model, "X_train_")
    mean, scale = model.predict(rows, return_std=True)
    if np.ndim(mean) > 1:
        raise UnsupportedError(f"the Gaussian process predicts {np.shape(mean)[1]} targets; fit one model for each target")
    return mean, scale


def _alpha(model: Any) -> float:
    """The part of the noise that the kernel does not know about, in the units in which the model sees the target."""
    if np.ndim(model.alpha) and np.size(model.alpha) > 1:
        raise UnsupportedError(
            "alpha is an array, the noise of each training row, which says nothing about the noise of new rows; "
            "fit with one number as alpha, or with WhiteKernel() in the kernel"
        )
    alpha = float(np.max(model.alpha))
    return alpha if alpha > JITTER else 0.0


def _white_noise(model: Any, rows: Array) -> Array:
    """The kernel's own noise at each point: only a matrix between a set of points and itself has it on the diagonal.

    Between the points and a second set, though of the same values, a kernel has no noise; so the difference is the noise, however
    the kernel is composed.
    """
    kernel = model.kernel_
    # Other kernels take texts or graphs, which must stay as they are.
    points = np.asarray(rows, dtype=np.float64) if kernel.requires_vector_input else rows
    noisy = kernel.diag(points)
    blocks = [points[start : start + BLOCK] for start in range(0, len(noisy), BLOCK)]
    plain = np.concatenate([np.diagonal(kernel(block, block)) for block in blocks])
    noise = noisy - plain
    return np.where(noise > ROUNDING * noisy, noise, 0.0)
