"""Split the uncertainty of a regression ensemble into noise and what more data would remove, under any proper scoring rule."""

from __future__ import annotations

from typing import Any

from uqprism import approximations, families, rules
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UqprismError
from uqprism.evaluation import Decomposition, decompose, evaluate, log_bayes_mixture_bounds
from uqprism.evidential import EvidentialPrediction
from uqprism.families import Empirical, Gaussian, Laplace, Logistic, Mixture, StudentT
from uqprism.measures import Measure, MeasureTable, catalogue
from uqprism.quadrature import Exactness

__version__ = "0.1.0"

# These need PyTorch or scikit-learn: loaded when they are first used, and not by `from uqprism import *`.
_LATER = {
    "DeepEnsemble": "uqprism.training",
    "DeepEnsembleRegressor": "uqprism.training.estimators",
    "EvidentialRegressor": "uqprism.training.estimators",
    "MCDropoutRegressor": "uqprism.training.estimators",
}

__all__ = [
    "Decomposition",
    "Empirical",
    "EnsemblePrediction",
    "EvidentialPrediction",
    "Exactness",
    "Gaussian",
    "Laplace",
    "Logistic",
    "Measure",
    "MeasureTable",
    "Mixture",
    "StudentT",
    "UqprismError",
    "__version__",
    "approximations",
    "catalogue",
    "decompose",
    "evaluate",
    "families",
    "log_bayes_mixture_bounds",
    "rules",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "training":
        return importlib.import_module("uqprism.training")
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_LATER, "training"])
