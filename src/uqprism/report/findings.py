"""All numbers of a report, from its subject: they come from all rows, whatever is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.errors import InvalidValueError
from uqprism.evaluation import evaluate
from uqprism.report import sentences
from uqprism.report.happened import Happened, as_expected
from uqprism.report.sentences import Parts
from uqprism.report.steps import lead, missed, steps, tied_tenth
from uqprism.report.subject import Outside, Subject
from uqprism.tasks.calibration import Calibration, calibration
from uqprism.tasks.prediction_error import Kind, prediction_error
from uqprism.tasks.scores import as_scores, errors_of
from uqprism.tasks.selection import FEWEST, ChosenMeasure, choose_among
from uqprism.tasks.task import Task, all_tasks

Tell = Callable[[str], None]
QUICK: dict[str, Kind] = {"crps": "crps", "squared_error": "squared"}  # rules with closed forms of the models' average


@dataclass(frozen=True)
class Findings:
    """What the report says.

    Attributes:
        parts: noise and removable part.
        outside: the same of rows from outside, by the name of their data set.
        results: of the tasks that could be done, by the name of the task.
        missing: why others could not, likewise.
        calibration: of the mixture, where targets and members are known.
        average: the mean penalty of predicting with the average of the models, where it is known or cheap to know.
        happened: the same beside what it was once the targets were known, where that is cheap to know.
        choices: the measure to use on these rows, by task.
        sentences: the summary, by what each is about.
        steps: what to do next.
    """

    parts: Parts
    outside: Mapping[str, Parts]
    results: Mapping[str, Any]
    missing: Mapping[str, str]
    calibration: Calibration | None
    average: float | None
    happened: Happened | None
    choices: Mapping[str, ChosenMeasure]
    sentences: Mapping[str, str]
    steps: Sequence[str]


def find(subject: Subject, *, resamples: int, seed: int, tell: Tell = lambda _: None) -> Findings:
    """Work it all out; `tell` hears what is being done.

    Raises:
        InvalidValueError: NaN among measures or errors.
    """
    _check(subject)
    parts = _parts(subject, subject)
    outside = {name: _parts(subject, each) for name, each in subject.elsewhere.items()}
    results: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for task in all_tasks():
        arguments = _arguments(task, subject)
        if task.section is None or arguments is None:
            continue
        tell(task.name.replace("_", " "))
        arguments |= {name: value for name, value in (("resamples", resamples), ("seed", seed)) if name in task.options}
        try:
            results[task.name] = task.function(**arguments)
        except InvalidValueError as error:
            missing[task.name] = str(error)
    found = None
    if subject.ensemble is not None and subject.target is not None and subject.n_rows > 1:
        tell("calibration")
        found = calibration(subject.ensemble, subject.target)
    average = _average(subject)
    happened = _happened(subject, average)
    told = _sentences(subject, parts, outside, results, found)
    told = {"split": told.pop("split"), **({"happened": as_expected(happened, parts)} if happened else {}), **told}
    to_do = steps(subject, parts, results, found)
    mean = None if average is None else float(average.mean())
    return Findings(parts, outside, results, missing, found, mean, happened, _choices(subject, results, seed), told, to_do)


def _parts(subject: Subject, rows: Subject | Outside) -> Parts:
    return Parts.of(
        rows.noise,
        rows.removable,
        rows.numbers,
        rule=subject.split.rule,
        unit=subject.unit,
        n_members=None if subject.ensemble is None else subject.ensemble.n_members,
    )


def _average(subject: Subject) -> np.ndarray | None:
    """What predicting with the average of the models costs in each row: read, or computed where that is quick and exact."""
    name = subject.split.of_average
    if name is None or name in subject.measures:
        return None if name is None else subject.measures[name]
    exactness = subject.exactness.get(subject.split.excess)  # of measures that were read nobody knows; files hold Gaussians
    exact = exactness is None or exactness.method == "closed form"
    if subject.ensemble is None or subject.split.rule not in QUICK or not exact:
        return None
    found = to_numpy(evaluate(subject.ensemble, [name])[name]).astype(np.float64, copy=False)
    return found if np.isfinite(found).all() else None


def _happened(subject: Subject, average: np.ndarray | None) -> Happened | None:
    """What the average of the models did cost, beside what was expected of it."""
    kind = QUICK.get(subject.split.rule)
    if average is None or subject.ensemble is None or subject.target is None or kind is None or subject.n_rows < 2:
        return None
    return Happened.of(average, prediction_error(subject.ensemble, subject.target, kind))


def _check(subject: Subject) -> None:
    """The same errors as the tasks give, before any work."""
    if subject.n_rows > 1:
        scores = as_scores(subject.measures)
        if subject.error is not None:
            errors_of(subject.error, scores)
    elif not np.isfinite([column[0] for column in subject.measures.values()]).all():
        raise InvalidValueError(f"{subject.title}: the only row has no finite measures")


def _arguments(task: Task, subject: Subject) -> dict[str, Any] | None:
    """What the task reads, or None where the subject lacks it."""
    outside = next(iter(subject.outside.values())) if len(subject.outside) == 1 else dict(subject.outside) or None
    known = {"table": subject.measures if subject.n_rows > 1 else None, "tables": outside, "error": subject.error}
    reads = task.reads or {}
    found = {name: known[kind.rstrip("?")] for name, kind in reads.items()}
    needed = [name for name, kind in reads.items() if not kind.endswith("?")]
    return None if any(found[name] is None for name in needed) else {k: v for k, v in found.items() if v is not None}


def _choices(subject: Subject, results: Mapping[str, Any], seed: int) -> dict[str, ChosenMeasure]:
    found = {}
    for name in ("selective_prediction", "ood_detection"):
        result = results.get(name)
        if result is not None and result.has_spread and subject.n_rows >= FEWEST:
            outside = None if name == "selective_prediction" else _tables(subject)
            found[name] = choose_among(as_scores(subject.measures), result, ood=outside, seed=seed)
    return found


def _tables(subject: Subject) -> Any:
    return dict(subject.outside) if len(subject.outside) > 1 else next(iter(subject.outside.values()))


def _sentences(
    subject: Subject, parts: Parts, outside: Mapping[str, Parts], results: Mapping[str, Any], found: Calibration | None
) -> dict[str, str]:
    told = {
        "split": sentences.overall(parts),
        "kinds": sentences.rows_of_each_kind(parts),
        "rows": sentences.rows_to_look_at(parts),
    }
    if "selective_prediction" in results:
        measure = lead(results["selective_prediction"], subject)
        told["errors"] = sentences.handing_over(results["selective_prediction"], measure, subject.error_words)
        told["errors"] += tied_tenth(subject.measures[measure])
    if subject.n_rows < 2 and subject.target is not None:
        told["errors"] = sentences.ALONE
    if found is not None:
        told["calibration"] = sentences.calibrated(found)
    told["elsewhere"] = sentences.elsewhere(parts, outside)
    if "ood_detection" in results:
        told["outside"] = sentences.detected(
            results["ood_detection"], lead(results["ood_detection"], subject), next(iter(subject.outside))
        )
    told["missed"] = missed(subject, results)
    told["left_out"] = sentences.left_out(subject.n_given - subject.n_rows, subject.n_given)
    return {name: sentence for name, sentence in told.items() if sentence}
