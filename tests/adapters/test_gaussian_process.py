"""Gaussian processes: the members' moments are the posterior's, their variance the noise, however the kernel is composed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

import uqprism as up
from uqprism.errors import UqprismError

SMOOTH = ConstantKernel(2.0, "fixed") * RBF(1.0, "fixed")


RNG = np.random.default_rng(7)
X = RNG.uniform(-3.0, 3.0, size=(30, 1))
y = 10.0 + 5.0 * np.sin(X[:, 0]) + 0.5 * RNG.normal(size=30)
POINTS = RNG.uniform(-5.0, 5.0, size=(300, 1))


KERNELS = {  # each with the variance of its white noise
    "plus noise": (SMOOTH + WhiteKernel(0.2, "fixed"), 0.2),
    "times noise": (ConstantKernel(2.0, "fixed") * (RBF(1.0, "fixed") + WhiteKernel(0.3, "fixed")), 0.6),
    "twice noise": (WhiteKernel(0.1, "fixed") + SMOOTH + WhiteKernel(0.05, "fixed"), 0.15),
    "none": (SMOOTH + DotProduct(1.0, "fixed"), 0.0),
}


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_members", [2, 51])
def test_moments_are_those_of_the_posterior(kernel: str, normalize_y: bool, n_members: int) -> None:
    composed, white = KERNELS[kernel]
    model = GaussianProcessRegressor(composed, alpha=0.07, normalize_y=normalize_y).fit(X, y)
    ens = up.from_model(model, POINTS, n_members=n_members)
    unit = np.var(y) if normalize_y else 1.0
    mean, scale = model.predict(POINTS, return_std=True)
    assert ens.n_members == n_members
    assert_allclose(ens.members.variance, np.full((n_members, 300), (white + 0.07) * unit), rtol=1e-9)
    assert_allclose(ens.mixture.mean, mean, rtol=1e-10, atol=1e-10)
    d = up.decompose(ens, rule="squared_error", prediction="mixture", truth="members")
    assert_allclose(d.aleatoric, (white + 0.07) * unit, rtol=1e-9)
    assert_allclose(d.epistemic, scale**2 - white * unit, rtol=1e-7, atol=1e-9)
    assert_allclose(ens.matched.variance, scale**2 + 0.07 * unit, rtol=1e-9)


def test_the_posterior_is_that_of_the_textbook() -> None:
    """The latent variance, formed here from the kernel matrices, is what the members' means spread by."""
    model = GaussianProcessRegressor(SMOOTH + WhiteKernel(0.2, "fixed"), alpha=0.1).fit(X, y)
    inverse = np.linalg.inv(SMOOTH(X) + 0.3 * np.eye(len(X)))
    cross = SMOOTH(POINTS, X)
    latent = np.diag(SMOOTH(POINTS)) - np.sum(cross @ inverse * cross, axis=1)
    ens = up.from_model(model, POINTS)
    assert ens.n_members == 50
    assert_allclose(ens.members.mean.var(axis=0), latent, rtol=1e-8)
    assert_allclose(ens.members.mean.mean(axis=0), cross @ inverse @ y, rtol=1e-8, atol=1e-10)


def test_what_has_no_noise_at_new_points_is_refused() -> None:
    for alpha, targets, options, message in (
        (1e-10, y, {}, r"no noise.*add WhiteKernel\(\)"),
        (np.full(len(X), 0.1), y, {}, "alpha is an array"),
        (0.1, y, {"n_members": 1}, "n_members must be at least 2"),
        (0.1, np.stack([y, -y], axis=1), {}, "predicts 2 targets"),
    ):
        with pytest.raises(UqprismError, match=message):
            up.from_model(GaussianProcessRegressor(SMOOTH, alpha=alpha).fit(X, targets), POINTS, **options)
