"""Active learning: a pool-based loop with any model, any acquisition, and batches that are not redundant."""

from __future__ import annotations

from uqprism.tasks.active_learning.comparison import compare_acquisitions
from uqprism.tasks.active_learning.learner import ActiveLearner
from uqprism.tasks.active_learning.ranks import AverageRanks, average_ranks
from uqprism.tasks.active_learning.scaling import scaled
from uqprism.tasks.active_learning.selection import diverse, gumbel_top_k, softmax, top
from uqprism.tasks.active_learning.state import LearningState
from uqprism.tasks.task import Metric, Task, register

__all__ = [
    "ActiveLearner",
    "AverageRanks",
    "LearningState",
    "average_ranks",
    "compare_acquisitions",
    "diverse",
    "gumbel_top_k",
    "scaled",
    "softmax",
    "top",
]

register(
    Task(
        name="active_learning",
        command="active",
        function=compare_acquisitions,
        title="Active learning",
        summary="Which way to choose points to label learns fastest?",
        metrics=(
            Metric(name="nll", meaning="negative log-likelihood"),
            Metric(name="rmse", meaning="root mean squared error"),
            Metric(name="crps", meaning="mean CRPS"),
        ),
        page="active_learning.md",
        place=80,
    )
)
