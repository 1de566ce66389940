"""The tasks: selective prediction, out-of-distribution detection, active learning, audit, watch, rank correlation, selection."""

from uqprism.tasks.active_learning import ActiveLearner, LearningState, LoopSettings, Pool, compare_acquisitions
from uqprism.tasks.audit import Audit, Promise, audit
from uqprism.tasks.calibration import Calibration, calibration
from uqprism.tasks.conformal import ConformalIntervals, conformal_intervals
from uqprism.tasks.flagging import Flagged, flag
from uqprism.tasks.ood_detection import ood_detection
from uqprism.tasks.prediction_error import prediction_error
from uqprism.tasks.rank_correlation import RankCorrelation, rank_correlation
from uqprism.tasks.recalibration import Recalibration, recalibrate
from uqprism.tasks.resampling import AverageRanks, average_ranks
from uqprism.tasks.result import TaskResult
from uqprism.tasks.retention import RetentionCurve, retention_curve
from uqprism.tasks.selection import ChosenMeasure, select_measure
from uqprism.tasks.selective_prediction import selective_prediction
from uqprism.tasks.task import Recommendation, recommend
from uqprism.tasks.watch import Alarm, Update, Watch

__all__ = [
    "ActiveLearner",
    "Alarm",
    "Audit",
    "AverageRanks",
    "Calibration",
    "ChosenMeasure",
    "ConformalIntervals",
    "Flagged",
    "LearningState",
    "LoopSettings",
    "Pool",
    "Promise",
    "RankCorrelation",
    "Recalibration",
    "Recommendation",
    "RetentionCurve",
    "TaskResult",
    "Update",
    "Watch",
    "audit",
    "average_ranks",
    "calibration",
    "compare_acquisitions",
    "conformal_intervals",
    "flag",
    "ood_detection",
    "prediction_error",
    "rank_correlation",
    "recalibrate",
    "recommend",
    "retention_curve",
    "select_measure",
    "selective_prediction",
]
