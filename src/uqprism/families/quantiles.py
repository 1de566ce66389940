"""Distributions given by quantiles: a distribution function that is linear between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from uqprism.arrays import Array, coerce, constant, from_numpy, is_traced, namespace, to_numpy
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UnsupportedError, warn
from uqprism.families.base import check_values, families
from uqprism.families.histogram import Histogram, wide
from uqprism.families.stored import require
from uqprism.families.tails import Tail
from uqprism.registry import unknown

Tails = Literal["exponential", "gaussian", "none"]
TAILS = ("exponential", "gaussian", "none")


@families.register("quantiles")
class Quantiles(Histogram):
    """Values that are exceeded with given probabilities; between two of them the distribution is uniform.

    The first axis of `values` runs over the levels, the rest is the batch. Values that cross are sorted, with a warning that
    counts them. What lies outside the outermost values follows from `tails`:

    - "exponential": the density falls exponentially from that next to the outermost values.
    - "gaussian": the tails are those of the Gaussian through the two outermost values.
    - "none": it lies at the outermost values. Such a distribution has no density.

    Args:
        levels: the probabilities of values up to `values`, from 0 to 1, at least two; all different.
        values: (levels, *batch).
        tails: "exponential", "gaussian" or "none".
    """

    name = "quantiles"
    in_lists: ClassVar[tuple[str, ...]] = ("values",)
    _edge_words: ClassVar[str] = "quantiles"
    constants: ClassVar[tuple[str, ...]] = ("outer", "levels", "tails_name")
    levels: tuple[float, ...]
    tails_name: Tails

    def __init__(self, levels: Array, values: Array, *, tails: Tails = "exponential", check: bool = True) -> None:
        if tails not in TAILS:
            raise unknown("tails", tails, TAILS)
        values = coerce(values=values)["values"]
        known = np.asarray(to_numpy(coerce(levels=levels)["levels"]), dtype=np.float64)
        if known.ndim != 1 or len(known) < 2 or values.ndim == 0 or values.shape[0] != len(known):
            shapes = f"levels {known.shape} and values {tuple(values.shape)}"
            raise ShapeError(
                f"values must have as many entries along the first axis as there are levels, at least two, got {shapes}"
            )
        order = np.argsort(known)
        known = known[order]
        if not (known[0] >= 0.0 and known[-1] <= 1.0 and (np.diff(known) > 0.0).all()):
            raise InvalidValueError(f"levels must be different probabilities from 0 to 1, got {known.tolist()}")
        if check:
            check_values("values", values, "location")
        if (order[1:] < order[:-1]).any():
            values = namespace(values).take(values, _positions(order, values), axis=0)
        self._fill(tuple(known.tolist()), uncrossed(values), tails)

    def _fill(self, levels: tuple[float, ...], values: Array, tails: Tails) -> None:
        self.levels, self.tails_name = levels, tails
        self.outer = None if tails == "none" else (_tail(tails, -_normal(levels[0])), _tail(tails, _normal(levels[-1])))
        low, high = self._widths(values)
        self.edges = namespace(values).concat([(values[0] - low)[None], values, (values[-1] + high)[None]], axis=0)
        self.probabilities = wide(from_numpy(self._shares, constant(values)), tuple(values.shape[1:]))

    @property
    def _shares(self) -> np.ndarray[Any, Any]:
        return np.diff([0.0, *self.levels, 1.0])

    def _widths(self, values: Array) -> tuple[Array, Array]:
        """How far from the outermost values half of the probability beyond them lies, (*batch)."""
        if self.outer is None:
            return 0.0 * values[0], 0.0 * values[0]
        shares, ends = self._shares, (self.levels[:2], self.levels[-2:])
        if self.tails_name == "gaussian":
            factors = [1.0 / (_normal(high) - _normal(low)) for low, high in ends]
        else:  # the density is that between the two outermost values
            factors = [shares[0] / shares[1], shares[-1] / shares[-2]]
        low, high = (float(factor * tail.half) for factor, tail in zip(factors, self.outer, strict=True))
        return low * (values[1] - values[0]), high * (values[-1] - values[-2])

    @cached_property
    def scales(self) -> tuple[Array, Array]:
        """The scales of the two tails, (*batch), from the values themselves: the outer edges are rounded."""
        low, high = self._widths(self.values)
        return (low, high) if self.outer is None else (low / self.outer[0].half, high / self.outer[1].half)

    def stored(self) -> dict[str, Array]:
        """The values."""
        return {"values": self.values}

    def options(self) -> dict[str, Any]:
        """Levels and tails."""
        return {"levels": list(self.levels), "tails": self.tails_name}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], options: Mapping[str, Any], *, check: bool = False) -> Self:
        """What these arrays and options define."""
        require(cls.name, arrays, ("values",))
        return cls(**arrays, **options, check=check)

    @classmethod
    def joined(cls, parts: Sequence[Self], axis: int) -> Self:
        """One batch of all parts."""
        if any(part.options() != parts[0].options() for part in parts):
            raise ArgumentError("predictions must have the same levels and tails")
        values = namespace(parts[0].values).concat([part.values for part in parts], axis=1 + axis)
        return cls(parts[0].levels, values, tails=parts[0].tails_name, check=False)

    @property
    def has_density(self) -> bool:
        """False without tails, and where quantiles coincide."""
        return not self._is_cut_off and super().has_density

    @property
    def _is_cut_off(self) -> bool:
        return self.tails_name == "none" and not self.levels[0] == 1.0 - self.levels[-1] == 0.0

    def require_density(self) -> None:
        """Refuse probability at single values: where quantiles coincide, and outside of them if there are no tails."""
        if self._is_cut_off:
            raise UnsupportedError(
                "quantiles with tails='none' have no density, which this rule needs (as log and quadratic do): the probability "
                f"below level {self.levels[0]:g} and above {self.levels[-1]:g} lies at single values; use tails='exponential' "
                "or 'gaussian', or rules that do without, as in evaluate(ens, catalogue(['crps', 'squared_error']))"
            )
        super().require_density()

    @property
    def values(self) -> Array:
        """The quantiles, (levels, *batch), in the order of the levels."""
        return self.edges[1:-1]


def _tail(tails: Tails, start: float) -> Tail:
    return Tail("gaussian", start) if tails == "gaussian" else Tail("exponential")


def _normal(level: float) -> float:
    """The quantile of a standard Gaussian; far out in place of infinity, where nothing lies beyond."""
    from scipy.special import ndtri

    return float(np.clip(ndtri(level), -8.0, 8.0))


def _positions(order: np.ndarray[tuple[int], np.dtype[np.int64]], like: Array) -> Array:
    return namespace(like).asarray(order) if isinstance(like, np.ndarray) else namespace(like).asarray(order.tolist())


def uncrossed(values: Array) -> Array:
    """The values sorted along the first axis; a warning says how many distributions had values that crossed."""
    xp = namespace(values)
    if not is_traced(values):
        crossed = xp.any(values[1:] < values[:-1], axis=0)
        count = int(xp.sum(xp.astype(crossed, xp.int64)))
        if not count:
            return values
        total = int(np.prod(values.shape[1:], dtype=np.int64))
        warn(f"quantiles crossed in {count:,} of {total:,} predictions and were sorted")
    return xp.sort(values, axis=0)
