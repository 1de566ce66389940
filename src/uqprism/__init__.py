"""Split the uncertainty of a regression ensemble into noise and what more data would remove, under any proper scoring rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uqprism import families, rules
from uqprism.ensemble import EnsemblePrediction, approximations
from uqprism.ensemble.evidential import EvidentialPrediction
from uqprism.errors import UqprismError
from uqprism.evaluation import Decomposition, decompose, evaluate, log_bayes_mixture_bounds
from uqprism.families import Empirical, Gaussian, Laplace, Logistic, Mixture, StudentT
from uqprism.families.quadrature import Exactness
from uqprism.measures import Measure, MeasureTable, catalogue
from uqprism.support.versions import __version__

if TYPE_CHECKING:
    from uqprism import tasks
    from uqprism.tasks.active_learning import ActiveLearner
    from uqprism.tasks.calibration import Calibration, calibration
    from uqprism.tasks.flagging import Flagged, flag
    from uqprism.tasks.ood_detection import ood_detection
    from uqprism.tasks.rank_correlation import RankCorrelation, rank_correlation
    from uqprism.tasks.recommendation import recommend
    from uqprism.tasks.result import TaskResult
    from uqprism.tasks.retention import retention_curve
    from uqprism.tasks.selection import select_measure
    from uqprism.tasks.selective_prediction import selective_prediction

# Loaded when they are first used, so that importing the package stays quick.
_LATER = dict.fromkeys(
    (
        "ActiveLearner",
        "Calibration",
        "Flagged",
        "RankCorrelation",
        "TaskResult",
        "calibration",
        "flag",
        "ood_detection",
        "rank_correlation",
        "recommend",
        "retention_curve",
        "select_measure",
        "selective_prediction",
    ),
    "uqprism.tasks",
)
# These need further packages, and are left out by `from uqprism import *`.
_WITH_EXTRAS = {
    "DeepEnsemble": "uqprism.training",
    "DeepEnsembleRegressor": "uqprism.training.estimators",
    "EvidentialRegressor": "uqprism.training.estimators",
    "MCDropoutRegressor": "uqprism.training.estimators",
    "write_report": "uqprism.report.page",
}

__all__ = [
    "ActiveLearner",
    "Calibration",
    "Decomposition",
    "Empirical",
    "EnsemblePrediction",
    "EvidentialPrediction",
    "Exactness",
    "Flagged",
    "Gaussian",
    "Laplace",
    "Logistic",
    "Measure",
    "MeasureTable",
    "Mixture",
    "RankCorrelation",
    "StudentT",
    "TaskResult",
    "UqprismError",
    "__version__",
    "approximations",
    "calibration",
    "catalogue",
    "decompose",
    "evaluate",
    "families",
    "flag",
    "log_bayes_mixture_bounds",
    "ood_detection",
    "rank_correlation",
    "recommend",
    "retention_curve",
    "rules",
    "select_measure",
    "selective_prediction",
    "tasks",
]

_MODULES = ("files", "paper", "report", "tasks", "training")  # found without an import of their own


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"uqprism.{name}")
    home = (_LATER | _WITH_EXTRAS).get(name)
    if home is not None:
        return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_WITH_EXTRAS, *_MODULES})
