"""Distributions of transformed variables: most families can be shifted and scaled, and exp of a Gaussian is lognormal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from uqprism.arrays import Array, is_array, namespace
from uqprism.errors import UnsupportedError

Read = tuple[str, dict[str, Array]]  # the name of a family, and its parameters

LOCATED = {"gaussian": "mean", "laplace": "location", "logistic": "location", "student_t": "location"}
BOUNDED = ("beta", "truncated_gaussian")
SCALED = ("gamma", "weibull")


def through(distribution: Any, base: Read) -> Read:
    """The family and parameters of a transformed distribution of PyTorch, NumPyro or TensorFlow Probability, by its base's."""
    family, parameters = base
    for step in _steps(distribution):
        called = type(step).__name__
        if called in {"ExpTransform", "Exp"} and family == "gaussian" and "scale" in parameters:
            family, parameters = "lognormal", {"log_mean": parameters["mean"], "log_scale": parameters["scale"]}
        elif called in {"AffineTransform", "Shift", "Scale"}:
            shift, factor = (_first(step, names) for names in (("loc", "shift"), ("scale",)))
            moved = _moved(family, parameters, 0.0 if shift is None else shift, 1.0 if factor is None else factor)
            if moved is None:
                raise _unknown(distribution, f"a shifted or scaled {family} variable")
            parameters = moved
        elif _is_logit(step) and family == "beta" and _is_standard_uniform(parameters):
            zero = parameters["a"] - 1.0
            family, parameters = "logistic", {"location": zero, "scale": parameters["a"]}
        else:
            raise _unknown(distribution, f"{called} of a {family} variable")
    return family, parameters


def _steps(distribution: Any) -> Iterator[Any]:
    """The transforms, the first one first."""
    bijector = getattr(distribution, "bijector", None)
    yield from _flat([bijector] if bijector is not None else distribution.transforms)


def _flat(steps: Iterable[Any]) -> Iterator[Any]:
    for step in steps:
        if hasattr(step, "bijectors"):  # of TensorFlow Probability, which applies the last one first
            yield from _flat(list(step.bijectors)[::-1])
        elif hasattr(step, "parts"):
            yield from _flat(step.parts)
        else:
            yield step


def _first(step: Any, names: tuple[str, ...]) -> Any:
    found = next((x for each in names if (x := getattr(step, each, None)) is not None), None)
    return found if found is None or is_array(found) or isinstance(found, int | float) else np.asarray(found, dtype=np.float64)


def _is_logit(step: Any) -> bool:
    """PyTorch writes a logistic variable as the inverse sigmoid of a uniform one."""
    return type(getattr(step, "_inv", None)).__name__ == "SigmoidTransform"


def _is_standard_uniform(parameters: dict[str, Array]) -> bool:
    wanted = {"a": 1.0, "b": 1.0, "low": 0.0, "high": 1.0}
    return all(bool((parameters[name] == value).all()) for name, value in wanted.items() if name in parameters)


def _moved(family: str, parameters: dict[str, Array], shift: Any, factor: Any) -> dict[str, Array] | None:
    """The parameters of shift + factor * Y; None if that is not of the family."""
    magnitude = abs(factor)
    positive, still = bool(np.all(_plain(factor) > 0.0)), bool(np.all(_plain(shift) == 0.0))
    if family in LOCATED and bool(np.all(_plain(magnitude) > 0.0)):
        centre = LOCATED[family]
        powers = {name: power for name, power in (("scale", 1), ("variance", 2)) if name in parameters}
        scaled = {name: parameters[name] * magnitude**power for name, power in powers.items()}
        return {**parameters, **scaled, centre: shift + factor * parameters[centre]}
    if family in BOUNDED and positive:
        first = next(iter(parameters.values()))
        held = {"low": 0.0 * first, "high": 0.0 * first + 1.0, **parameters} if family == "beta" else parameters
        moved = {name: shift + factor * x if name in {"location", "low", "high"} else x for name, x in held.items()}
        return moved | ({"scale": factor * held["scale"]} if "scale" in held else {})
    if family in SCALED and positive and still:
        return {**parameters, "scale": factor * parameters["scale"]}
    if family == "lognormal" and positive and still:
        logarithm = namespace(factor).log(factor) if is_array(factor) else float(np.log(factor))
        return {**parameters, "log_mean": parameters["log_mean"] + logarithm}
    return None


def _plain(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)


def _unknown(distribution: Any, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"the distribution {type(distribution).__name__} has no family in this package ({what}); pass draws of it to from_draws"
    )
