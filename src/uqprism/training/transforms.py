"""Transforms of the targets, and the distributions of the targets that follow from those of the transformed ones."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from uqprism.arrays import Array, from_numpy, namespace, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.families import Family, Gaussian, Histogram, LogNormal, Mixture, Quantiles
from uqprism.registry import Registry

Floats = np.ndarray[Any, np.dtype[np.float64]]
transforms: Registry[type[TargetTransform]] = Registry("target transform")

PLACES = np.linspace(-4.0, 4.0, 61)  # quantiles of a standard Gaussian at which transformed distributions are known exactly
FEWEST = 17  # of these for each component of a mixture
KNOTS, ROWS = 100, 20  # of the piecewise linear map to a Gaussian, at most, and training rows for each: with fewer it is ragged
LARGEST = 100.0  # of a logarithm: predictions far from all data must not overflow, nor the squares of their spreads
NARROWEST, WIDEST = 1e-6, 10.0  # scales that lognormals may have


class TargetTransform(ABC):
    """An increasing map of the whole range of targets onto the real line, frozen, with settings learnt from the training targets.

    Attributes:
        name: the name it is registered under.
    """

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def of(cls, targets: Floats) -> Self:
        """Learn from training targets."""

    @abstractmethod
    def apply(self, targets: Floats) -> Floats:
        """The transformed targets."""

    @abstractmethod
    def undo(self, values: Floats) -> Floats:
        """The targets that have these transformed values."""

    def prediction(self, found: EnsemblePrediction) -> EnsemblePrediction:
        """The prediction of the targets, from that of the transformed ones."""
        return EnsemblePrediction(self.distribution(found.members), found.weights)

    def distribution(self, d: Family) -> Family:
        """The distribution of the targets: its quantiles are those of the transformed ones, mapped back.

        Between quantiles, the distribution function is linear. Of a Gaussian, 61 quantiles up to four standard deviations away
        are kept, and the tails beyond follow from the outermost two. Of mixtures of Gaussians there are bars, whose edges lie at
        such places of every component, since their quantiles would have to be searched for.
        """
        if isinstance(d, Quantiles):
            return Quantiles(d.levels, self._undone(d.values), tails=d.tails_name)
        if isinstance(d, Mixture) and isinstance(d.components, Gaussian):
            d = _bars(d, d.components)
        if isinstance(d, Histogram):
            return Histogram(self._undone(d.edges), d.probabilities, **d.options(), check=False)
        from scipy.special import ndtr

        levels = ndtr(PLACES)
        values = [d.quantile(float(level)) for level in levels]
        return Quantiles(levels, self._undone(namespace(values[0]).stack(values, axis=0)), tails="gaussian")

    def _undone(self, values: Array) -> Array:
        # In NumPy: interpolation and roots of these shapes are in no other library that is used here.
        return from_numpy(self.undo(to_numpy(values).astype(np.float64)), values)


def _bars(mixture: Mixture, components: Gaussian) -> Histogram:
    """Bars with the probabilities that a mixture has between their edges."""
    xp, count = namespace(components.mean), components.mean.shape[0]
    places = np.linspace(PLACES[0], PLACES[-1], max(len(PLACES) // count + 1, FEWEST))
    values = xp.sort(xp.concat([components.mean + float(place) * components.scale for place in places], axis=0), axis=0)
    below, above = mixture.cdf(values), mixture.survival(values[-1:])
    probabilities = xp.concat([below[:1], xp.clip(below[1:] - below[:-1], 0.0, None), above], axis=0)
    ends = (values[:1] - (values[1:2] - values[:1]), values[-1:] + (values[-1:] - values[-2:-1]))
    return Histogram(xp.concat([ends[0], values, ends[1]], axis=0), probabilities, outer="half_normal", check=False)


@transforms.register("log")
@dataclass(frozen=True)
class LogTransform(TargetTransform):
    """The logarithm of targets above zero: Gaussians become lognormal distributions, exactly."""

    name: ClassVar[str] = "log"

    @classmethod
    def of(cls, targets: Floats) -> Self:
        """Nothing is learnt; targets must be above zero."""
        cls().apply(targets)
        return cls()

    def apply(self, targets: Floats) -> Floats:
        """The logarithm."""
        if (bad := np.flatnonzero(targets <= 0.0)).size:
            raise InvalidValueError(
                f"target_transform='log' needs targets above zero, got {targets[bad[0]]:g} in row {bad[0]} ({len(bad)} such "
                "rows); use 'yeo_johnson', which takes any targets"
            )
        return np.log(targets)

    def undo(self, values: Floats) -> Floats:
        """The exponential."""
        return np.exp(_bounded(values))

    def distribution(self, d: Family) -> Family:
        """Lognormal distributions for Gaussians, and mixtures of these for mixtures."""
        if isinstance(d, Mixture) and isinstance(d.components, Gaussian):
            return Mixture(self.distribution(d.components), d.weights)
        if not isinstance(d, Gaussian):
            return super().distribution(d)
        xp = namespace(d.mean)
        return LogNormal(log_mean=xp.clip(d.mean, -LARGEST, LARGEST), log_scale=xp.clip(d.scale, NARROWEST, WIDEST))


@transforms.register("yeo_johnson")
@dataclass(frozen=True)
class YeoJohnson(TargetTransform):
    """A power of the standardised targets that makes them as Gaussian as it can (Yeo and Johnson 2000).

    The power is that of largest likelihood between 0 and 2, where the map covers the whole line: beyond, a Gaussian would put
    probability on values that no target has.

    Attributes:
        power: 1 changes nothing, less makes upper tails shorter, more lower ones.
        centre: the mean of the training targets.
        unit: their standard deviation.
    """

    name: ClassVar[str] = "yeo_johnson"
    power: float
    centre: float
    unit: float

    @classmethod
    def of(cls, targets: Floats) -> Self:
        """The power of largest likelihood."""
        from scipy.optimize import minimize_scalar

        centre, unit = float(targets.mean()), float(targets.std()) or 1.0

        def cost(power: float) -> float:
            x = (targets - centre) / unit
            spread = float(np.var(_forward(x, power)))
            return 0.5 * len(x) * np.log(max(spread, 1e-300)) - (power - 1.0) * float(np.sum(np.sign(x) * np.log1p(np.abs(x))))

        inside = float(minimize_scalar(cost, bounds=(0.0, 2.0), method="bounded").x)
        return cls(min((inside, 0.0, 2.0), key=cost), centre, unit)  # the search does not try the ends

    def apply(self, targets: Floats) -> Floats:
        """The power of the standardised targets."""
        return _forward((targets - self.centre) / self.unit, self.power)

    def undo(self, values: Floats) -> Floats:
        """The targets of these powers."""
        power = np.where(values >= 0.0, self.power, 2.0 - self.power)
        size = np.abs(values)
        small = power < 1e-12
        logarithm = np.where(small, size, np.log1p(power * size) / np.where(small, 1.0, power))
        return self.centre + self.unit * np.sign(values) * np.expm1(_bounded(logarithm))


def _bounded(logarithm: Floats) -> Floats:
    """The same within limits; beyond them it grows so slowly that its exponential does not overflow, and no two become one."""
    size = np.abs(logarithm)
    return np.sign(logarithm) * np.where(size > LARGEST, LARGEST + np.log(np.maximum(size / LARGEST, 1.0)), size)


def _forward(x: Floats, power: float) -> Floats:
    """sign(x) ((1 + |x|)^p - 1) / p with p = power above zero and 2 - power below."""
    p = np.where(x >= 0.0, power, 2.0 - power)
    small = p < 1e-12
    size = np.log1p(np.abs(x))
    return np.sign(x) * np.where(small, size, np.expm1(p * size) / np.where(small, 1.0, p))


@transforms.register("quantile_normal")
@dataclass(frozen=True)
class QuantileNormal(TargetTransform):
    """The Gaussian quantile of each target's rank: transformed targets are Gaussian whatever their distribution was.

    The map is linear between at most 100 quantiles of the training targets, and goes on beyond the outermost ones as over the
    outermost twentieth of them.

    Attributes:
        targets: increasing quantiles of the training targets.
        values: their transformed values.
    """

    name: ClassVar[str] = "quantile_normal"
    targets: tuple[float, ...]
    values: tuple[float, ...]

    @classmethod
    def of(cls, targets: Floats) -> Self:
        """The quantiles of the targets; of targets that occur often, the middle of their ranks."""
        from scipy.special import ndtri

        ordered, count = np.sort(targets), len(targets)
        distinct = np.unique(ordered)
        if len(distinct) < 2:
            return cls((float(distinct[0]) - 1.0, float(distinct[0]) + 1.0), (-1.0, 1.0))
        most = min(max(count // ROWS, 2), KNOTS)
        knots = distinct if len(distinct) <= most else np.unique(np.quantile(ordered, np.linspace(0.0, 1.0, most)))
        below, upto = (np.searchsorted(ordered, knots, side=side) for side in ("left", "right"))
        values = ndtri(np.clip(0.5 * (below + upto) / count, 0.5 / count, 1.0 - 0.5 / count))
        kept = np.concatenate([[True], np.diff(values) > 1e-9])
        return cls(tuple(knots[kept].tolist()), tuple(values[kept].tolist()))

    def apply(self, targets: Floats) -> Floats:
        """The Gaussian quantiles."""
        return _along(targets, np.asarray(self.targets), np.asarray(self.values))

    def undo(self, values: Floats) -> Floats:
        """The targets of these Gaussian quantiles."""
        return _along(values, np.asarray(self.values), np.asarray(self.targets))


def _along(x: Floats, at: Floats, to: Floats) -> Floats:
    """The piecewise linear map from `at` to `to`, both increasing, and beyond as over the outermost twentieth of the places."""
    outer = max(len(at) // 20, 1)
    low, high = ((to[b] - to[a]) / (at[b] - at[a]) for a, b in ((0, outer), (-1 - outer, -1)))
    inside = np.interp(x, at, to)
    return inside + np.minimum(x - at[0], 0.0) * low + np.maximum(x - at[-1], 0.0) * high


def fitted(name: str | None, targets: Any, n_experiments: int) -> TargetTransform | None:
    """The transform of this name, learnt from training targets."""
    if name is None:
        return None
    kind = transforms.get(name)
    if n_experiments > 1 and dataclasses.fields(kind):  # type: ignore[arg-type]
        raise ArgumentError(
            f"target_transform={name!r} is learnt from the training targets, and several training sets have none in common; "
            "use 'log', or transform the targets yourself"
        )
    return kind.of(targets)


def to_dict(transform: TargetTransform) -> dict[str, Any]:
    """A transform as plain data."""
    return {"name": transform.name, **dataclasses.asdict(transform)}  # type: ignore[call-overload]


def from_dict(data: dict[str, Any]) -> TargetTransform:
    """The transform that `to_dict` wrote."""
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "name"}
    return transforms.get(data["name"])(**fields)
