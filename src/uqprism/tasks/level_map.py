"""A map of levels: the members' quantiles keep their values and get the levels that outcomes show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import Array, constant, namespace, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import InvalidValueError
from uqprism.families import Family, Quantiles
from uqprism.rules import Rule
from uqprism.tasks.calibration import calibration

LEVELS = (0.005, 0.02, *(round(0.05 * i, 2) for i in range(1, 20)), 0.98, 0.995)
PRIOR = 10.0  # rows for which the map that changes nothing counts
NARROWEST = 1e-6  # of the mean width


@dataclass(frozen=True)
class LevelMap:
    """A monotone map of the members' distribution functions: the quantile of level `levels[i]` gets the level `moved[i]`.

    Attributes:
        levels: increasing, between 0 and 1.
        moved: increasing, between 0 and 1: the share of outcomes up to the quantiles of these levels.
        kept: whether the paired test found it better than the factors alone.
        before: the mean score without the map: with the factors if they are kept, or else of the predictions as they are.
        after: the mean score with it, each row by a map that was fitted on others.
        change: after less before; below zero is better.
        error: the standard error of the change.
    """

    levels: tuple[float, ...]
    moved: tuple[float, ...]
    kept: bool = False
    before: float = math.nan
    after: float = math.nan
    change: float = math.nan
    error: float = math.nan

    def apply(self, ensemble: EnsemblePrediction) -> EnsemblePrediction:
        """The members as quantiles with these levels, with the ensemble's weights and origin.

        Bounds of the values stay: the quantile of level 0 or 1 is one of the quantiles then.
        """
        return EnsemblePrediction(self._members(ensemble.members), ensemble.weights, check=False).made_by(ensemble.origin)

    def _members(self, members: Family) -> Quantiles:
        wide, dtype = members.widened(), members.centre.dtype
        below, above = ([end] * _is_bounded(bound) for end, bound in zip((0.0, 1.0), wide.support, strict=True))
        values = wide.quantile([*below, *self.levels, *above])
        return Quantiles([*below, *self.moved, *above], namespace(values).astype(values, dtype), check=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LevelMap:
        """From plain data, as JSON holds it."""
        made = cls(**{**data, **{name: tuple(map(float, data[name])) for name in ("levels", "moved")}})
        for name, values in (("levels", made.levels), ("moved", made.moved)):
            if len(values) != len(made.moved) or not (np.diff((0.0, *values, 1.0)) > 0.0).all():
                raise InvalidValueError(f"{name} of a map must be numbers that increase between 0 and 1, got {list(values)}")
        if not isinstance(made.kept, bool):
            raise InvalidValueError(f"kept must be true or false, got {made.kept!r}")
        return made


def fit_map(ensemble: EnsemblePrediction, y: np.ndarray, rule: Rule) -> LevelMap:
    """The share of outcomes up to the mixture's quantile of each level, shrunk a little (Kuleshov et al. 2018).

    Each row counts as much as the rule's score grows with its width. Where members agree and rows differ in location and width
    alone, these shares minimise the mean score: CRPS weighs rows by their widths, the log score all alike, and the quadratic
    score by their inverse.
    """
    pit = calibration(ensemble, y).pit
    weights = _widths(ensemble) ** (rule.degree or 0.0)
    total = weights.sum()
    rows = total**2 / (weights**2).sum()  # as many of equal weight would be as uncertain
    shares = np.array([weights[pit <= level].sum() for level in LEVELS]) / total
    moved = (rows * shares + PRIOR * np.array(LEVELS)) / (rows + PRIOR)
    return LevelMap(LEVELS, tuple(moved.tolist()))


def _widths(ensemble: EnsemblePrediction) -> np.ndarray:
    """A typical deviation of each row, about one on average; one everywhere if there is none at all."""
    members, weights = ensemble.members.widened(), ensemble.member_weights()
    xp, centre = namespace(members.centre), members.centre
    apart = centre - xp.sum(weights * centre, axis=0)
    found = to_numpy(xp.sqrt(xp.sum(weights * (members.spread**2 + apart**2), axis=0)))
    mean = found.mean()
    return np.maximum(found / mean, NARROWEST) if mean > 0.0 else np.ones_like(found)


def _is_bounded(bound: Array | None) -> bool:
    return bound is not None and bool(np.isfinite(to_numpy(constant(bound))).all())
