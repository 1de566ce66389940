"""Active learning: a pool-based loop with any model, any acquisition, and batches that are not redundant."""

from __future__ import annotations

from uqprism.tasks.active_learning.comparison import compare_acquisitions
from uqprism.tasks.active_learning.learner import ActiveLearner
from uqprism.tasks.active_learning.ranks import AverageRanks, average_ranks
from uqprism.tasks.active_learning.scaling import scaled
from uqprism.tasks.active_learning.selection import diverse, gumbel_top_k, softmax, top
from uqprism.tasks.active_learning.state import LearningState

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
