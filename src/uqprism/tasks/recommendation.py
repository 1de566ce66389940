"""Which measure for which job: the paper's advice, with its evidence."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uqprism.measures import published
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.tasks.task import all_tasks


@dataclass(frozen=True)
class Evidence:
    """A number of the paper.

    Attributes:
        measure: whose.
        value: the mean over the paper's data sets.
        spread: its standard deviation over runs.
    """

    measure: str
    value: float
    spread: float


@dataclass(frozen=True)
class Recommendation:
    """What to use for a task, and why.

    Attributes:
        task: which task.
        measure: the one to begin with.
        alternatives: measures that did as well or nearly so.
        reason: a paragraph.
        metric: what the evidence is in, and where in the paper it stands.
        evidence: numbers of the paper, the best first.
    """

    task: str
    measure: str
    alternatives: tuple[str, ...]
    reason: str
    metric: str
    evidence: tuple[Evidence, ...]

    def rows(self) -> list[dict[str, Any]]:
        """The evidence, one row per measure."""
        return [{"measure": each.measure, "paper": each.value, "spread": each.spread} for each in self.evidence]

    def to_pandas(self) -> Any:
        """The evidence as a `pandas.DataFrame`, a row per measure."""
        return require("pandas", extra="pandas").DataFrame(self.rows()).set_index("measure")

    def to_json(self) -> str:
        """All of it as JSON text."""
        about = {"task": self.task, "measure": self.measure, "alternatives": self.alternatives, "reason": self.reason}
        return json.dumps({**about, "metric": self.metric, "evidence": self.rows()}, indent=2)

    def __str__(self) -> str:
        width = max(len(each.measure) for each in self.evidence)
        numbers = [f"  {each.measure:<{width}}  {each.value:.3f} +- {each.spread:.3f}" for each in self.evidence]
        head = [f"{self.task}: {self.measure}", *(f"  or {name}" for name in self.alternatives)]
        return "\n".join([*head, "", textwrap.fill(self.reason, 100), "", f"{self.metric}:", *numbers])


def _printed(table: str, *measures: str) -> tuple[Evidence, ...]:
    """The numbers of these measures in a table of the paper."""
    cells = published.table(table)
    return tuple(Evidence(name, *cells[name]) for name in measures)


RECOMMENDATIONS: Mapping[str, Recommendation] = {
    each.task: each
    for each in (
        Recommendation(
            task="selective_prediction",
            measure="crps.total.members.members",
            alternatives=("quadratic.total.members.members", "squared_error.total.members.members", "log.total.members.members"),
            reason=(
                "An error comes from noise as well as from ignorance, so the total risk finds it: with members standing in "
                "for both prediction and truth it was best under the CRPS and among the best under every rule. Bayes risks "
                "miss the ignorance and do worse. Of the excess risks only that of the squared error keeps up; under the "
                "log score they do clearly worse, and under the quadratic score worst of all."
            ),
            metric="Prediction-rejection ratio, lower is better (Table 1 of the paper, mean over its data sets)",
            evidence=_printed(
                "selective_prediction_mean",
                "crps.total.members.members",
                "quadratic.total.members.members",
                "squared_error.total.members.members",
                "log.total.members.members",
                "squared_error.excess.members.members",
                "crps.excess.members.members",
                "crps.bayes.members",
                "log.excess.members.members",
                "quadratic.excess.members.members",
            ),
        ),
        Recommendation(
            task="ood_detection",
            measure="log.excess.members.members",
            alternatives=(
                "crps.excess.members.members",
                "squared_error.excess.members.members",
                "quadratic.excess.members.members",
            ),
            reason=(
                "Members that were never shown such an input have no reason to agree on it, and the pairwise excess risk "
                "measures how much they disagree. It was among the best under every rule, most of all the log score; the "
                "differences between rules are within the spread. Total risks mix in noise that known inputs have too, and "
                "Bayes risks are that noise: both do worse."
            ),
            metric="AUROC, higher is better (Table 2 of the paper, mean over its data sets)",
            evidence=_printed(
                "ood_detection_mean",
                "log.excess.members.members",
                "crps.excess.members.members",
                "squared_error.excess.members.members",
                "quadratic.excess.members.members",
                "log.total.members.members",
                "crps.total.members.members",
                "crps.bayes.members",
                "log.bayes.members",
            ),
        ),
        Recommendation(
            task="active_learning",
            measure="log.excess.members.members",
            alternatives=(
                "quadratic.excess.members.matched",
                "quadratic.excess.members.pooled",
                "log.excess.members.pooled",
            ),
            reason=(
                "A new label is worth buying where it removes ignorance, not where it only shows noise, so excess risks do "
                "best; no stand-in is clearly ahead of the others. The quadratic score has the best mean rank, but its "
                "scores have units of one over the target's; the log score's have none, it is within the spread of the "
                "best, and its own spread is small, so we begin with it. Total and Bayes risks of the quadratic score do "
                "worse than picking at random: they are highest where the predicted noise is largest. "
                "Our own run of the paper's experiment does not confirm the lead (mean rank 22.5, random picks 16.0): a softmax "
                "over scores as they are was nearly flat there. Take scores='rank', and compare on your own data."
            ),
            metric="Mean rank among acquisition functions, lower is better (Table 3 of the paper)",
            evidence=_printed(
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
    )
}


def recommend(task: str) -> Recommendation:
    """The paper's advice for a task: `selective_prediction`, `ood_detection` or `active_learning`.

    It is a place to begin; `select_measure` asks your own validation data.
    """
    name = {each.command: each.name for each in all_tasks()}.get(task, task)
    if name not in RECOMMENDATIONS:
        raise unknown("task", task, RECOMMENDATIONS)
    return RECOMMENDATIONS[name]
