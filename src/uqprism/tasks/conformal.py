"""Intervals with a guarantee that needs no belief in the models: split conformal prediction on top of any ensemble."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from uqprism.arrays import Array, is_array, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError, ShapeError
from uqprism.evaluation import evaluate
from uqprism.measures import Measure, select_measures
from uqprism.measures.vocabulary import is_square
from uqprism.registry import unknown
from uqprism.tasks.scores import with_targets

Method = Literal["measure", "quantiles", "constant"]
MEASURE = "crps.total.members.members"
ALL = "all"  # the group of all rows, if there are no others
Bounds = tuple[np.ndarray, np.ndarray]
Scale = Callable[[EnsemblePrediction], np.ndarray]


@dataclass(frozen=True, eq=False)
class ConformalIntervals:
    """Intervals of which a stated share holds the outcome; `lower, upper = intervals` takes them apart.

    Attributes:
        lower: (*points).
        upper: (*points).
        coverage: the share that was asked for.
        method: how they were made.
        measure: what their widths are in proportion to; empty unless the method is `measure`.
        margins: for each group, what calibration found: the number of times the measure, or the length, by which intervals
            reach out.
        rows: for each group, how many calibration rows it had.
    """

    lower: np.ndarray
    upper: np.ndarray
    coverage: float
    method: Method
    measure: str
    margins: Mapping[Any, float]
    rows: Mapping[Any, int]

    @property
    def width(self) -> np.ndarray:
        """The length of each interval, (*points)."""
        return self.upper - self.lower

    def contains(self, target: Array) -> np.ndarray:
        """Whether each interval holds its outcome, (*points)."""
        y = np.asarray(to_numpy(target) if is_array(target) else target, dtype=np.float64)
        if y.shape != self.lower.shape:
            raise ShapeError(f"target must have the shape of the intervals {self.lower.shape}, got {y.shape}")
        return (self.lower <= y) & (y <= self.upper)

    def apply(self, ensemble: EnsemblePrediction) -> ConformalIntervals:
        """Intervals for further predictions of the same models, with the margin that was found; not for groups."""
        if set(self.rows) != {ALL}:
            raise ArgumentError(
                "intervals by group are made by conformal_intervals(..., groups=), which needs the calibration rows"
            )
        return _made(self, ensemble, np.full(ensemble.n_points, ALL))

    def to_dict(self) -> dict[str, Any]:
        """What `apply` needs, as plain data; `from_dict` reads it."""
        known = {"coverage": self.coverage, "method": self.method, "measure": self.measure}
        return known | {"margins": dict(self.margins), "rows": dict(self.rows)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ConformalIntervals:
        """Intervals of no rows yet, which `apply` makes, from what `to_dict` gave."""
        margins = {str(group): float(value) for group, value in data["margins"].items()}
        rows = {str(group): int(count) for group, count in data["rows"].items()}
        if data["method"] not in get_args(Method):
            raise unknown("method", data["method"], get_args(Method))
        return cls(np.zeros(0), np.zeros(0), float(data["coverage"]), data["method"], str(data["measure"]), margins, rows)

    @property
    def guarantee(self) -> str:
        """What the intervals promise, in a sentence."""
        start = "At least" if set(self.rows) == {ALL} else "In each group, at least"
        most = self.coverage + 1.0 / (min(self.rows.values()) + 1.0)
        return (
            f"{start} {self.coverage:.4g} of outcomes lie inside, on average over calibration rows and new rows, if both "
            f"come in random order from the same source; and at most {most:.4g}, if no two scores are equal."
        )

    def __iter__(self) -> Iterator[np.ndarray]:
        yield self.lower
        yield self.upper

    def __repr__(self) -> str:
        groups = "" if set(self.rows) == {ALL} else f", {len(self.rows)} groups"
        widths = f"median width {np.median(self.width):.4g}" if self.width.size else "no rows"
        by = f"{self.method} {self.measure}".strip()
        return f"<ConformalIntervals: {self.coverage:.4g} by {by}, {sum(self.rows.values())} calibration rows{groups}, {widths}>"


def conformal_intervals(
    ensemble_calibration: EnsemblePrediction,
    target: Array,
    ensemble: EnsemblePrediction,
    coverage: float = 0.9,
    *,
    method: Method = "measure",
    measure: str | Measure = MEASURE,
    groups_calibration: Any = None,
    groups: Any = None,
    infinite: bool = False,
) -> ConformalIntervals:
    """Intervals that hold a stated share of the outcomes, whatever the models are worth.

    The guarantee: if calibration rows and new rows come in random order from the same source (are exchangeable), a new outcome
    lies in its interval with a probability of at least `coverage`, for any number of rows; if no two scores are equal, of at
    most `coverage` + 1 / (n + 1), where n counts the calibration rows. It is an average over calibration sets and over rows: not
    a promise for each row, nor for rows of another kind. With groups it holds within each group. The models must not have seen
    the calibration rows, and for recalibrated predictions the factors must not have either.

    With the score s of each calibration row, the margin is the score at rank ceil((n + 1) * coverage). How intervals are made:

    - "measure": the mixture's mean, and to both sides the margin times a measure of the row (Lei et al. 2018). Of rules in
      squared units the root of the measure is taken.
    - "quantiles": from the mixture's quantiles (1 -+ coverage) / 2, both moved outwards by the margin, or inwards if it is
      negative (Romano, Patterson and Candes 2019).
    - "constant": the mixture's mean, and to both sides the margin: the same width everywhere.

        >>> import numpy as np
        >>> import uqprism as up
        >>> rng = np.random.default_rng(0)
        >>> scale = np.exp(rng.normal(size=1500))
        >>> mean, y = rng.normal(scale=0.1, size=(5, 1500)), scale * rng.normal(size=1500)
        >>> ens = up.EnsemblePrediction.gaussian(mean=mean, scale=0.5 * np.broadcast_to(scale, (5, 1500)))
        >>> lower, upper = up.conformal_intervals(ens[:500], y[:500], ens[500:], coverage=0.9)
        >>> round(float(np.mean((lower <= y[500:]) & (y[500:] <= upper))), 2)
        0.9

    Args:
        ensemble_calibration: predictions for rows that the models were not trained on.
        target: what happened there, in the shape of the points.
        ensemble: predictions for the new rows.
        coverage: the share of outcomes to hold, between 0 and 1.
        method: "measure", "quantiles" or "constant".
        measure: for the method "measure": a name or a `Measure`, above zero in all rows.
        groups_calibration: labels of the calibration rows, such as regions, to hold the share in each group.
        groups: labels of the new rows; each must be among those of the calibration rows.
        infinite: give intervals without end where there are too few calibration rows, rather than an error.

    Returns:
        The `ConformalIntervals`, which unpack into `lower, upper` as NumPy arrays (*points).
    """
    if not 0.0 < coverage < 1.0:
        raise InvalidValueError(f"coverage must be between 0 and 1, such as 0.9, got {coverage}")
    if method not in get_args(Method):
        raise unknown("method", method, get_args(Method))
    if not isinstance(ensemble, EnsemblePrediction):
        raise ArrayTypeError(f"ensemble must be an EnsemblePrediction, got {type(ensemble).__name__}; new predictions come third")
    known, y = with_targets(ensemble_calibration, target)
    of_known, of_new = _groups(groups_calibration, groups, known.n_points, ensemble.points_shape)
    name, scale = _scale(measure) if method == "measure" else ("", _constant)

    low, high = _bounds(known, method, coverage)
    scores = np.maximum(low - y, y - high) / scale(known)
    margins, rows = _margins(scores, of_known, np.unique(of_new), coverage, infinite)
    nothing = np.zeros(0)
    return _made(ConformalIntervals(nothing, nothing, coverage, method, name, margins, rows), ensemble, of_new)


def _made(known: ConformalIntervals, ensemble: EnsemblePrediction, groups: np.ndarray) -> ConformalIntervals:
    """The intervals of new rows, by what calibration found."""
    new, shape = ensemble.flat(), ensemble.points_shape
    if not new.n_points:
        return replace(known, lower=np.zeros(shape), upper=np.zeros(shape))
    scale = _scale(known.measure)[1] if known.method == "measure" else _constant
    reach = np.array([known.margins[each] for each in groups.tolist()]) * scale(new)
    low, high = _bounds(new, known.method, known.coverage)
    # A negative margin may be wider than the interval, of which then the middle is left.
    reach = np.maximum(reach, -0.5 * (high - low))
    lower, upper = (low - reach).reshape(shape), (high + reach).reshape(shape)
    return replace(known, lower=lower, upper=upper)


def _bounds(ensemble: EnsemblePrediction, method: Method, coverage: float) -> Bounds:
    """What the margin is added to: two quantiles of each row, or its mean twice."""
    if not ensemble.n_points:
        return np.zeros(0), np.zeros(0)
    mixture = ensemble.mixture
    if method == "quantiles":
        tail = 0.5 * (1.0 - coverage)
        low, high = (_numbers(mixture.quantile(level)) for level in (tail, 1.0 - tail))
    else:
        low = high = _numbers(mixture.mean)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InvalidValueError(
            f"some rows have no finite {'quantiles' if method == 'quantiles' else 'mean'}; try another method"
        )
    return low, high


def _numbers(values: Array) -> np.ndarray:
    return np.asarray(to_numpy(values), dtype=np.float64)


def _constant(ensemble: EnsemblePrediction) -> np.ndarray:
    return np.ones(ensemble.n_points)


def _scale(measure: str | Measure) -> tuple[str, Scale]:
    """The measure's name, and a function that gives it for each row, in units of the target."""
    chosen = select_measures([measure])
    if len(chosen) != 1:
        raise ArgumentError(f"measure must name one measure, got {measure!r}, which are {len(chosen)}")
    one = chosen[0]

    def scale(ensemble: EnsemblePrediction) -> np.ndarray:
        found = _numbers(evaluate(ensemble, [one])[one.name])
        bad = ~(np.isfinite(found) & (found > 0.0))
        if bad.any():
            raise InvalidValueError(
                f"measure {one.name!r} must be above zero in all rows to be a width, row {int(np.argmax(bad))} has "
                f"{found[np.argmax(bad)]:g} ({int(bad.sum())} in all); a total or a Bayes risk of crps or squared_error is"
            )
        return np.sqrt(found) if is_square(one.rule) else found

    return one.name, scale


