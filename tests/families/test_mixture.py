"""Mixtures: moments, densities and functionals follow from the components."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

import uqprism as up
from uqprism.errors import InvalidValueError, ShapeError
from uqprism.families.functionals import absolute_gap, cramer_distance, cross_entropy, overlap, relative_entropy


@pytest.fixture
def mixture() -> up.Mixture:
    return up.Mixture(up.Gaussian(mean=np.array([-1.0, 2.0]), scale=np.array([0.5, 1.0])), weights=[0.25, 0.75])


def test_moments(mixture: up.Mixture) -> None:
    assert_allclose(mixture.mean, 1.25)
    assert_allclose(mixture.variance, 0.25 * 0.25 + 0.75 + 0.25 * 2.25**2 + 0.75 * 0.75**2)


def test_density_and_distribution(mixture: up.Mixture) -> None:
    p, q = up.Gaussian(mean=-1.0, scale=0.5), up.Gaussian(mean=2.0, scale=1.0)
    for y in (-3.0, 0.0, 2.5):
        assert_allclose(mixture.density(y), 0.25 * p.density(y) + 0.75 * q.density(y), rtol=1e-13)
        assert_allclose(mixture.cdf(y), 0.25 * p.cdf(y) + 0.75 * q.cdf(y), rtol=1e-13)
        assert_allclose(mixture.absolute_deviation(y), 0.25 * p.absolute_deviation(y) + 0.75 * q.absolute_deviation(y))
    assert_allclose(mixture.cdf(mixture.quantile(0.4)), 0.4, rtol=1e-12)


def test_functionals_against_their_integrals(mixture: up.Mixture) -> None:
    other = up.Mixture(up.Laplace(location=np.array([0.0, 1.0, 3.0]), scale=np.array([1.0, 0.7, 0.4])))
    f, g, p, q = mixture.cdf, other.cdf, mixture.density, other.density
    for functional, integrand in (
        (absolute_gap, lambda t: f(t) * (1 - g(t)) + g(t) * (1 - f(t))),
        (overlap, lambda t: p(t) * q(t)),
        (cramer_distance, lambda t: (f(t) - g(t)) ** 2),
        (cross_entropy, lambda t: -p(t) * other.log_density(t)),
        (relative_entropy, lambda t: p(t) * (mixture.log_density(t) - other.log_density(t))),
    ):
        pieces = itertools.pairwise([-40.0, -1.0, 0.0, 1.0, 2.0, 3.0, 40.0])
        expected = sum(quad(integrand, a, b, epsabs=1e-12, epsrel=1e-10, limit=200)[0] for a, b in pieces)
        assert_allclose(functional(mixture, other), expected, rtol=1e-8, err_msg=functional.__name__)


def test_batches() -> None:
    """The first axis is mixed over; the rest is a batch like any other."""
    components = up.Gaussian(mean=np.arange(12.0).reshape(3, 4), scale=np.ones((3, 4)))
    mixture = up.Mixture(components)
    assert mixture.batch_shape == (4,)
    y = np.array([[0.0, 1.0, 2.0, 3.0], [4.0, 4.0, 4.0, 4.0]])
    single = up.Mixture(components.map(lambda x: x[:, 2]))
    assert_allclose(mixture.log_density(y)[:, 2], [single.log_density(2.0), single.log_density(4.0)], rtol=1e-13)
    assert_allclose(mixture.quantile(0.7)[2], single.quantile(0.7), rtol=1e-12)


def test_members_of_weight_zero_do_not_count() -> None:
    one = up.Mixture(up.Gaussian(mean=np.array([0.0, 50.0]), scale=np.array([1.0, 2.0])), weights=[1.0, 0.0])
    assert_allclose(up.rules.Log().entropy(one), 0.5 * np.log(2 * np.pi * np.e), rtol=1e-12)


@pytest.mark.parametrize("weights", [[0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0], [np.inf, 0.0]])
def test_weights_must_be_a_distribution(weights: list[float]) -> None:
    with pytest.raises(InvalidValueError, match="weights must"):
        up.Mixture(up.Gaussian(mean=np.zeros(2), scale=np.ones(2)), weights=weights)


def test_shapes_must_fit() -> None:
    with pytest.raises(ShapeError, match="2 members"):
        up.Mixture(up.Gaussian(mean=np.zeros(2), scale=np.ones(2)), weights=[1.0, 0.0, 0.0])
    with pytest.raises(ShapeError, match="first axis"):
        up.Mixture(up.Gaussian(mean=0.0, scale=1.0))
