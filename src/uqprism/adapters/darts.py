"""darts: series of samples, of quantiles or of the parameters of a likelihood."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, join
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, ShapeError, UnsupportedError
from uqprism.families import families
from uqprism.families.quantiles import Tails

QUANTILE = re.compile(r"(.*)_q(\d*\.?\d+)")
# By family, what darts calls the parameters of its likelihood, and what they are here. Some have the same names.
LIKELIHOODS: dict[str, tuple[tuple[str, ...], Callable[..., dict[str, Array]]]] = {
    "gaussian": (("mu", "sigma"), lambda mu, sigma: {"mean": mu, "scale": sigma}),
    "lognormal": (("mu", "sigma"), lambda mu, sigma: {"log_mean": mu, "log_scale": sigma}),
    "laplace": (("mu", "b"), lambda mu, b: {"location": mu, "scale": b}),
    "gamma": (("alpha", "beta"), lambda alpha, beta: {"shape": alpha, "scale": 1.0 / beta}),
    "beta": (("alpha", "beta"), lambda alpha, beta: {"a": alpha, "b": beta}),
    "weibull": (("lambda", "k"), lambda scale, k: {"shape": k, "scale": scale}),
    "negative_binomial": (("r", "p"), lambda r, p: {"rate": r * p / (1.0 - p), "size": r}),
    "poisson": (("lambda",), lambda rate: {"rate": rate}),
    "exponential": (("lambda",), lambda rate: {"shape": 0.0 * rate + 1.0, "scale": 1.0 / rate}),
}
FAMILIES = {"exponential": "gamma"}  # what they are called here, where that differs


@adapters.register("darts")
class Darts(Adapter):
    """A forecast, one member with the points (steps) or (steps, components)."""

    supports = "darts forecasts (TimeSeries)"
    takes_rows = False

    priority = 6

    def matches(self, model: Any) -> bool:
        """Whether it is a series, or a list of them."""
        return all(
            is_a(each, "darts", "TimeSeries") for each in (model if isinstance(model, list | tuple) and model else [model])
        )

    def predict(self, model: Any, X: Array, *, tails: Tails = "exponential", family: str | None = None) -> EnsemblePrediction:
        """Draws if the series has samples; else what the names of its components say. A list has a member for each series."""
        if isinstance(model, list | tuple):
            if any(not model[0].time_index.equals(each.time_index) for each in model):
                raise ShapeError(
                    "all series of a list must be forecasts of the same steps, as by several models; take those of one time from "
                    "each model, or put the points together with EnsemblePrediction.concatenate"
                )
            options = {"tails": tails} | ({} if family is None else {"family": family})
            return join(((f"series {i} of the list", each, lambda rows: rows) for i, each in enumerate(model)), X, options)
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
        return _by_likelihood(columns, family)


def _by_likelihood(columns: dict[str, Array], family: str | None) -> EnsemblePrediction:
    """One member by the parameters of a likelihood, components such as sales_mu and sales_sigma."""
    fitting = {}
    for called, (names, read) in LIKELIHOODS.items():
        targets = [each.removesuffix(f"_{names[0]}") for each in columns if each.endswith(f"_{names[0]}")]
        if targets and {f"{target}_{part}" for target in targets for part in names} == set(columns):
            fitting[called] = read(*(_points([columns[f"{target}_{part}"] for target in targets]) for part in names))
    if (family is not None and family in fitting) or (family is None and len(fitting) == 1):
        chosen = family or next(iter(fitting))
        made = families.get(FAMILIES.get(chosen, chosen))
        return EnsemblePrediction(made(**{key: x[None] for key, x in fitting[chosen].items()}))
    if fitting:
        raise ArgumentError(
            f"the components {', '.join(columns)} may be those of {' or '.join(fitting)} distributions; say which, as in "
            f"family={next(iter(fitting))!r}"
        )
    raise UnsupportedError(
        f"the series has one sample and the components {', '.join(columns)}, which are no distribution. Predict with "
        "num_samples=500, or with predict_likelihood_parameters=True of a model with likelihood 'quantile' or 'gaussian'"
    )


def _points(components: list[Array]) -> Array:
    """(steps) of one component, (steps, components) of several."""
    return components[0] if len(components) == 1 else np.stack(components, axis=-1)
