"""Active learning: a pool-based loop with any model, any acquisition, and batches without redundant points."""

from __future__ import annotations

from uqprism.tasks.active_learning.comparison import compare_acquisitions
from uqprism.tasks.active_learning.learner import METRICS, ActiveLearner
from uqprism.tasks.active_learning.picking import diverse, gumbel_top_k, scaled, softmax, top
from uqprism.tasks.active_learning.pool import Pool
from uqprism.tasks.active_learning.records import LearningState
from uqprism.tasks.active_learning.settings import LoopSettings
from uqprism.tasks.task import Task, register

__all__ = [
    "ActiveLearner",
    "LearningState",
    "LoopSettings",
    "Pool",
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
        metrics=tuple(METRICS.values()),
        page="active_learning.md",
        place=80,
    )
)