def _groups(known: Any, new: Any, n_known: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The group of each calibration row and each new row."""
    n_new = int(np.prod(shape, dtype=np.int64))
    if (known is None) != (new is None):
        raise ArgumentError("groups_calibration and groups must be given together, or neither")
    if known is None:
        return np.full(n_known, ALL), np.full(n_new, ALL)
    found = []
    for name, labels, count in (("groups_calibration", known, n_known), ("groups", new, n_new)):
        flat = np.asarray(to_numpy(labels) if is_array(labels) else labels).reshape(-1)
        if len(flat) != count:
            raise ShapeError(f"{name} must have a label for each of the {count} rows, got {len(flat)}")
        if flat.dtype.kind in "fc" and not np.isfinite(flat).all():
            raise InvalidValueError(f"{name} must not have NaN as a label; make a group of its own for rows without one")
        found.append(flat.astype(str) if flat.dtype.hasobject else flat)
    return found[0], found[1]


def _margins(
    scores: np.ndarray, of_known: np.ndarray, needed: np.ndarray, coverage: float, infinite: bool
) -> tuple[dict[Any, float], dict[Any, int]]:
    """For each group the score at rank ceil((n + 1) * coverage), and n."""
    margins: dict[Any, float] = {}
    rows: dict[Any, int] = {}
    for group in np.union1d(of_known, needed).tolist():
        own = np.sort(scores[of_known == group])
        rank = math.ceil((len(own) + 1) * coverage - 1e-9)  # 0.9 of 10 is 9, however 0.9 is rounded
        rows[group] = len(own)
        margins[group] = float(own[rank - 1]) if rank <= len(own) else math.inf
        if math.isinf(margins[group]) and group in needed and not infinite:
            fewest = math.ceil(coverage / (1.0 - coverage) - 1e-9)
            where = "" if group == ALL else f" in each group, got {len(own)} in group {group!r}"
            raise InvalidValueError(
                f"coverage {coverage:g} needs at least {fewest} calibration rows{where or f', got {len(own)}'}: with fewer, only "
                "intervals without end hold that share for certain; give more rows, ask for less, or pass infinite=True"
            )
    return margins, rows
