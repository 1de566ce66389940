"""Draws from members and mixtures of every family, and several quantiles at a time."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from tests.files.test_families import ENSEMBLES
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError

LEVELS = [0.05, 0.3, 0.5, 0.9]
COUNT = 4000
# The distance between an empirical and a true distribution function exceeds this in less than one of a million (Massart).
FAR = np.sqrt(np.log(2e6) / (2 * COUNT))


@pytest.mark.parametrize("case", ENSEMBLES)
def test_several_levels_become_the_first_axis(case: str) -> None:
    ens = ENSEMBLES[case]()[:4]
    for d in (ens.mixture, ens.members):
        found = d.quantile(LEVELS)
        assert found.shape == (4, *d.batch_shape)
        for wanted in (d.quantile(np.array(LEVELS)), d.quantile(np.array(LEVELS).reshape(4, *(1,) * len(d.batch_shape)))):
            assert_array_equal(found, wanted)
        assert_allclose(found, np.stack([d.quantile(level) for level in LEVELS]), rtol=1e-12, atol=1e-14)
        # The smallest value that is not exceeded with at least this probability, also of counts and draws.
        levels = np.reshape(LEVELS, (4, *(1,) * len(d.batch_shape)))
        width = 1e-7 * (1.0 + np.abs(found))
        assert (d.cdf(found + width) >= levels - 1e-9).all()
        assert (d.cdf(found - width) <= levels + 1e-6).all()


@pytest.mark.parametrize("case", ENSEMBLES)
def test_draws_have_the_distribution_function_of_their_family(case: str) -> None:
    ens = ENSEMBLES[case]()[:3]
    for d, drawn in ((ens.mixture, ens.sample(COUNT, seed=1)), (ens.members, ens.members.sample(COUNT, seed=2))):
        assert drawn.shape == (COUNT, *d.batch_shape)
        places = d.quantile([0.1, 0.3, 0.5, 0.7, 0.9])
        share = np.mean(drawn[None] <= places[:, None] + 1e-12 * np.abs(places[:, None]), axis=1)
        assert np.abs(share - d.cdf(places + 1e-12 * np.abs(places))).max() < FAR
    assert_array_equal(ens.sample(5, seed=1), ens.sample(5, seed=1))
    assert (ens.sample(50, seed=1) != ens.sample(50, seed=3)).any()


def test_draws_of_the_mixture_follow_the_weights_of_members() -> None:
    ens = up.EnsemblePrediction.gaussian(mean=[[-9.0, -9.0], [9.0, 9.0], [50.0, 50.0]], scale=1.0, weights=[0.25, 0.75, 0.0])
    drawn = ens.sample(COUNT, seed=0)
    assert drawn.max() < 20.0
    assert_allclose((drawn < 0.0).mean(axis=0), 0.25, atol=0.03)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.06  # points are independent


def test_draws_make_members_again() -> None:
    ens = up.EnsemblePrediction.gamma(shape=[[2.0], [3.0]], scale=1.0)
    again = up.EnsemblePrediction.samples(ens.members.sample(COUNT, seed=0), member_axis=1, draw_axis=0)
    assert_allclose(up.decompose(again).total, up.decompose(ens).total, rtol=0.05)


def test_the_library_and_precision_of_the_members_are_kept() -> None:
    mean, scale = [[0.0, 1.0], [1.0, 2.0]], [[1.0, 1.0], [2.0, 0.5]]
    wanted = up.EnsemblePrediction.gaussian(mean=mean, scale=scale)
    for dtype in (torch.float32, torch.float64):
        given = torch.tensor(mean, dtype=dtype, requires_grad=True)
        ens = up.EnsemblePrediction.gaussian(mean=given, scale=torch.tensor(scale, dtype=dtype))
        drawn = ens.sample(7, seed=0)
        assert drawn.dtype == dtype
        assert_allclose(drawn.detach().numpy(), wanted.sample(7, seed=0), rtol=1e-6)
        assert_allclose(ens.mixture.quantile(LEVELS).detach().numpy(), wanted.mixture.quantile(LEVELS), rtol=1e-5)
        drawn.sum().backward()
        assert_allclose(given.grad.sum(), 14.0)  # each draw moves with the mean of its member
    found = jax.jit(lambda m: up.EnsemblePrediction.gaussian(mean=m, scale=1.0).sample(7, seed=0))(
        np.asarray(mean, dtype=np.float32)
    )
    assert_allclose(found, up.EnsemblePrediction.gaussian(mean=mean, scale=1.0).sample(7, seed=0), rtol=1e-4)
    single = up.EnsemblePrediction.gaussian(mean=np.float32([[1e3]]), scale=np.float32([[1.0]])).sample(9, seed=0)
    assert single.dtype == np.float32


def test_single_points_and_mixtures_of_mixtures() -> None:
    point = up.EnsemblePrediction.gaussian(mean=[0.0, 1.0], scale=1.0)
    assert point.sample(3, seed=0).shape == (3,)
    assert point.mixture.quantile(LEVELS).shape == (4,)
    assert up.Gaussian(mean=0.0, variance=1.0).sample(3, seed=0).shape == (3,)
    assert up.Gaussian(mean=np.zeros(3), variance=1.0).sample(3, seed=0).shape == (3, 3)


def test_wrong_levels_and_counts_are_refused() -> None:
    ens = up.EnsemblePrediction.gaussian(mean=[[0.0]], scale=1.0)
    for level in (95, [5, 95], -0.1, float("nan")):
        with pytest.raises(InvalidValueError, match="from 0 to 1"):
            ens.mixture.quantile(level)
    with pytest.raises(ShapeError, match="a number or a list of numbers"):
        ens.mixture.quantile([[0.1]])
    for n in (0, -1, 2.5, True):
        with pytest.raises(ArgumentError, match="number of draws, at least 1"):
            ens.sample(n)
    with pytest.raises(AttributeError, match=r"ensemble\.sample\(n, seed=\)"):
        ens.rvs  # noqa: B018
