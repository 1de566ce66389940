"""GluonTS: forecasts by samples, by quantiles or by a distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, name
from uqprism.adapters.distributions import member
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, ShapeError, UnsupportedError
from uqprism.families.quantiles import Tails


@adapters.register("gluonts")
class GluonTS(Adapter):
    """A forecast, one member; or the forecasts of one model for several series, whose points are (series, steps)."""

    supports = "GluonTS forecasts"
    priority = 6
    takes_rows = False

    def matches(self, model: Any) -> bool:
        """Whether it is a forecast, or a list of forecasts of different series."""
        if not isinstance(model, list | tuple):
            return is_a(model, "gluonts", "Forecast")
        if len(model) < 2 or not all(is_a(each, "gluonts", "Forecast") for each in model):
            return False
        items = [(each.item_id, str(each.start_date)) for each in model]
        if any(item is None for item, _ in items):
            raise ArgumentError(
                "forecasts without item_id may be of several series or of several models; give the series an item_id, or pass "
                "the forecasts one by one and put them together with EnsemblePrediction.concatenate"
            )
        if len(set(items)) not in {1, len(items)}:
            raise ArgumentError(
                "some of the forecasts are of one series and start, others of another; pass a list for each model, with its "
                "forecasts of all series"
            )
        return len(set(items)) == len(items)  # forecasts of one series and start are members

    def predict(self, model: Any, X: Array, *, tails: Tails = "exponential") -> EnsemblePrediction:
        """One member of samples, quantiles or the distribution's family."""
        forecasts = model if isinstance(model, list | tuple) else [model]
        kinds = {name(each) for each in forecasts}
        if len(kinds) > 1:
            raise ArgumentError(f"forecasts must be of one kind, got {' and '.join(sorted(kinds))}")
        alone = not isinstance(model, list | tuple)
        if hasattr(model, "distribution") and alone:
            return EnsemblePrediction(member(model.distribution))
        if hasattr(forecasts[0], "samples"):
            draws = _together([np.asarray(each.samples) for each in forecasts], alone)
            return EnsemblePrediction.samples(draws[None], member_axis=0)
        if hasattr(forecasts[0], "forecast_array"):
            keys = [key for key in forecasts[0].forecast_keys if key != "mean"]
            if len(keys) < 2:
                raise UnsupportedError("the forecast has fewer than two quantiles; predict several, such as 0.1, 0.5 and 0.9")
            if any([key for key in each.forecast_keys if key != "mean"] != keys for each in forecasts):
                raise ShapeError("forecasts must have the same quantiles")
            rows = [[each.forecast_keys.index(key) for key in keys] for each in forecasts]
            values = _together([np.asarray(each.forecast_array)[at] for each, at in zip(forecasts, rows, strict=True)], alone)
            levels = [float(key) for key in keys]
            return EnsemblePrediction.quantiles(levels=levels, values=values[None], tails=tails, member_axis=0)
        raise UnsupportedError(
            f"{name(forecasts[0])} of several series has no samples and no quantiles; pass forecast.to_quantile_forecast(levels)"
        )


def _together(arrays: list[Array], alone: bool) -> Array:
    """Arrays (samples or levels, steps) of one series, or of all series with an axis for them after the first."""
    if len({x.shape for x in arrays}) > 1:
        raise ShapeError(f"forecasts must have one shape, got {' and '.join(map(str, sorted({x.shape for x in arrays})))}")
    return arrays[0] if alone else np.stack(arrays, axis=1)
