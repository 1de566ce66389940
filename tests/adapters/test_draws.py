"""Draws of the target, and posterior draws of a mean and its noise as samplers keep them."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import uqprism as up
from tests.conftest import as_array
from uqprism.arrays import to_numpy
from uqprism.errors import UqprismError

RNG = np.random.default_rng(11)
MEAN, NOISE = RNG.normal(size=(2, 5, 3)), np.exp(RNG.normal(size=(2, 5)))  # chains, draws, points
FULL = np.broadcast_to(NOISE[..., None], MEAN.shape)


def labelled(*dims: str) -> xr.DataArray:
    return xr.DataArray(MEAN, dims=dims)


def test_each_draw_is_a_member(library: str) -> None:
    """Chains follow one another, and one noise per draw counts for all points, in every array library."""
    mean, noise = as_array(library, MEAN), as_array(library, NOISE)
    ens = up.from_posterior(mean, scale=noise, sample_dims=2)
    assert type(ens.members.mean) is type(mean)
    assert_array_equal(to_numpy(ens.members.mean), MEAN.reshape(10, 3))
    assert_array_equal(to_numpy(ens.members.scale), FULL.reshape(10, 3))


def test_draws_of_the_target_are_members_without_a_density(library: str) -> None:
    draws = as_array(library, MEAN)  # members, draws, points
    ens = up.from_draws(draws, weights=[0.25, 0.75])
    assert isinstance(ens.members, up.Draws)
    assert type(ens.members.draws) is type(draws)
    assert_array_equal(to_numpy(ens.members.draws), MEAN.swapaxes(0, 1))
    assert_array_equal(to_numpy(ens.weights), [0.25, 0.75])
    turned = up.from_draws(as_array(library, MEAN.T), member_axis=2, draw_axis=1)
    assert_array_equal(to_numpy(turned.members.draws), MEAN.swapaxes(0, 1))


def test_labelled_draws_of_the_target_have_the_members_by_name() -> None:
    for draw, member in (("draw", "chain"), ("sample", "member")):
        array = labelled(member, draw, "city")
        for turned in (array, array.transpose("city", draw, member)):
            assert_array_equal(up.from_draws(turned).members.draws, MEAN.swapaxes(0, 1))
    alone = up.from_draws(xr.DataArray(MEAN[0], dims=("draw", "city")).T)
    assert (alone.n_members, alone.points_shape) == (1, (3,))
    with pytest.raises(UqprismError, match="one dimension called draw or sample"):
        up.from_draws(labelled("chain", "time", "city"))


def test_the_forms_of_the_noise() -> None:
    """A number, one per draw, one per draw and point, also of a single point."""
    flat, noise = MEAN[0], NOISE[0]
    for given in (noise, noise[:, None], np.repeat(noise[:, None], 3, axis=1)):
        assert_array_equal(up.from_posterior(flat, scale=given).members.scale, FULL[0])
    assert_array_equal(up.from_posterior(flat, scale=2.0).members.scale, np.full((5, 3), 2.0))
    assert_array_equal(up.from_posterior(flat, variance=noise).members.variance, FULL[0])
    square = np.arange(9.0).reshape(3, 3)
    one = up.from_posterior(MEAN[..., 0], scale=NOISE, sample_dims=2)
    assert one.points_shape == ()
    assert_array_equal(one.members.mean, MEAN[..., 0].ravel())
    one_per_draw = up.from_posterior(square, scale=[1.0, 2.0, 3.0]).members.scale
    assert_array_equal(one_per_draw, np.repeat([[1.0], [2.0], [3.0]], 3, axis=1))


def test_labelled_axes_may_stand_anywhere() -> None:
    mean = xr.DataArray(MEAN, dims=("chain", "draw", "city"), coords={"draw": np.arange(5)})
    noise = xr.DataArray(NOISE, dims=("chain", "draw"))
    expected = up.from_posterior(MEAN, scale=NOISE, sample_dims=2).members
    for turned in (mean, mean.transpose("city", "draw", "chain")):
        for other in (noise, noise.T, noise.expand_dims(city=3)):
            ens = up.from_posterior(turned, scale=other)
            assert_array_equal(ens.members.mean, expected.mean)
            assert_array_equal(ens.members.scale, expected.scale)
    stacked = {"sample": ("chain", "draw")}
    ens = up.from_posterior(mean.stack(stacked), scale=noise.assign_coords(draw=np.arange(5)).stack(stacked))
    assert_array_equal(ens.members.mean, expected.mean)
    assert_array_equal(ens.members.scale, expected.scale)
    fixed = xr.DataArray([1.0, 2.0, 3.0], dims="city")
    assert_array_equal(up.from_posterior(mean, scale=fixed).members.scale, np.tile([1.0, 2.0, 3.0], (10, 1)))


def test_thinning_is_even() -> None:
    draws = np.arange(12.0)[:, None]
    assert_array_equal(up.from_posterior(draws, scale=1.0, n_members=3).members.mean[:, 0], [2.0, 6.0, 10.0])
    assert_array_equal(up.from_posterior(draws, scale=1.0, n_members=12).members.mean, draws)
    assert up.from_posterior(draws, scale=draws + 1.0, n_members=5).members.scale.shape == (5, 1)


def test_weights_go_with_the_draws() -> None:
    weights = np.arange(1.0, 11.0).reshape(2, 5) / 55.0
    mean = xr.DataArray(MEAN, dims=("chain", "draw", "city"))
    for given in (weights, weights.ravel(), weights.tolist()):
        assert_array_equal(up.from_posterior(MEAN, scale=1.0, sample_dims=2, weights=given).weights, weights.ravel())
    turned = xr.DataArray(weights, dims=("chain", "draw")).T
    assert_array_equal(up.from_posterior(mean, scale=1.0, weights=turned).weights, weights.ravel())


def test_gradients_flow() -> None:
    import torch

    mean = torch.tensor(MEAN[0], requires_grad=True)
    up.decompose(up.from_posterior(mean, scale=torch.tensor(NOISE[0]), n_members=3)).total.sum().backward()
    assert torch.isfinite(mean.grad).all()


NAMED = labelled("chain", "draw", "c")
BAD = {
    "no noise": (lambda: up.from_posterior(MEAN), "exactly one of scale and variance.*neither"),
    "both": (lambda: up.from_posterior(MEAN, scale=1.0, variance=1.0), "got both"),
    "points only": (lambda: up.from_posterior(MEAN[0], scale=np.ones(3)), r"\(5, 3\), or of its draws, \(5,\).*got \(3,\)"),
    "sample_dims": (lambda: up.from_posterior(MEAN, scale=1.0, sample_dims=4), "sample_dims must name"),
    "no draws": (lambda: up.from_posterior(3.0, scale=1.0), "sample_dims must name"),
    "too many members": (lambda: up.from_posterior(MEAN[0], scale=1.0, n_members=6), "between 1 and the 5 draws"),
    "weights and thinning": (lambda: up.from_posterior(MEAN[0], scale=1.0, n_members=2, weights=[0.2] * 5), "resample"),
    "names": (lambda: up.from_posterior(labelled("a", "b", "c"), scale=1.0), "dimension called chain or draw or sample"),
    "names and number": (lambda: up.from_posterior(NAMED, scale=1.0, sample_dims=2), "without names"),
    "half named": (lambda: up.from_posterior(NAMED, scale=NOISE), "scale is ndarray"),
    "foreign dimension": (lambda: up.from_posterior(NAMED, scale=labelled("chain", "draw", "x")), "no other dimensions"),
    "other coordinates": (
        lambda: up.from_posterior(NAMED.assign_coords(c=[0, 1, 2]), scale=abs(NAMED.assign_coords(c=[0, 1, 5]))),
        "the coordinates of mean",
    ),
    "negative scale": (lambda: up.from_posterior(MEAN[0], scale=-1.0), "scale must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_reason(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(UqprismError, match=message):
        call()
