"""Split the uncertainty of a regression ensemble into noise and disagreement, under any proper scoring rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uqprism import families, rules
from uqprism.ensemble import EnsemblePrediction, approximations
from uqprism.ensemble.densities import histogram_density, kernel_density
from uqprism.ensemble.evidential import EvidentialPrediction
from uqprism.errors import UqprismError
from uqprism.evaluation import Decomposition, decompose, evaluate
from uqprism.families import (
    Beta,
    CensoredGaussian,
    Draws,
    Gamma,
    Gaussian,
    Histogram,
    Laplace,
    Logistic,
    LogNormal,
    Mixture,
    NegativeBinomial,
    Poisson,
    Quantiles,
    StudentT,
    TruncatedGaussian,
    Weibull,
)
from uqprism.families.quadrature import Exactness
from uqprism.measures import Measure, MeasureTable, catalogue
from uqprism.support.versions import __version__

# For type checkers, which do not run `__getattr__`.
if TYPE_CHECKING:
    from uqprism import files as files
    from uqprism import paper as paper
    from uqprism import report as report
    from uqprism import tasks as tasks
    from uqprism import training as training
    from uqprism.adapters import from_arrow, from_draws, from_frame, from_model, from_posterior, from_torch
    from uqprism.report.page import write_report as write_report
    from uqprism.serving import Served as Served
    from uqprism.tasks import (
        ActiveLearner,
        Audit,
        Calibration,
        ConformalIntervals,
        Flagged,
        RankCorrelation,
        Recalibration,
        TaskResult,
        Watch,
        conformal_intervals,
        flag,
        recalibrate,
        recommend,
        retention_curve,
        select_measure,
    )
    from uqprism.tasks.audit import audit
    from uqprism.tasks.calibration import calibration
    from uqprism.tasks.ood_detection import ood_detection
    from uqprism.tasks.prediction_error import prediction_error
    from uqprism.tasks.rank_correlation import rank_correlation
    from uqprism.tasks.selective_prediction import selective_prediction
    from uqprism.training import DeepEnsemble as DeepEnsemble
    from uqprism.training.estimators import DeepEnsembleRegressor as DeepEnsembleRegressor
    from uqprism.training.estimators import EvidentialRegressor as EvidentialRegressor
    from uqprism.training.estimators import MCDropoutRegressor as MCDropoutRegressor
    from uqprism.training.exporting import export as export

# Where to find the names that are imported when they are first used, so that importing the package stays quick.
_LAZY = {
    "ActiveLearner": "uqprism.tasks",
    "Audit": "uqprism.tasks",
    "Calibration": "uqprism.tasks",
    "ConformalIntervals": "uqprism.tasks",
    "DeepEnsemble": "uqprism.training",
    "DeepEnsembleRegressor": "uqprism.training.estimators",
    "EvidentialRegressor": "uqprism.training.estimators",
    "Flagged": "uqprism.tasks",
    "MCDropoutRegressor": "uqprism.training.estimators",
    "RankCorrelation": "uqprism.tasks",
    "Recalibration": "uqprism.tasks",
    "Served": "uqprism.serving",
    "TaskResult": "uqprism.tasks",
    "Watch": "uqprism.tasks",
    "audit": "uqprism.tasks",
    "calibration": "uqprism.tasks",
    "conformal_intervals": "uqprism.tasks",
    "export": "uqprism.training.exporting",
    "files": "uqprism",
    "flag": "uqprism.tasks",
    "from_arrow": "uqprism.adapters",
    "from_draws": "uqprism.adapters",
    "from_frame": "uqprism.adapters",
    "from_model": "uqprism.adapters",
    "from_posterior": "uqprism.adapters",
    "from_torch": "uqprism.adapters",
    "ood_detection": "uqprism.tasks",
    "paper": "uqprism",
    "prediction_error": "uqprism.tasks",
    "rank_correlation": "uqprism.tasks",
    "recalibrate": "uqprism.tasks",
    "recommend": "uqprism.tasks",
    "report": "uqprism",
    "retention_curve": "uqprism.tasks",
    "select_measure": "uqprism.tasks",
    "selective_prediction": "uqprism.tasks",
    "tasks": "uqprism",
    "training": "uqprism",
    "write_report": "uqprism.report.page",
}

# All but the names that need an extra, so that `from uqprism import *` works without any.
__all__ = [
    "ActiveLearner",
    "Audit",
    "Beta",
    "Calibration",
    "CensoredGaussian",
    "ConformalIntervals",
    "Decomposition",
    "Draws",
    "EnsemblePrediction",
    "EvidentialPrediction",
    "Exactness",
    "Flagged",
    "Gamma",
    "Gaussian",
    "Histogram",
    "Laplace",
    "LogNormal",
    "Logistic",
    "Measure",
    "MeasureTable",
    "Mixture",
    "NegativeBinomial",
    "Poisson",
    "Quantiles",
    "RankCorrelation",
    "Recalibration",
    "StudentT",
    "TaskResult",
    "TruncatedGaussian",
    "UqprismError",
    "Watch",
    "Weibull",
    "__version__",
    "approximations",
    "audit",
    "calibration",
    "catalogue",
    "conformal_intervals",
    "decompose",
    "evaluate",
    "families",
    "flag",
    "from_arrow",
    "from_draws",
    "from_frame",
    "from_model",
    "from_posterior",
    "from_torch",
    "histogram_density",
    "kernel_density",
    "ood_detection",
    "prediction_error",
    "rank_correlation",
    "recalibrate",
    "recommend",
    "retention_curve",
    "rules",
    "select_measure",
    "selective_prediction",
    "tasks",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _LAZY:
        # A task that a user registered is found by its name too. Tools probe for private
        # names, which must not import the tasks.
        tasks = None if name.startswith("_") else importlib.import_module("uqprism.tasks.task").TASKS
        if tasks is None or name not in tasks:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return tasks.get(name).function

    package = _LAZY[name]
    if package == __name__:
        return importlib.import_module(f"{package}.{name}")
    return getattr(importlib.import_module(package), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY})
