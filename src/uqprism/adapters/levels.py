"""Quantiles that models predict, as members; models of one level each are taken together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, ShapeError
from uqprism.families.quantiles import Tails


@dataclass(frozen=True)
class Level:
    """What a model of one level predicts: a part of a member.

    Attributes:
        level: the probability of values up to `values`.
        values: (points,).
        tails: of the member that it becomes part of.
    """

    level: float
    values: Array
    tails: Tails


def quantile_member(levels: Sequence[float], values: Array, tails: Tails = "exponential") -> EnsemblePrediction:
    """One member from quantiles (points, levels), as libraries return them."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(levels):
        raise ShapeError(f"quantiles must be (points, levels), here {len(levels)} levels, got shape {values.shape}")
    return EnsemblePrediction.quantiles(levels=list(levels), values=values.T[None], tails=tails, member_axis=0)


def together(parts: Sequence[Level]) -> list[EnsemblePrediction]:
    """Members from models of one level each: the first of every level, the second of every level, and so on."""
    counts = Counter(part.level for part in parts)
    levels = sorted(counts)
    listed = ", ".join(f"{level:g} ({counts[level]})" for level in levels)
    if len(levels) < 2:
        raise ArgumentError(
            f"a member needs quantiles at two levels or more, got models of level {listed}; add models fitted at other levels"
        )
    if len(set(counts.values())) > 1:
        raise ArgumentError(f"there must be as many models of each level, got the levels (and models) {listed}")
    of_level = {level: [part for part in parts if part.level == level] for level in levels}
    members = [[of_level[level][i] for level in levels] for i in range(counts[levels[0]])]
    if len(lengths := {len(part.values) for part in parts}) > 1:
        raise ShapeError(f"models must predict for the same points, got {' and '.join(map(str, sorted(lengths)))} values")
    return [quantile_member(levels, np.stack([part.values for part in member], axis=1), parts[0].tails) for member in members]
