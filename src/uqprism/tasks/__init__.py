"""Measures put to work: selective prediction, out-of-distribution detection, and which measure to choose."""

from uqprism.tasks.ood_detection import ood_detection
from uqprism.tasks.prediction_error import prediction_error
from uqprism.tasks.rank_correlation import RankCorrelation, rank_correlation
from uqprism.tasks.result import TaskResult
from uqprism.tasks.retention import RetentionCurve, retention_curve
from uqprism.tasks.selective_prediction import selective_prediction

__all__ = [
    "RankCorrelation",
    "RetentionCurve",
    "TaskResult",
    "ood_detection",
    "prediction_error",
    "rank_correlation",
    "retention_curve",
    "selective_prediction",
]
