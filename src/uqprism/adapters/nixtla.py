"""Nixtla's tables of forecasts, with columns such as `AutoETS`, `AutoETS-lo-90` and `AutoETS-hi-90`: one member per model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, UnsupportedError
from uqprism.families.quantiles import Tails

BOUND = re.compile(r"(.+)-(lo|hi|q)-(\d+(?:\.\d+)?)")
ROUNDING = 1e-4  # of the width of the interval; some models predict in single precision


@adapters.register("nixtla")
class Nixtla(Adapter):
    """A data frame of StatsForecast, MLForecast or NeuralForecast with intervals."""

    supports = "data frames of forecasts with columns such as AutoETS-lo-90"
    takes_rows = False

    def matches(self, model: Any) -> bool:
        """Whether it is a data frame with bounds of intervals."""
        frame = is_a(model, "pandas", "DataFrame") or is_a(model, "polars", "DataFrame")
        return frame and any(BOUND.fullmatch(str(column)) for column in model.columns)

    def predict(self, model: Any, X: Array, *, tails: Tails = "exponential") -> EnsemblePrediction:
        """One member per model: the bounds of its intervals are quantiles, and so is its median if it has one.

        A point forecast in the middle of all its intervals counts as the median; another one may be a mean. The medians are left
        out unless all models have one.
        """
        members = {}
        for called in dict.fromkeys(match[1] for column in model.columns if (match := BOUND.fullmatch(str(column)))):
            members[called] = _quantiles(model, called)
        if not all(0.5 in each for each in members.values()):
            for each in members.values():
                each.pop(0.5, None)
        levels = [sorted(each) for each in members.values()]
        if any(each != levels[0] for each in levels):
            listed = "; ".join(f"{called}: {', '.join(f'{x:g}' for x in sorted(each))}" for called, each in members.items())
            raise ArgumentError(f"all models must have the same quantiles, got {listed}; pass the columns of each by itself")
        if len(levels[0]) < 2:
            raise UnsupportedError("the intervals have one bound only; forecast with level=[50, 80, 95]")
        values = np.stack([np.stack([each[level] for level in levels[0]]) for each in members.values()])
        return EnsemblePrediction.quantiles(levels=levels[0], values=values, tails=tails, member_axis=0)


def _quantiles(frame: Any, called: str) -> dict[float, Array]:
    """The quantiles of one model by their levels."""
    found, middle = {}, []
    for column in frame.columns:
        match = BOUND.fullmatch(str(column))
        if match is None or match[1] != called:
            continue
        share, values = float(match[3]) / 100.0, _column(frame, column)
        if match[2] == "q":
            found[round(share, 10)] = values
            continue
        found[round(0.5 - 0.5 * share if match[2] == "lo" else 0.5 + 0.5 * share, 10)] = values
        other = f"{called}-{'hi' if match[2] == 'lo' else 'lo'}-{match[3]}"
        if other in frame.columns:
            middle.append((values, _column(frame, other)))
    if f"{called}-median" in frame.columns:
        found[0.5] = _column(frame, f"{called}-median")
    elif called in frame.columns and middle:
        point = _column(frame, called)
        if all((abs(point - (low + high) / 2) <= ROUNDING * abs(high - low)).all() for low, high in middle):
            found[0.5] = point
    return found


def _column(frame: Any, column: Any) -> Array:
    return np.asarray(frame[column].to_numpy(), dtype=np.float64)
