"""Members that nearly agree and whose mean is no parameter of theirs, against the formulas with 60 digits."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf

import uqprism as up

MEASURE = "squared_error.excess.mixture.members"  # the variance of the means
WEIGHTS = (0.1, 0.2, 0.3, 0.4)


def truncated_mean(location: float, scale: float, low: float, high: float) -> mpf:
    centre, unit = mpf(float(location)), mpf(float(scale))
    a, b = ((mpf(end) - centre) / unit for end in (low, high))
    return centre + unit * (mp.npdf(a) - mp.npdf(b)) / (mp.ncdf(b) - mp.ncdf(a))


def mixed_mean(means: np.ndarray, shares: np.ndarray) -> mpf:
    parts = [mpf(float(share)) for share in shares]
    return sum(share * mpf(float(mean)) for share, mean in zip(parts, means, strict=True)) / sum(parts)


def variance_of(means: list[mpf]) -> mpf:
    centre = sum(mpf(w) * m for w, m in zip(WEIGHTS, means, strict=True)) / sum(map(mpf, WEIGHTS))
    return sum(mpf(w) * (m - centre) ** 2 for w, m in zip(WEIGHTS, means, strict=True)) / sum(map(mpf, WEIGHTS))


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("gap", [1e-6, 1e-8, 1e-9])
def test_means_of_truncated_gaussians(gap: float, backend: str, rng: np.random.Generator) -> None:
    """The variance of means keeps ten digits, though locations are rounded when they are moved to the common centre."""
    z = rng.normal(size=(2, 4, 20))
    location, scale = 0.5 + gap * z[0], np.exp(0.3 * gap * z[1])
    ensemble = up.EnsemblePrediction.truncated_gaussian(location=location, scale=scale, low=0.0, high=3.0, weights=WEIGHTS)
    found = up.evaluate(ensemble, [MEASURE], backend=backend)[MEASURE]
    with mp.workdps(60):
        for j, value in enumerate(found):
            truth = variance_of([truncated_mean(location[i, j], scale[i, j], 0.0, 3.0) for i in range(4)])
            assert abs(mpf(float(value)) / truth - 1) < 1e-10


@pytest.mark.parametrize("gap", [1e-6, 1e-8, 1e-9])
def test_means_of_mixtures(gap: float, rng: np.random.Generator) -> None:
    z = rng.normal(size=(4, 2, 20))
    mean = np.array([0.1, 3.0])[:, None] + gap * z
    ensemble = up.EnsemblePrediction.gaussian_mixture(mean=mean, scale=np.ones_like(mean), weights=WEIGHTS)
    found = up.evaluate(ensemble, [MEASURE])[MEASURE]
    with mp.workdps(60):
        for j, value in enumerate(found):
            truth = variance_of([mixed_mean(mean[i, :, j], np.array([0.5, 0.5])) for i in range(4)])
            assert abs(mpf(float(value)) / truth - 1) < 1e-10
