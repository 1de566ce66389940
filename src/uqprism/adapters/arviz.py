"""ArviZ's InferenceData and DataTree, whole: the likelihood is the one that gives the log likelihoods that they hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, name
from uqprism.adapters.draws import evenly
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.labelled import by_name
from uqprism.errors import ArgumentError, UnsupportedError
from uqprism.families import Family, Gaussian, Laplace, Logistic, StudentT

DRAWN = ("chain", "draw")
COMPARED = 7  # draws, evenly spaced, whose log likelihoods are computed again
PRECISION = 1e-3  # some samplers keep single precision; other likelihoods differ by far more

SCALES: dict[str, Callable[[Any], Any]] = {  # what a variable may hold, as a scale
    "scale": lambda x: x,
    "variance": np.sqrt,
    "precision": lambda x: 1.0 / np.sqrt(x),
    "log_scale": np.exp,
}
LIKELIHOODS: dict[str, Callable[..., Family]] = {
    "gaussian": lambda location, scale: Gaussian(mean=location, scale=scale),
    "laplace": lambda location, scale: Laplace(location=location, scale=scale),
    "logistic": lambda location, scale: Logistic(location=location, scale=scale),
    "student_t": lambda location, scale, df: StudentT(location=location, scale=scale, df=df),
}
Likelihood = tuple[str, dict[str, Any], str]  # the family, its parameters' variables, and what that of the scale holds


@adapters.register("arviz")
class ArviZ(Adapter):
    """A fitted posterior with its groups, as PyMC, ArviZ, NumPyro and Stan keep it; one member per draw."""

    supports = "ArviZ's InferenceData and DataTree"
    kind = "posterior"
    takes_rows = False

    def matches(self, model: Any) -> bool:
        """Whether it holds groups."""
        return is_a(model, "arviz", "InferenceData") or is_a(model, "xarray", "DataTree")

    def predict(
        self,
        model: Any,
        X: Array,
        *,
        mean: str | None = None,
        scale: str | float | None = None,
        target: str | None = None,
        n_members: int | None = None,
    ) -> EnsemblePrediction:
        """One member per draw, at the points of the group `predictions` if it has the mean, else at those of the posterior.

        Without `mean` and `scale`, the names of two variables (or a number as the scale) of Gaussian noise, the variables are
        those whose likelihood of the observed target is the log likelihood in the groups.
        """
        groups = _groups(model)
        if "posterior" not in groups:
            raise UnsupportedError(f"{name(model)} has no group posterior; its groups are {', '.join(groups) or 'none'}")
        if (mean is None) != (scale is None):
            raise ArgumentError("give both mean and scale, or neither")
        if mean is None:
            family, called, kind = _likelihood(groups, target)
        else:
            family, called, kind = "gaussian", {"location": mean, "scale": scale}, "scale"
        named = {key: _variable(groups, each) for key, each in called.items()}
        named["scale"] = SCALES[kind](named["scale"])
        named = {key: _renamed(x, _point_sizes(named["location"])) for key, x in named.items()}
        members = _members(named)
        if n_members is not None:
            kept = evenly(len(members["location"]), n_members)
            members = {key: x[kept] for key, x in members.items()}
        return EnsemblePrediction(LIKELIHOODS[family](**members))


def _groups(model: Any) -> dict[str, Any]:
    """The groups by name, each a Dataset."""
    if is_a(model, "xarray", "DataTree"):
        return {key: child.to_dataset() for key, child in model.children.items()}
    return {key: model[key] for key in model.groups()}


def _variable(groups: dict[str, Any], called: Any) -> Any:
    """The variable that is called so, at the points of the predictions if it is there; a number is itself."""
    if not isinstance(called, str):
        return called
    for key in ("predictions", "posterior"):
        if called in groups.get(key, ()):
            return groups[key][called]
    known = ", ".join(map(str, groups["posterior"].data_vars))
    raise ArgumentError(f"the posterior has no variable {called}; it has {known}")


def _point_sizes(variable: Any) -> dict[Any, int]:
    """The dimensions other than those of draws, with their lengths."""
    return {dim: length for dim, length in variable.sizes.items() if dim not in DRAWN}


def _renamed(variable: Any, points: dict[Any, int]) -> Any:
    """With its points along these dimensions, if it has as many of the same lengths under other names."""
    # PyMC and ArviZ call the same points mu_dim_0 and y_dim_0.
    own = _point_sizes(variable) if hasattr(variable, "sizes") else {}
    if not own or set(own) <= set(points) or list(own.values()) != list(points.values()):
        return variable
    return variable.rename(dict(zip(own, points, strict=True)))


def _members(named: dict[str, Any]) -> dict[str, Array]:
    """Arrays (draws of all chains, *points)."""
    plain = by_name(named, [dim for dim in DRAWN if dim in named["location"].dims])
    shape = np.broadcast_shapes(*(np.shape(x) for x in plain.values()))
    depth = sum(dim in named["location"].dims for dim in DRAWN)
    return {key: np.broadcast_to(np.asarray(x, dtype=np.float64), shape).reshape(-1, *shape[depth:]) for key, x in plain.items()}


def _likelihood(groups: dict[str, Any], target: str | None) -> Likelihood:
    """That of the observed target."""
    posterior = {str(key): x for key, x in groups["posterior"].data_vars.items() if set(DRAWN) <= set(x.dims)}
    ways = f"from_model(posterior, mean='mu', scale='sigma'), with the names of variables among {', '.join(posterior)}"
    if missing := [key for key in ("log_likelihood", "observed_data") if key not in groups]:
        raise UnsupportedError(
            f"the likelihood is read from the groups log_likelihood and observed_data, and {' and '.join(missing)} is missing. "
            f"Add it, as with pymc.compute_log_likelihood(posterior), or say {ways}"
        )
    held = groups["log_likelihood"]
    shared = [str(key) for key in held.data_vars if key in groups["observed_data"]]
    if target is None and len(shared) != 1:
        raise ArgumentError(f"say which target is meant, as in target={(shared or ['y'])[0]!r}; there are {', '.join(shared)}")
    target = target or shared[0]
    found = list(_matching(posterior, groups["observed_data"][target], held[target]))
    if not found:
        raise UnsupportedError(
            f"no two variables of the posterior give the log likelihood of {target} as {', '.join(LIKELIHOODS)} noise would. "
            f"Keep the mean at each point in the posterior, as with pymc.Deterministic, or say {ways}"
        )
    return found[0]


def _matching(posterior: dict[str, Any], observed: Any, held: Any) -> Iterator[Likelihood]:
    """The likelihoods that give the log likelihoods which are held."""
    points = {dim: observed.sizes[dim] for dim in observed.dims}
    posterior = {key: _renamed(x, points) for key, x in posterior.items()}
    few = _renamed(held, points).transpose(*DRAWN, *observed.dims).stack(all=DRAWN)
    few = few.isel(all=np.unique(np.linspace(0, few.sizes["all"] - 1, COMPARED).astype(int)))
    at, wanted = few["all"], few.transpose("all", *observed.dims).values
    y = observed.values

    def picked(x: Any) -> Array:
        drawn = x.stack(all=DRAWN).sel(all=at)
        lacking = {dim: 1 for dim in observed.dims if dim not in x.dims}
        return drawn.expand_dims(lacking).transpose("all", *observed.dims).values.astype(np.float64)

    everywhere = {key: x for key, x in posterior.items() if set(x.dims) == {*DRAWN, *observed.dims}}
    somewhere = {key: x for key, x in posterior.items() if set(x.dims) <= {*DRAWN, *observed.dims}}
    for (location, mu), (spread, sigma) in itertools.product(everywhere.items(), somewhere.items()):
        others = [key for key in somewhere if key not in {location, spread}]
        for kind, family in itertools.product(SCALES, LIKELIHOODS):
            for further in [{"df": key} for key in others] if family == "student_t" else [{}]:
                with np.errstate(all="ignore"):
                    given = {"location": picked(mu), "scale": SCALES[kind](picked(sigma))}
                given |= {key: picked(posterior[each]) for key, each in further.items()}
                if not all(np.isfinite(x).all() and (key == "location" or (x > 0).all()) for key, x in given.items()):
                    continue
                wide = dict(zip(given, np.broadcast_arrays(*given.values()), strict=True))
                if np.allclose(LIKELIHOODS[family](**wide).log_density(y), wanted, rtol=PRECISION, atol=PRECISION):
                    yield family, {"location": location, "scale": spread, **further}, kind
