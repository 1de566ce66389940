"""Active learning: a pool-based loop with any model, any acquisition, and batches without redundant points."""

from __future__ import annotations

from uqprism.tasks.active_learning.comparison import compare_acquisitions
from uqprism.tasks.active_learning.learner import METRICS, ActiveLearner
from uqprism.tasks.active_learning.picking import diverse, gumbel_top_k, scaled, softmax, top
from uqprism.tasks.active_learning.pool import Pool
from uqprism.tasks.active_learning.records import LearningState
from uqprism.tasks.active_learning.settings import LoopSettings
from uqprism.tasks.task import Recommendation, Task, printed, register

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
        advice=Recommendation(
            measure="log.excess.members.members",
            alternatives=(
                "quadratic.excess.members.matched",
                "quadratic.excess.members.pooled",
                "log.excess.members.pooled",
            ),
            reason=(
                "A new label is worth buying where it reduces disagreement, not where it only shows noise, so excess risks do "
                "best; no approximation is clearly ahead of the others. The quadratic score has the best mean rank, but its "
                "scores have units of one over the target's; the log score's have none, it is within the spread of the "
                "best, and its own spread is small, so we begin with it. Total and Bayes risks of the quadratic score do "
                "worse than picking at random: they are highest where the predicted noise is largest. "
                "Our own run of the paper's experiment does not confirm the lead (mean rank 22.5, random picks 16.0): a softmax "
                "over scores as they are was nearly flat there. Take scores='rank', and compare on your own data."
            ),
            metric="Mean rank among acquisition functions, lower is better (Table 3 of the paper)",
            evidence=printed(
                "active_learning_rank",
                "quadratic.excess.members.matched",
                "quadratic.excess.members.pooled",
                "log.excess.members.members",
                "log.excess.members.pooled",
                "crps.total.members.members",
                "crps.excess.members.members",
                "random",
                "quadratic.total.members.members",
                "quadratic.bayes.members",
            ),
        ),
        page="active_learning.md",
        place=80,
    )
)
