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
from uqprism.ensemble.constructors import Constructors
from uqprism.ensemble.given import are_unequal, with_inner_second, with_members_first
from uqprism.ensemble.layout import columns_of
from uqprism.ensemble.origin import UNKNOWN, Origin, common
from uqprism.ensemble.widths import have_widths, too_narrow
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError, ShapeError
from uqprism.families import Draws, Family, Gaussian, Histogram, Laplace, Logistic, Mixture, Quantiles, StudentT, families
from uqprism.families.base import NARROWEST, as_weights, check_weights, mixing_weights, prepare
from uqprism.families.histogram import Outer
from uqprism.families.quantiles import Tails
from uqprism.families.sampling import Seed
from uqprism.support.optional import require
from uqprism.support.reading import loading
from uqprism.support.storage import write_npz
from uqprism.support.tables import data_frame
from uqprism.synonyms import CENTRES, DEVIATIONS, VARIANCES, named_arguments, no_attribute

FORMAT = "uqprism.EnsemblePrediction"


BUILD = "for arrays use EnsemblePrediction.gaussian(mean=, variance=) or another constructor"
HINTS = {  # what is tried on an ensemble, and the line to type
    **dict.fromkeys(CENTRES, "ensemble.mixture.mean (of each point) or ensemble.members.mean"),
    **dict.fromkeys((*DEVIATIONS, "scale"), "ensemble.matched.scale (of each point) or ensemble.members.scale"),
    **dict.fromkeys((*VARIANCES, "variance"), "ensemble.mixture.variance (of each point) or ensemble.members.variance"),
    **dict.fromkeys(("aleatoric", "epistemic", "bayes", "excess", "total"), "up.decompose(ensemble), which has it"),
    **dict.fromkeys(("decompose", "evaluate"), "up.decompose(ensemble) or up.evaluate(ensemble)"),
    **dict.fromkeys(("shape", "size", "ndim"), "n_members, points_shape or n_points"),
    **dict.fromkeys(("quantile", "cdf", "score", "log_density"), "those of ensemble.mixture"),
    **dict.fromkeys(("rvs", "rsample", "draw"), "ensemble.sample(n, seed=)"),
    "plot": "up.write_report(ensemble, 'report.html')",
    "to_csv": "ensemble.to_pandas().to_csv(path)",
}


