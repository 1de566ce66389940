"""Selective prediction: reject the points that a measure is unsure of; how much error goes with them?"""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError
from uqprism.synonyms import named_arguments
from uqprism.tasks.resampling import MOST_STEPS, RESAMPLES, Ranking, Resampling
from uqprism.tasks.result import TaskResult, with_references
from uqprism.tasks.retention import (
    GRID,
    METRICS,
    PAPER_RETENTIONS,
    ROUNDING,
    Course,
    Kept,
    RetentionMetric,
    resolve_metric,
    resolve_retentions,
)
from uqprism.tasks.scores import as_scores, errors_of
from uqprism.tasks.task import Recommendation, ReportSection, Task, printed, register


@named_arguments()
def selective_prediction(
    table: Any,
    *,
    error: Any,
    metric: str = "prr_paper",
    retentions: Any = None,
    may_be_negative: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> TaskResult:
    """Compare how well measures find the points with large errors.

    The metrics:

    - `prr_paper`: the paper's prediction rejection ratio. The mean error of the points kept, averaged over retentions of 50, 51,
      ... 100 %, on a scale on which the oracle is 0 and a random order 1. Lower is better.
    - `prr`: the prediction rejection ratio of Malinin et al. (2021). How far rejecting lowers the error of all points, where a
      rejected point has none; the oracle is 1 and a random order 0. Higher is better.
    - `aurc`: the mean error of the k most certain points, averaged over every k. Lower is better.
    - `ause`: `aurc` less that of the oracle, divided by the mean error. Lower is better.
    - `error_at_N`: the mean error of the N % most certain points. Lower is better.

    Args:
        table: a `MeasureTable`, a mapping of names to uncertainties, a data frame, or one array of uncertainties.
        error: of each point, such as `tasks.prediction_error(ensemble, y)`; any numbers of which lower is better.
        metric: the one that counts; the others are in `result.metrics`.
        retentions: for `prr_paper`: shares to average over, by default 0.5, 0.51, ... 1.
        may_be_negative: whether errors may be, as log scores are; otherwise a negative one is refused.
        resamples: of the points, for spreads and paired comparisons; 0 for none.
        seed: of the resamples.

    Raises:
        InvalidValueError: all errors are equal, so that there is nothing to find; NaN among errors or uncertainties; negative
            errors.
    """
    scores = as_scores(table)
    errors = errors_of(error, scores, may_be_negative=may_be_negative)
    chosen = resolve_metric(metric, retentions)
    _check_errors(errors, chosen)
    # Metrics that these errors leave undefined are left out, unless asked for, which is an error.
    others = [m for m in METRICS.values() if m.name != chosen.name and not (m.needs_positive and errors.min() < 0.0)]
    course = Course.of(errors)
    drawn = Resampling.of(len(errors), resamples, seed)
    # The resamples, and the same rows once each: the noise is the difference between the two.
    again = [Course.of(errors[drawn.rows], counts, MOST_STEPS) for counts in (drawn.counts, None)]

    def judge(_name: str, column: np.ndarray) -> tuple[list[float], np.ndarray, np.ndarray]:
        kept = Kept.by(Ranking.of(column), course.points)
        found = [float(course.value(m, kept)[0]) for m in (chosen, *others)]
        # Sorted once for all resamples: they repeat points, and do not change their order.
        steps = Ranking.of(column[drawn.rows], MOST_STEPS)
        noisy = [each.value(chosen, Kept.by(steps, each.points)) for each in again]
        return found, kept.mean_at(GRID)[0], drawn.replicates(found[0], *noisy)

    done = scores.each(judge)
    replicates = np.stack([found[2] for found in done.values()], axis=1)
    oracle, random = (kept.mean_at(GRID)[0] for kept in (course.best, Kept.at_random(course.best)))
    references = {"retention": GRID, "oracle order": oracle, "random order": random}
    return TaskResult(
        task="selective_prediction",
        metric=chosen.name,
        higher_is_better=chosen.higher_is_better,
        measured={name: found[0][0] for name, found in done.items()},
        replicates=replicates if resamples else None,
        metrics={m.name: {name: found[0][i + 1] for name, found in done.items()} for i, m in enumerate(others)},
        curves=with_references(references, {name: found[1] for name, found in done.items()}),
        settings={
            "points": len(errors),
            "mean_error": float(errors.mean()),
            "resamples": int(resamples),
            "seed": int(seed),
            "retentions": (PAPER_RETENTIONS if retentions is None else resolve_retentions(retentions)).tolist(),
        },
        figure="retention_curves",
    )


def _check_errors(error: np.ndarray, metric: RetentionMetric) -> None:
    if np.ptp(error) <= ROUNDING * np.abs(error).max():
        raise InvalidValueError(
            f"error must differ between points, up to rounding all {len(error)} are {error[0]:g}: any order is as good; "
            "check that it is the error of each point and not their mean"
        )
    if metric.needs_positive and error.min() < 0.0:
        raise InvalidValueError(
            f"metric {metric.name!r} needs errors that are not negative, the smallest is {error.min():g}; "
            "use metric='prr_paper' for scores such as the log score"
        )


register(
    Task(
        name="selective_prediction",
        command="selective",
        function=selective_prediction,
        title="Selective prediction",
        summary="How well does each measure find large errors?",
        reads={"table": "table", "error": "error"},
        metrics=tuple(METRICS[name] for name in ("prr_paper", "prr", "aurc", "ause", "error_at_90")),
        metric_of=resolve_metric,
        options=("may_be_negative", "resamples", "seed"),
        section=ReportSection(
            "Does the uncertainty find the errors?",
            "Keep the rows that a measure of uncertainty is sure of and hand the rest to a person or a better model: how much "
            "of the error goes with them? The oracle is the best that any order can do, since it knows the errors; a random "
            "order gains nothing. The paper's prediction rejection ratio (PRR) says where a measure stands between the two: 0 "
            "is the oracle, 1 is a random order, so lower is better.",
            short="Errors",
        ),
        advice=Recommendation(
            measure="crps.total.members.members",
            alternatives=("quadratic.total.members.members", "squared_error.total.members.members", "log.total.members.members"),
            reason=(
                "An error comes from noise as well as from disagreement, so the total risk finds it: with members as "
                "both prediction and truth it was best under the CRPS and among the best under every rule. Bayes risks "
                "miss the disagreement and do worse. Of the excess risks only that of the squared error keeps up; under the "
                "log score they do clearly worse, and under the quadratic score worst of all."
            ),
            metric="The paper's prediction rejection ratio (prr_paper), lower is better (Table 1, mean over its data sets)",
            evidence=printed(
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
        page="selective_prediction.md",
        place=10,
    )
)
