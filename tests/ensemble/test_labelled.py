"""Arrays with named axes: the dimensions decide, never their positions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import uqprism as up
from uqprism.errors import ArgumentError, ArrayTypeError, ShapeError

RNG = np.random.default_rng(12)
MEAN, SCALE = (
    RNG.normal(size=(3, 3, 3)),
    np.exp(RNG.normal(size=(3, 3, 3))),
)  # equal lengths hide mistakes
DIMS = ("member", "lat", "lon")
NAMED = xr.DataArray(MEAN, dims=DIMS), xr.DataArray(SCALE, dims=DIMS)


@pytest.mark.parametrize("order", list(itertools.permutations(DIMS)))
@pytest.mark.parametrize("family", ["gaussian", "laplace", "student_t"])
def test_members_are_found_by_name(order: tuple[str, ...], family: str) -> None:
    """The points keep the order of the first array; all others follow it."""
    centre, scale = NAMED[0].transpose(*order), NAMED[1].transpose(*order[::-1])
    build = getattr(up.EnsemblePrediction, family)
    first = "mean" if family == "gaussian" else "location"
    more = {"df": xr.DataArray([3.0, 4.0, 5.0], dims="member")} if family == "student_t" else {}
    ens = build(**{first: centre}, scale=scale, **more)
    points = [dim for dim in order if dim != "member"]
    assert_array_equal(ens.members.centre, NAMED[0].transpose("member", *points).values)
    assert_array_equal(ens.members.scale, NAMED[1].transpose("member", *points).values)
    if more:
        assert_array_equal(ens.members.df[:, 0, 0], [3.0, 4.0, 5.0])


def test_members_may_have_another_name() -> None:
    centre, scale = (x.rename(member="realization").transpose("lat", "realization", "lon") for x in NAMED)
    ens = up.EnsemblePrediction.gaussian(mean=centre, variance=scale, member_axis="realization")
    assert_array_equal(ens.members.mean, MEAN)
    one_noise = up.EnsemblePrediction.gaussian(mean=centre, scale=2.0, member_axis="realization")
    assert_array_equal(one_noise.members.scale, np.full((3, 3, 3), 2.0))


def test_draws_are_found_by_name() -> None:
    draws = NAMED[0].rename(lat="draw")
    for order in itertools.permutations(draws.dims):
        assert_array_equal(up.EnsemblePrediction.samples(draws.transpose(*order)).members.draws, MEAN.swapaxes(0, 1))


def test_one_distribution_takes_named_axes_in_one_order() -> None:
    assert_array_equal(up.Gaussian(mean=NAMED[0], scale=NAMED[1]).mean, MEAN)
    with pytest.raises(ArrayTypeError, match="in one order"):
        up.Gaussian(mean=NAMED[0], scale=NAMED[1].transpose("lat", ...))


def test_what_names_do_not_say_is_refused() -> None:
    gaussian = up.EnsemblePrediction.gaussian
    with pytest.raises(ShapeError, match=r"a dimension called member, the members, got \('model', 'lat', 'lon'\)"):
        gaussian(mean=NAMED[0].rename(member="model"), scale=1.0)
    with pytest.raises(ArgumentError, match="scale is ndarray"):
        gaussian(mean=NAMED[0], scale=SCALE)
    with pytest.raises(ShapeError, match="must have the coordinates of mean"):
        gaussian(mean=NAMED[0].assign_coords(lat=[1, 2, 3]), scale=NAMED[1].assign_coords(lat=[1, 2, 4]))
    with pytest.raises(ShapeError, match="no other dimensions"):
        gaussian(mean=NAMED[0], scale=NAMED[1].rename(lat="height"))
    with pytest.raises(ArgumentError, match="is for arrays with named axes"):
        gaussian(mean=MEAN, scale=SCALE, member_axis="member")
    with pytest.raises(ArgumentError, match="is for arrays with named axes"):
        up.EnsemblePrediction.samples(MEAN, member_axis="member")
