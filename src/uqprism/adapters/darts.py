"""darts: series of samples, of quantiles or of Gaussian parameters."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ShapeError, UnsupportedError
from uqprism.families.quantiles import Tails

QUANTILE = re.compile(r"(.*)_q(\d*\.?\d+)")


@adapters.register("darts")
class Darts(Adapter):
    """A forecast, one member with the points (steps) or (steps, components)."""

    supports = "darts forecasts (TimeSeries)"
    takes_rows = False

    def matches(self, model: Any) -> bool:
        """Whether it is a series."""
        return is_a(model, "darts", "TimeSeries")

    def predict(self, model: Any, X: Array, *, tails: Tails = "exponential") -> EnsemblePrediction:
        """Draws if the series has samples; else what the names of its components say."""
        values = np.asarray(model.all_values(copy=False), dtype=np.float64)  # (steps, components, samples)
        if values.shape[2] > 1:
            draws = np.moveaxis(values, 2, 0)
            return EnsemblePrediction.samples((draws[..., 0] if draws.shape[2] == 1 else draws)[None], member_axis=0)
        columns = dict(zip(map(str, model.components), values[:, :, 0].T, strict=True))
        found = {called: match for called in columns if (match := QUANTILE.fullmatch(called))}
        if columns and len(found) == len(columns):
            levels = sorted({float(match[2]) for match in found.values()})
            targets = list(dict.fromkeys(match[1] for match in found.values()))
            by_level = {(match[1], float(match[2])): columns[called] for called, match in found.items()}
            if len(by_level) != len(levels) * len(targets):
                raise ShapeError(f"all components must have the same quantiles, got {', '.join(columns)}")
            quantiles = np.stack([_points([by_level[target, level] for target in targets]) for level in levels])
            return EnsemblePrediction.quantiles(levels=levels, values=quantiles[None], tails=tails, member_axis=0)
        targets = [called.removesuffix("_mu") for called in columns if called.endswith("_mu")]
        if targets and {f"{target}_{part}" for target in targets for part in ("mu", "sigma")} == set(columns):
            mean, scale = (_points([columns[f"{target}_{part}"] for target in targets]) for part in ("mu", "sigma"))
            return EnsemblePrediction.gaussian(mean=mean[None], scale=scale[None], member_axis=0)
        raise UnsupportedError(
            f"the series has one sample and the components {', '.join(columns)}, which are no distribution. Predict with "
            "num_samples=500, or with predict_likelihood_parameters=True of a model with likelihood 'quantile' or 'gaussian'"
        )


def _points(components: list[Array]) -> Array:
    """(steps) of one component, (steps, components) of several."""
    return components[0] if len(components) == 1 else np.stack(components, axis=-1)
