"""What follows from the findings: a few things to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uqprism.measures.vocabulary import measure_in_words, risk_unit
from uqprism.plots.words import origin
from uqprism.report.sentences import Parts
from uqprism.report.subject import Subject
from uqprism.report.words import SPACE, percent
from uqprism.tasks.calibration import Calibration
from uqprism.tasks.flagging import Flagged, flag
from uqprism.tasks.result import TaskResult
from uqprism.tasks.task import recommend

TENTH = 0.1
FEWEST_TO_HAND_OVER = 10
LITTLE = 0.05  # of the penalty: more data would hardly change it
MISSED = 0.05  # of the rows from outside: fewer than this are as good as none
LIKE_THESE = 3  # rows to collect more of


def lead(result: TaskResult, subject: Subject) -> str:
    """The measure that sentences are about: the recommended one, or else that of the split, or else the best."""
    return next((name for name in _wanted(result.task, subject) if name in result), result.best())


def lead_for(task: str, subject: Subject, results: Mapping[str, Any]) -> str:
    """The same for a task, whether it could be done or not: the measure to set a threshold for."""
    result = results.get(task)
    if result is not None:
        return lead(result, subject)
    return next(name for name in (*_wanted(task, subject), subject.split.excess) if name in subject.measures)


def _wanted(task: str, subject: Subject) -> tuple[str, ...]:
    """The best first; one model cannot disagree, so its removable part says nothing."""
    alone = subject.ensemble is not None and subject.ensemble.n_members == 1
    if task == "selective_prediction" or alone:
        return recommend("selective_prediction").measure, subject.split.total, subject.split.bayes
    return recommend(task).measure, subject.split.excess


def named(measure: str) -> str:
    """A measure in a sentence, with the comma that ends what it is under."""
    words = measure_in_words(measure)
    return f"the {words}," if words else measure


def missed(subject: Subject, results: Mapping[str, Any]) -> str:
    """Which rows from outside a threshold against large errors lets through, and what would catch them."""
    if subject.n_rows < FEWEST_TO_HAND_OVER:
        return ""
    by, other = (lead_for(task, subject, results) for task in ("selective_prediction", "ood_detection"))
    told = []
    for name, table in subject.outside.items():
        if by not in table or (caught := _caught(subject, table, by)) >= MISSED:
            continue
        found = {each: _caught(subject, table, each) for each in subject.measures if each in table}
        best = other if found.get(other, 0.0) > 0.5 else max(found, key=lambda each: found[each])
        instead = f"{named(best)} does ({percent(found[best])})" if found[best] > 0.5 else "no measure here does"
        told.append(
            f"A threshold on {named(by)} that hands over {100 * TENTH:.0f}{SPACE}% of the known rows catches "
            f"{percent(caught)} of the rows from {origin(name)}; {'one on ' if found[best] > 0.5 else ''}{instead}."
        )
    return " ".join(told)


def _caught(subject: Subject, table: Mapping[str, np.ndarray], measure: str) -> float:
    return float((table[measure] >= flag(subject.measures[measure], TENTH).threshold).mean())


def tied_tenth(values: np.ndarray) -> str:
    """That a tenth cannot be handed over by a threshold, where rows tie."""
    found = flag(values, TENTH)
    if len(values) < FEWEST_TO_HAND_OVER or not found.tied:
        return ""
    return (
        f" Many rows share their value, so a threshold hands over {percent(found.share)} at least; the "
        f"{100 * TENTH:.0f}{SPACE}% are picked among them at random."
    )


def steps(subject: Subject, parts: Parts, results: Mapping[str, Any], found: Calibration | None) -> list[str]:
    """Sentences that say what to do, the most important first; none for a single row."""
    if subject.n_rows < 2:
        return []
    told = [_collect(subject, parts), _hand_over(subject, results), _recalibrate(found)]
    return [sentence for sentence in told if sentence]


def _collect(subject: Subject, parts: Parts) -> str:
    if parts.n_members == 1:
        return "Train several models that differ (other seeds, other samples of the data), to see what more data would remove."
    if parts.agree:
        return ""
    rows = subject.numbers[np.argsort(-subject.removable, kind="stable")[:LIKE_THESE]].tolist()
    like = f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:-1]))}{' and ' if len(rows) > 1 else ''}{rows[-1]}"
    if parts.has_shares and parts.removable < LITTLE * parts.total:
        return (
            f"Do not expect much of more data of this kind, since noise is {percent(parts.noise / parts.total)} of the penalty; "
            f"inputs that explain the noise would help more. If you collect data, then like {like}."
        )
    return f"Collect data like {like}, where more of it would help most."


def _hand_over(subject: Subject, results: Mapping[str, Any]) -> str:
    if subject.n_rows < FEWEST_TO_HAND_OVER:
        return ""
    measure = lead_for("selective_prediction", subject, results)
    result: TaskResult | None = results.get("selective_prediction")
    if result is not None and not result.metrics["error_at_90"][measure] < float(result.settings["mean_error"]):
        return f"Do not hand over rows by {named(measure).rstrip(',')}: here it does not find the large errors."
    return f"Hand over rows in which {named(measure)} is {_threshold(subject, measure)}."


def _threshold(subject: Subject, measure: str) -> str:
    found: Flagged = flag(subject.measures[measure], TENTH)
    unit = risk_unit(measure.partition(".")[0], subject.unit) if measure_in_words(measure) else ""
    ties = ", and ties allow no fewer" if found.tied else ""
    return f"{found.shortest}{SPACE if unit else ''}{unit} or more ({percent(found.share)} of the known rows{ties})"


def _recalibrate(found: Calibration | None, level: float = 0.9) -> str:
    if found is None or (verdict := found.verdict(level)) == "about right":
        return ""
    change = "widen" if verdict == "too narrow" else "narrow"
    return f"Recalibrate before you rely on intervals: they are {verdict}, so {change} them until held-out rows agree."