class EnsemblePrediction(Constructors):
    """The predictions of several models for the same points, as distributions of one family.

    Build it with `gaussian`, `natural`, `laplace`, `logistic`, `student_t`, `lognormal`, `gamma`, `gaussian_mixture`, `samples`,
    `histogram` or `quantiles`, or of members of any family, `EnsemblePrediction(family(...))`; the functions
    `uqprism.from_frame`, `from_model`, `from_torch`, `from_draws` and `from_posterior` build it from tables and from other
    libraries' models and draws. Arrays are (members, *points), or have the members along `member_axis`; NumPy, PyTorch and JAX
    arrays are kept as they are, lists and tables become NumPy. Of an `xarray.DataArray` the dimensions decide, in any order: the
    members are along `member`, or the dimension that `member_axis` names. Values are checked once, here; `check=False` skips
    that.

    Attributes:
        members: the distributions, with a batch of (members, *points).
        weights: one weight per member, summing to one; None means equal.
        origin: what made it: the adapter of `from_model`, the kind of model and the number of members; unknown for arrays.
    """

    origin: Origin = UNKNOWN

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
        if check:
            _check_widths(members)
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
        given = with_members_first(member_axis, mean=mean, variance=variance, scale=scale)
        return cls(Gaussian(**given, check=check), weights, check=check)

    @classmethod
    @named_arguments()
    def natural(
        cls, *, eta1: Array, eta2: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True
    ) -> EnsemblePrediction:
        """Gaussian members by natural parameters: eta1 = mean / variance and eta2 = -1 / (2 variance), which is negative."""
        given = with_members_first(member_axis, eta1=eta1, eta2=eta2)
        given = prepare({"eta1": "location", "eta2": "negative"}, check, **given)
        variance = -0.5 / given["eta2"]
        return cls(Gaussian(mean=given["eta1"] * variance, variance=variance, check=check), weights, check=check)

    @classmethod
    @named_arguments(deviation="the standard deviation divided by sqrt(2)")
    def laplace(
        cls, *, location: Array, scale: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True
    ) -> EnsemblePrediction:
        """Laplace members; the scale is the mean absolute deviation, not the standard deviation."""
        return cls(Laplace(**with_members_first(member_axis, location=location, scale=scale), check=check), weights, check=check)

    @classmethod
    @named_arguments(deviation="the standard deviation times sqrt(3) / pi")
    def logistic(
        cls, *, location: Array, scale: Array, weights: Array = None, member_axis: int | str | None = None, check: bool = True
    ) -> EnsemblePrediction:
        """Logistic members."""
        return cls(Logistic(**with_members_first(member_axis, location=location, scale=scale), check=check), weights, check=check)

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
        given = with_members_first(member_axis, location=location, scale=scale, df=df)
        return cls(StudentT(**given, check=check), weights, check=check)

    @classmethod
    @named_arguments()
    def samples(
        cls, draws: Array, *, weights: Array = None, member_axis: int | str | None = None, draw_axis: int = 1, check: bool = True
    ) -> EnsemblePrediction:
        """Members given by draws of the target, (members, draws, *points), or with other axes for members and draws.

        Each draw is a value that the target might take. For draws of a model's parameters, each of which gives a distribution,
        use `uqprism.from_posterior`. Members with different numbers of draws are a list of arrays (draws, *points).
        """
        if are_unequal(draws):
            if member_axis not in (None, 0) or draw_axis != 1:
                raise ArgumentError(
                    "members with different numbers of draws are a list of arrays (draws, *points); leave the axes out"
                )
            return cls(Draws.unequal(draws, check=check), weights, check=check)
        draws, _ = with_inner_second("draws", draws, member_axis, ("draw_axis", draw_axis))
        return cls(Draws(draws, check=check), weights, check=check)

    @classmethod
    @named_arguments()
    def histogram(
        cls,
        *,
        edges: Array,
        probabilities: Array,
        outer: Outer | None = None,
        weights: Array = None,
        member_axis: int | str | None = None,
        bar_axis: int = 1,
        check: bool = True,
    ) -> EnsemblePrediction:
        """Members given by bars: probabilities (members, bars, *points), or with other axes for members and bars.

        The edges are (bars + 1,), (bars + 1, *points), or with as many axes as the probabilities where members have their own.
        `outer` makes tails without end of the two outermost bars, see `uqprism.families.Histogram`.
        """
        bars, first = with_inner_second("probabilities", probabilities, member_axis, ("bar_axis", bar_axis))
        edges = coerce(edges=edges, probabilities=bars)["edges"]
        if edges.ndim == bars.ndim:
            edges = namespace(edges).moveaxis(edges, (bar_axis, first), (0, 1))
        elif edges.ndim > 1:
            edges = edges[:, None]
        return cls(Histogram(edges, bars, outer=outer, check=check), weights, check=check)

    @classmethod
    @named_arguments()
    def quantiles(
        cls,
        *,
        levels: Array,
        values: Array,
        tails: Tails = "exponential",
        weights: Array = None,
        member_axis: int | str | None = None,
        level_axis: int = 1,
        check: bool = True,
    ) -> EnsemblePrediction:
        """Members given by quantiles: values (members, levels, *points), or with other axes for members and levels.

        `levels` are the probabilities of values up to these. Between the values the distribution function is linear; what lies
        outside them follows from `tails`, see `uqprism.families.Quantiles`. Values that cross are sorted, with a warning.
        """
        values, _ = with_inner_second("values", values, member_axis, ("level_axis", level_axis))
        return cls(Quantiles(levels, values, tails=tails, check=check), weights, check=check)

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
        return EnsemblePrediction(members, weights[keep], check=False).made_by(self.origin)

    def made_by(self, origin: Origin) -> EnsemblePrediction:
        """The same prediction with this origin, which slices and files of it keep."""
        clone = object.__new__(type(self))
        clone.members, clone.weights, clone.origin = self.members, self.weights, origin
        return clone

    def _map_points(self, function: Any) -> EnsemblePrediction:
        """Apply `function` to arrays (members, *points); leading axes, such as that of draws, are looped over."""
        depth = len(self.members.batch_shape)

        def apply(x: Array) -> Array:
            if x.ndim == depth:
                return function(x)
            return namespace(x).stack([apply(part) for part in x], axis=0)

        clone = object.__new__(type(self))
        clone.members, clone.weights, clone.origin = self.members.map(apply), self.weights, self.origin
        return clone

    @staticmethod
    def concatenate(predictions: Sequence[EnsemblePrediction], axis: int = 0) -> EnsemblePrediction:
        """One prediction for the points of all, joined along an axis of the points; family, members and weights must agree."""
        if not predictions:
            raise ArgumentError("predictions must hold at least one EnsemblePrediction, got none")
        first = predictions[0]
        _storable(first.members)
        if not -len(first.points_shape) <= axis < len(first.points_shape):
            raise ShapeError(f"axis {axis} is not an axis of the points, whose shape is {first.points_shape}")
        axis %= len(first.points_shape)
        for other in predictions[1:]:
            if type(other.members) is not type(first.members) or other.n_members != first.n_members:
                raise ShapeError(f"predictions must agree in family and members: {first!r} and {other!r} do not")
            if not _same_weights(first.weights, other.weights):
                raise InvalidValueError("predictions must have the same member weights")
            around = [shape[:axis] + shape[axis + 1 :] for shape in (first.points_shape, other.points_shape)]
            if around[0] != around[1]:
                raise ShapeError(f"points must agree but for axis {axis}, got {first.points_shape} and {other.points_shape}")
        members = type(first.members).joined([p.members for p in predictions], 1 + axis)
        joined = EnsemblePrediction(members, first.weights, check=False)
        return joined.made_by(common(each.origin for each in predictions))

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

    def sample(self, n: int, *, seed: Seed = None) -> Array:
        """`n` draws of the target from the mixture, (n, *points): each from a member that is drawn by its weight.

        `ensemble.members.sample(n)` draws from each member, (n, members, *points).

        Args:
            n: how many.
            seed: of the generator, or a `numpy.random.Generator`; None gives other draws at each call.
        """
        return self.mixture.sample(n, seed=seed)

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
        members = _storable(self.members)
        header: dict[str, Any] = {"family": members.name, "parameters": list(members.stored())}
        header |= {"origin": self.origin.to_dict()} if self.origin.is_known else {}
        return {**header, "options": members.options()} if members.options() else header

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with a JSON header; `load` reads it back. A failed write leaves no file."""
        header = self._header()
        arrays = {name: to_numpy(x) for name, x in self.members.stored().items()}
        if self.weights is not None:
            arrays["member_weights"] = to_numpy(self.weights)
        write_npz(path, FORMAT, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, check: bool = True) -> EnsemblePrediction:
        """Read what `save` wrote, as NumPy arrays. Values are checked as when an ensemble is made; `check=False` skips that."""
        with loading(path, FORMAT) as (header, arrays):
            weights = arrays.pop("member_weights", None)
            family, options = families.get(header["family"]), header.get("options", {})
            found = cls(family.restored(arrays, options, check=check), weights, check=check)
            return found.made_by(Origin.from_dict(header.get("origin")))

    def to_pandas(self, index: Any = None) -> Any:
        """A `pandas.DataFrame` with a column per parameter and member (`mean_0`, `scale_0`, ...) and a row per point.

        `uqprism.from_frame` reads it back. The frame does not hold the weights; pass them to `from_frame`. Of members given by
        draws, bars, quantiles or components a cell holds a list. The frame of other than Gaussian members has what describes
        them as `attrs`.
        """
        columns, shared = columns_of(_storable(self.flat().members))
        frame = data_frame({name: x if x.ndim == 1 else _in_cells(x) for name, x in columns.items()}, index)
        if self.members.name != "gaussian" or self.origin.is_known:  # the columns of others may be those of several families
            frame.attrs[FORMAT] = {**self._header(), **shared}
        return frame

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with the columns of `to_pandas`, the weights and the shape; `uqprism.from_arrow` reads it."""
        pyarrow = require("pyarrow", extra="cli")
        columns, shared = columns_of(_storable(self.flat().members))
        header = {**self._header(), **shared, "points_shape": self.points_shape, "members": self.n_members}
        header["weights"] = None if self.weights is None else to_numpy(self.weights).tolist()
        cells = {
            name: x if x.ndim == 1 else pyarrow.FixedSizeListArray.from_arrays(x.ravel(), x.shape[1])
            for name, x in columns.items()
        }
        return pyarrow.table(cells).replace_schema_metadata({FORMAT: json.dumps(header)})

    def __repr__(self) -> str:
        points = " x ".join(str(n) for n in self.points_shape) or "1"
        return f"<EnsemblePrediction: {self.n_members} {self.members.name} members, {points} points>"


def _in_cells(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of rows, each an object."""
    cells = np.empty(len(rows), dtype=object)
    cells[:] = list(rows)
    return cells


def _storable(members: Family) -> Family:
    if members.name not in families:
        raise ArgumentError(f"{members.name} members cannot be stored or joined; the families that can are {families.names()}")
    return members


def _check_widths(members: Family) -> None:
    """Refuse members so narrow beside the others that squares in a common unit are zero, which no value shows alone."""
    if not have_widths(members):
        return  # also because the mean of all draws takes as much memory as these
    narrow = too_narrow(members.centre, members.spread)
    if narrow is None:
        return
    raise InvalidValueError(
        f"{int(narrow.sum())} points have a member whose scale is less than {NARROWEST:.0e} of the distance to another or of "
        "another's scale: its square leaves the range of double precision; drop these points"
    )


def _member_weights(weights: Array, members: Family, check: bool) -> Array:
    weights = as_weights(weights, members.arrays()[0])
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
