"""`EnsemblePrediction`: what several models predict for the same points, in one family of distributions."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.arrays import Array, coerce, is_traced, is_wrapped, namespace, to_numpy, working
from uqprism.ensemble.approximations import CentredEnsemble
from uqprism.ensemble.columns import NO_COLUMNS, column_name
from uqprism.ensemble.labelled import draws_second, is_labelled, members_first
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError, ShapeError, warn
from uqprism.families import Draws, Family, Gaussian, Laplace, Logistic, Mixture, StudentT, families
from uqprism.families.base import as_weights, check_weights, mixing_weights, prepare
from uqprism.support.optional import require
from uqprism.support.reading import loading
from uqprism.support.storage import write_npz
from uqprism.support.tables import data_frame
from uqprism.synonyms import CENTRES, DEVIATIONS, VARIANCES, named_arguments, no_attribute

FORMAT = "uqprism.EnsemblePrediction"
MANY_MEMBERS = 100  # so many models for fewer points are rather points for few models


BUILD = "for arrays use EnsemblePrediction.gaussian(mean=, variance=) or another constructor"
HINTS = {  # what is tried on an ensemble, and the line to type
    **dict.fromkeys(CENTRES, "ensemble.mixture.mean (of each point) or ensemble.members.mean"),
    **dict.fromkeys((*DEVIATIONS, "scale"), "ensemble.matched.scale (of each point) or ensemble.members.scale"),
    **dict.fromkeys((*VARIANCES, "variance"), "ensemble.mixture.variance (of each point) or ensemble.members.variance"),
    **dict.fromkeys(("aleatoric", "epistemic", "bayes", "excess", "total"), "up.decompose(ensemble), which has it"),
    **dict.fromkeys(("decompose", "evaluate"), "up.decompose(ensemble) or up.evaluate(ensemble)"),
    **dict.fromkeys(("shape", "size", "ndim"), "n_members, points_shape or n_points"),
    **dict.fromkeys(("quantile", "cdf", "score", "log_density"), "those of ensemble.mixture"),
    "plot": "up.write_report(ensemble, 'report.html')",
    "to_csv": "ensemble.to_pandas().to_csv(path)",
}


class EnsemblePrediction:
    """The predictions of several models for the same points, as distributions of one family.

    Build it with `gaussian`, `natural`, `laplace`, `logistic`, `student_t` or `samples`; the functions `uqprism.from_frame`,
    `from_model`, `from_torch`, `from_draws` and `from_posterior` build it from tables and from other libraries' models and
    draws. Arrays are (members, *points), or have the members along `member_axis`; NumPy, PyTorch and JAX arrays are kept as they
    are, lists and tables become NumPy. Of an `xarray.DataArray` the dimensions decide, in any order: the members are along
    `member`, or the dimension that `member_axis` names. Values are checked once, here; `check=False` skips that.

    Attributes:
        members: the distributions, with a batch of (members, *points).
        weights: one weight per member, summing to one; None means equal.
    """

    @named_arguments(instead=f"EnsemblePrediction takes distributions; {BUILD}")
    def __init__(self, members: Family, weights: Array = None, *, check: bool = True) -> None:
        given: object = members  # so that mypy does not call the check below unreachable
        if not isinstance(given, Family):
            raise ArrayTypeError(f"members must be distributions, got {type(given).__name__}; {BUILD}")
        shape = members.batch_shape
        if not shape:
            raise ShapeError("a prediction needs a first axis of members, got a single number; axes are (members, *points)")
        if shape[0] == 0:
            raise ShapeError("a prediction needs at least one member, got an array with none; axes are (members, *points)")
        self.members = members
        self.weights = None if weights is None else _member_weights(weights, members, check)

    # Constructors -----------------------------------------------------------------------------------------------------

    @classmethod
    @named_arguments()
    def gaussian(
        cls,
        *,
        mean: Array,
        variance: Array = None,
        scale: Array = None,
        weights: Array = None,
        member_axis: int | str | None = None,
        check: bool = True,
    ) -> EnsemblePrediction:
        """Gaussian members with this mean and either variance or scale (standard deviation)."""
        given = _arrays(member_axis, mean=mean, variance=variance, scale=scale)
        return cls(Gaussian(**given, check=check), weights, check=check)

    @classmethod
    @named_arguments()
    def natural(
        cls, *, eta1: Array, eta2: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True
    ) -> EnsemblePrediction:
        """Gaussian members by natural parameters: eta1 = mean / variance and eta2 = -1 / (2 variance), which is negative."""
        given = _arrays(member_axis, eta1=eta1, eta2=eta2)
        given = prepare({"eta1": "location", "eta2": "negative"}, check, **given)
        variance = -0.5 / given["eta2"]
        return cls(Gaussian(mean=given["eta1"] * variance, variance=variance, check=check), weights, check=check)

    @classmethod
    @named_arguments(deviation="the standard deviation divided by sqrt(2)")
    def laplace(
        cls, *, location: Array, scale: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True
    ) -> EnsemblePrediction:
        """Laplace members; the scale is the mean absolute deviation, not the standard deviation."""
        return cls(Laplace(**_arrays(member_axis, location=location, scale=scale), check=check), weights, check=check)

    @classmethod
    @named_arguments(deviation="the standard deviation times sqrt(3) / pi")
    def logistic(
        cls, *, location: Array, scale: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True
    ) -> EnsemblePrediction:
        """Logistic members."""
        return cls(Logistic(**_arrays(member_axis, location=location, scale=scale), check=check), weights, check=check)

    @classmethod
    @named_arguments(deviation="the standard deviation times sqrt(1 - 2 / df)")
    def student_t(
        cls,
        *,
        location: Array,
        scale: Array,
        df: Array = None,
        weights: Array = None,
        member_axis: int | str | None = None,
        check: bool = True,
    ) -> EnsemblePrediction:
        """Student t members; `df` are their degrees of freedom, one number or an array like the others."""
        if df is None:
            raise ArgumentError("df, the degrees of freedom, must be given")
        given = _arrays(member_axis, location=location, scale=scale, df=df)
        return cls(StudentT(**given, check=check), weights, check=check)

    @classmethod
    @named_arguments()
    def samples(
        cls, draws: Array, *, weights: Array = None, member_axis: int | str | None = None, draw_axis: int = 1, check: bool = True
    ) -> EnsemblePrediction:
        """Members given by draws of the target, (members, draws, *points), or with other axes for members and draws.

        Each draw is a value that the target might take. For draws of a model's parameters, each of which gives a distribution,
        use `uqprism.from_posterior`.
        """
        if is_labelled(draws):
            draws, member_axis, draw_axis = draws_second(draws), 0, 1
        member_axis, draws = _number(member_axis), coerce(draws=draws)["draws"]
        first = member_axis or 0
        if draws.ndim < 2:
            raise ShapeError(f"draws must have axes (members, draws, *points), got shape {tuple(draws.shape)}")
        for name, axis in (("member_axis", first), ("draw_axis", draw_axis)):
            if not -draws.ndim <= axis < draws.ndim:
                raise ShapeError(f"{name} {axis} is not an axis of draws with shape {tuple(draws.shape)}")
        if first % draws.ndim == draw_axis % draws.ndim:
            raise ShapeError(f"member_axis and draw_axis must differ, both are {first}")
        draws = namespace(draws).moveaxis(draws, (draw_axis, first), (0, 1))
        _check_orientation("draws", (draws.shape[1], draws.shape[0], *draws.shape[2:]), member_axis, depth=2)
        return cls(Draws(draws, check=check), weights, check=check)

    if not TYPE_CHECKING:  # a type checker would take every attribute for known

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, HINTS)

    # Shape ------------------------------------------------------------------------------------------------------------

    @property
    def n_members(self) -> int:
        """How many members."""
        return int(self.members.batch_shape[0])

    @property
    def points_shape(self) -> tuple[int, ...]:
        """The shape of the points, () for one point."""
        return tuple(self.members.batch_shape[1:])

    @property
    def n_points(self) -> int:
        """How many points."""
        return int(np.prod(self.points_shape, dtype=np.int64))

    def __len__(self) -> int:
        if not self.points_shape:
            raise ShapeError("a prediction for a single point has no length")
        return self.points_shape[0]

    def __getitem__(self, index: Any) -> EnsemblePrediction:
        """The same members at some of the points."""
        at = index if isinstance(index, tuple) else (index,)
        return self._map_points(lambda x: x[(slice(None), *at)])

    def flat(self) -> EnsemblePrediction:
        """The same prediction with the points along one axis."""
        if len(self.points_shape) == 1:
            return self
        return self._map_points(lambda x: namespace(x).reshape(x, (self.n_members, self.n_points)))

    def counted(self) -> EnsemblePrediction:
        """Without the members of weight zero, so that they do not move the centre; all members if the weights are traced."""
        weights = self.weights
        # Weights with gradients stay whole too: a weight of zero has a gradient.
        if weights is None or is_traced(weights) or is_wrapped(weights) or getattr(weights, "requires_grad", False):
            return self
        keep = namespace(weights).nonzero(weights)[0]
        if len(keep) == self.n_members:
            return self
        depth = len(self.members.batch_shape)
        members = self.members.map(lambda x: x[(slice(None),) * (x.ndim - depth) + (keep,)])
        return EnsemblePrediction(members, weights[keep], check=False)

    def _map_points(self, function: Any) -> EnsemblePrediction:
        """Apply `function` to arrays (members, *points); leading axes, such as that of draws, are looped over."""
        depth = len(self.members.batch_shape)

        def apply(x: Array) -> Array:
            if x.ndim == depth:
                return function(x)
            return namespace(x).stack([apply(part) for part in x], axis=0)

        clone = object.__new__(type(self))
        clone.members, clone.weights = self.members.map(apply), self.weights
        return clone

    @staticmethod
    def concatenate(predictions: Sequence[EnsemblePrediction], axis: int = 0) -> EnsemblePrediction:
        """One prediction for the points of all, joined along an axis of the points; family, members and weights must agree."""
        if not predictions:
            raise ArgumentError("predictions must hold at least one EnsemblePrediction, got none")
        first = predictions[0]
        names = _stored_parameters(first.members)
        if not -len(first.points_shape) <= axis < len(first.points_shape):
            raise ShapeError(f"axis {axis} is not an axis of the points, whose shape is {first.points_shape}")
        axis %= len(first.points_shape)
        for other in predictions[1:]:
            if type(other.members) is not type(first.members) or other.n_members != first.n_members:
                raise ShapeError(f"predictions must agree in family and members: {first!r} and {other!r} do not")
            if not _same_weights(first.weights, other.weights):
                raise InvalidValueError("predictions must have the same member weights")
            if _stored_parameters(other.members) != names:
                raise ArgumentError("predictions must all be given by variance, or all by scale")
            around = [shape[:axis] + shape[axis + 1 :] for shape in (first.points_shape, other.points_shape)]
            if around[0] != around[1]:
                raise ShapeError(f"points must agree but for axis {axis}, got {first.points_shape} and {other.points_shape}")
        depth = len(first.members.batch_shape)

        def joined(name: str) -> Array:
            parts = [getattr(p.members, name) for p in predictions]
            return namespace(parts[0]).concat(parts, axis=parts[0].ndim - depth + 1 + axis)

        members = _restored(type(first.members), {name: joined(name) for name in names})
        return EnsemblePrediction(members, first.weights, check=False)

    # Approximations ---------------------------------------------------------------------------------------------------

    @cached_property
    def _centred(self) -> CentredEnsemble:
        flat = self.flat().counted()
        return CentredEnsemble(flat.members, flat.member_weights())

    def member_weights(self) -> Array:
        """Weights (members, *points) in working precision, equal if none were given."""
        return mixing_weights(working(self.members.centre), self.weights, check=False)

    def _in_units(self, distribution: Family) -> Any:
        centring, dtype = self._centred.centring, self.members.centre.dtype
        moved = distribution.affine(centring.centre, centring.unit)
        shape = self.points_shape
        return moved.map(lambda x: namespace(x).reshape(namespace(x).astype(x, dtype), (*x.shape[:-1], *shape)))

    @property
    def mixture(self) -> Any:
        """The average of the members' distributions, (*points)."""
        if isinstance(self.members, Draws):
            return self._in_units(self._centred.mixture)
        # From the members as given: to the common centre and back would round them.
        return Mixture(self.members, self.weights, check=False)

    @property
    def matched(self) -> Any:
        """One Gaussian per point with the mixture's mean and variance."""
        return self._in_units(self._centred.matched)

    @property
    def pooled(self) -> Any:
        """One Gaussian per point with the mixture's mean and the mean of the members' variances."""
        return self._in_units(self._centred.pooled)

    # Files ------------------------------------------------------------------------------------------------------------

    def _header(self) -> dict[str, Any]:
        return {"family": self.members.name, "parameters": _stored_parameters(self.members)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with a JSON header; `load` reads it back. A failed write leaves no file."""
        header = self._header()
        arrays = {n: to_numpy(getattr(self.members, n)) for n in header["parameters"]}
        if self.weights is not None:
            arrays["member_weights"] = to_numpy(self.weights)
        write_npz(path, FORMAT, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, check: bool = True) -> EnsemblePrediction:
        """Read what `save` wrote, as NumPy arrays. Values are checked as when an ensemble is made; `check=False` skips that."""
        with loading(path, FORMAT) as (header, arrays):
            weights = arrays.pop("member_weights", None)
            return cls(_restored(families.get(header["family"]), arrays, check=check), weights, check=check)

    def to_pandas(self, index: Any = None) -> Any:
        """A `pandas.DataFrame` with a column per parameter and member (`mean_0`, `scale_0`, ...) and a row per point.

        `uqprism.from_frame` reads it back. The frame does not hold the weights; pass them to `from_frame`.
        """
        return data_frame(self._columns(), index)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with the columns of `to_pandas`, the weights and the shape; `uqprism.from_arrow` reads it."""
        pyarrow = require("pyarrow", extra="cli")
        header = {**self._header(), "points_shape": self.points_shape, "members": self.n_members}
        header["weights"] = None if self.weights is None else to_numpy(self.weights).tolist()
        return pyarrow.table(self._columns()).replace_schema_metadata({FORMAT: json.dumps(header)})

    def _columns(self) -> dict[str, Array]:
        if isinstance(self.members, Draws):
            raise ArgumentError(NO_COLUMNS)
        flat = self.flat().members
        columns = {"variance" if n == "given_variance" else n: getattr(flat, n) for n in _stored_parameters(self.members)}
        return {column_name(n, i): to_numpy(x)[i] for n, x in columns.items() for i in range(self.n_members)}

    def __repr__(self) -> str:
        points = " x ".join(str(n) for n in self.points_shape) or "1"
        return f"<EnsemblePrediction: {self.n_members} {self.members.name} members, {points} points>"


def _stored_parameters(members: Family) -> list[str]:
    """The parameters that define the members; of scale and variance, the one that was given."""
    if members.name not in families:
        raise ArgumentError(f"{members.name} members cannot be stored or joined; the families that can are {families.names()}")
    # `deviation` belongs to a centred ensemble and is formed anew from these.
    given = [n for n in members.parameters if n != "deviation" and getattr(members, n) is not None]
    return [n for n in given if not (n == "scale" and "given_variance" in given)]


def _restored(family: type[Family], arrays: dict[str, Array], *, check: bool = False) -> Family:
    """Members with exactly these stored parameters."""
    spread = {"scale", "given_variance"} if family is Gaussian else set()
    needed = {*family.parameters} - {"deviation"} - spread
    if not needed <= arrays.keys() <= needed | spread or len(spread & arrays.keys()) != bool(spread):
        raise InvalidValueError(f"{family.name} members need the arrays {', '.join(family.parameters)}, got {', '.join(arrays)}")
    kinds = {name: "location" if family is Draws else kind for name, kind in family.parameters.items()}  # a weight may be 0
    shapes = {name: x.shape for name, x in prepare(kinds, check, **arrays).items()}
    if any(x.shape != shapes[name] for name, x in arrays.items()):
        raise ShapeError(f"parameters must have one shape, got {', '.join(f'{name} {x.shape}' for name, x in arrays.items())}")
    members = object.__new__(family)
    for name in family.parameters:
        setattr(members, name, arrays.get(name))
    # As the constructor does, so that nothing differs from what was saved or joined.
    if "given_variance" in arrays:
        members.scale = namespace(arrays["given_variance"]).sqrt(arrays["given_variance"])  # type: ignore[attr-defined]
    return members


def _arrays(member_axis: int | str | None, **given: Array) -> dict[str, Array]:
    """The arguments that were given, as arrays with the members first."""
    required = next(iter(given))
    if given[required] is None:
        raise ArgumentError(f"{required} must be given, got None; axes are (members, *points)")
    for name, x in given.items():
        if hasattr(x, "columns") and not member_axis:  # the rows of a table are points, not members
            raise ArrayTypeError(
                f"{name} must be an array with the members first, got a {type(x).__name__}; up.from_frame reads a table "
                f"with all columns; else give {name}.to_numpy().T"
            )
    given = {name: x for name, x in given.items() if x is not None}
    if any(is_labelled(x) for x in given.values()):
        given, member_axis = members_first(given, member_axis), 0
    member_axis, arrays = _number(member_axis), coerce(**given)
    first = arrays[required]
    if first.ndim and not -first.ndim <= (member_axis or 0) < first.ndim:
        raise ShapeError(f"member_axis {member_axis} is not an axis of {required} with shape {tuple(first.shape)}")
    moved = {
        n: namespace(x).moveaxis(x, member_axis, 0) if member_axis and x.ndim == first.ndim else x for n, x in arrays.items()
    }
    shape = tuple(moved[required].shape)
    _check_orientation(required, shape, member_axis, depth=1)
    return {name: _with_all_axes(name, x, shape) for name, x in moved.items()}


def _number(member_axis: int | str | None) -> int | None:
    """The axis of arrays without names."""
    if isinstance(member_axis, str):
        raise ArgumentError(f"member_axis {member_axis!r} is for arrays with named axes; give the number of the axis")
    return member_axis


def _with_all_axes(name: str, x: Array, shape: tuple[int, ...]) -> Array:
    """Refuse an array with fewer axes, unless it holds one number: it may be meant for the members or for the points."""
    own = tuple(x.shape)
    if len(own) >= len(shape):
        return x
    if any(length != 1 for length in own):
        raise ShapeError(
            f"{name} must match the shape {shape}, got {own}; give ({shape[0]}, {', '.join('1' for _ in shape[1:])}) for a value "
            f"per member, (1, {', '.join(map(str, shape[1:]))}) for one per point"
        )
    return namespace(x).reshape(x, ())


def _check_orientation(name: str, shape: tuple[int, ...], member_axis: int | None, *, depth: int) -> None:
    """Warn of what looks like points where members should be, unless the axis was said; `depth` axes are not of points."""
    points = int(np.prod(shape[depth:], dtype=np.int64))
    if member_axis is not None or not shape or not shape[0] > max(MANY_MEMBERS, points) or points == 0:
        return
    way_out = f"pass {name}[None] for one model" if len(shape) == depth else "pass the axis of the models as member_axis="
    if (len(shape), depth) == (2, 1):
        way_out = f"pass {name}.T or member_axis=1"
    warn(
        f"{name} of shape {shape} is read as {shape[0]:,} members of {points:,} point{'s' if points > 1 else ''}; if the points "
        f"come first, {way_out}; if they do not, member_axis=0 says so"
    )


def _member_weights(weights: Array, members: Family, check: bool) -> Array:
    weights = as_weights(weights, members.centre)
    if tuple(weights.shape) != (members.batch_shape[0],):
        count, shape = members.batch_shape[0], tuple(weights.shape)
        raise ShapeError(f"weights must have one entry for each of the {count} members, got shape {shape}; None means equal")
    if check:
        check_weights(weights)
    return weights


def _same_weights(first: Array, second: Array) -> bool:
    if first is None or second is None:
        return first is None and second is None
    return bool(np.array_equal(to_numpy(first), to_numpy(second)))
