"""Draws: of the target, and of the parameters of a model that was fitted by sampling."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.arrays import Array, coerce, is_array, namespace
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.labelled import by_name, is_labelled
from uqprism.ensemble.origin import Origin
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.synonyms import named_arguments

SAMPLE_NAMES = ("chain", "draw", "sample")


@named_arguments()
def from_draws(
    draws: Array, *, weights: Array = None, member_axis: int | None = None, draw_axis: int = 1, check: bool = True
) -> EnsemblePrediction:
    """Members that are known only by draws of the target, such as posterior predictive samples.

    Each draw is a value that the target might take. For draws of a model's parameters, of which each makes a distribution of
    its own, use `from_posterior`.

    Args:
        draws: (members, draws, *points), or with the members and the draws along the two axes given; for members with different
            numbers of draws a list of arrays (draws, *points). An `xarray.DataArray` has the draws along the dimension `draw` or
            `sample` and the members along `member` or `chain`, wherever those are; without a dimension of members it is one
            member.
        weights: one per member, summing to one; None means equal.
        member_axis: the axis of the members, by default the first; say 0 if more members than points are meant.
        draw_axis: the axis of the draws.
        check: whether to check the values.
    """
    return EnsemblePrediction.samples(draws, weights=weights, member_axis=member_axis, draw_axis=draw_axis, check=check)


@named_arguments()
def from_posterior(
    mean: Array,
    *,
    scale: Array = None,
    variance: Array = None,
    sample_dims: int | None = None,
    n_members: int | None = None,
    weights: Array = None,
) -> EnsemblePrediction:
    """One Gaussian member for each posterior draw of the mean and the noise, as PyMC, ArviZ, Stan or NumPyro keep them.

    These are draws of a model's parameters. For draws of the target itself (posterior predictive samples), which are not
    distributions, use `from_draws`.

    Args:
        mean: (draw, *points), or (chain, draw, *points) with `sample_dims=2`. An `xarray.DataArray` has its axes by name,
            `chain`, `draw` or `sample`, in any order.
        scale: the standard deviation of the noise: shaped like the mean; or with the axes of the draws only, for one noise
            for all points; or a number. If the mean is a `DataArray`, another one with some of its dimensions, or a number.
        variance: the variance of the noise, in the same shapes; give one of the two.
        sample_dims: how many leading axes count draws, 1 unless given; not for a `DataArray`.
        n_members: keep this many draws, evenly spaced; all of them unless given.
        weights: one for each draw, summing to one; None means equal.
    """
    noise = {name: x for name, x in (("scale", scale), ("variance", variance)) if x is not None}
    if len(noise) != 1:
        raise ArgumentError(
            f"give exactly one of scale and variance, the noise of each draw; got {'both' if noise else 'neither'}"
        )
    named = {"mean": mean, **noise}
    if any(is_labelled(x) for x in named.values()):
        if sample_dims is not None:
            raise ArgumentError(f"sample_dims is for arrays without names; a DataArray names its draws {', '.join(SAMPLE_NAMES)}")
        drawn = [dim for dim in SAMPLE_NAMES if dim in getattr(mean, "dims", ())]
        if is_labelled(mean) and not drawn:
            raise ShapeError(f"mean must have a dimension called {' or '.join(SAMPLE_NAMES)}, got {tuple(mean.dims)}; rename one")
        named, sample_dims = by_name(named, drawn), len(drawn)
    members = _members(coerce(**named), 1 if sample_dims is None else sample_dims)
    if weights is not None:
        weights = _flat(weights)
    if n_members is not None:
        if weights is not None:
            raise ArgumentError("n_members thins draws of equal weight; leave weights out, or resample the draws by weight first")
        kept = evenly(len(members["mean"]), n_members)
        members = {name: x[kept] for name, x in members.items()}
    found = EnsemblePrediction.gaussian(**members, weights=weights, member_axis=0)
    return found.made_by(Origin("from_posterior", "posterior", found.n_members))


def _flat(weights: Array) -> Array:
    """One weight for each draw, chain after chain."""
    if is_labelled(weights):
        # In the order in which `_members` joins chains.
        weights = weights.transpose(*(name for name in SAMPLE_NAMES if name in weights.dims)).values
    return weights.reshape(-1) if is_array(weights) else np.ravel(weights)


def evenly(count: int, n_members: int) -> np.ndarray[Any, Any]:
    """This many of `count` places, evenly spaced."""
    if not 1 <= n_members <= count:
        raise InvalidValueError(f"n_members must be between 1 and the {count} draws there are, got {n_members}")
    return (2 * np.arange(n_members) + 1) * count // (2 * n_members)  # the middle of each part, so that chains count alike


def _members(named: dict[str, Array], sample_dims: int) -> dict[str, Array]:
    """Arrays (draws, *points), all of the mean's shape, with the axes that count draws made one."""
    shape = tuple(named["mean"].shape)
    if not 1 <= sample_dims <= len(shape):
        raise ShapeError(f"sample_dims must name at least one of the axes of mean, whose shape is {shape}; got {sample_dims}")
    samples, points = shape[:sample_dims], shape[sample_dims:]
    members = {}
    for name, x in named.items():
        xp = namespace(x)
        if x.ndim and tuple(x.shape) not in (shape, samples, (*samples, *(1,) * len(points))):
            raise ShapeError(
                f"{name} must have the shape of mean, {shape}, or of its draws, {samples}, or be a number; got {tuple(x.shape)}"
            )
        wide = x if x.ndim == len(shape) or not x.ndim else xp.reshape(x, (*samples, *(1,) * len(points)))
        members[name] = xp.reshape(xp.broadcast_to(wide, shape), (-1, *points))
    return members
