"""All numbers of a report. They come from all rows, whatever the figures draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.errors import InvalidValueError
from uqprism.evaluation import evaluate
from uqprism.measures.vocabulary import has_shares, is_square, risk_unit
from uqprism.plots.words import ErrorWords
from uqprism.report.claims import Claim, contradiction
from uqprism.report.subject import Rows, Subject
from uqprism.tasks.audit.result import Promise
from uqprism.tasks.calibration import Calibration, calibration
from uqprism.tasks.flagging import Flagged, flag
from uqprism.tasks.prediction_error import Kind, prediction_error
from uqprism.tasks.scores import as_scores, errors_of
from uqprism.tasks.selection import FEWEST, ChosenMeasure, choose_among
from uqprism.tasks.task import Task, all_tasks, recommend

SELECTIVE, OOD = "selective_prediction", "ood_detection"
QUICK: dict[str, Kind] = {"crps": "crps", "squared_error": "squared"}  # rules with closed forms for a mixture
EQUAL = 1e-9  # relative: values that differ by less are equal but for rounding
STANDARD_ERRORS = 2.0  # differences up to this are chance, 95 times in 100
TENTH = 0.1
FEWEST_TO_HAND_OVER = 10  # rows: a tenth of fewer is not one row
MISSED = 0.05  # a threshold that catches a smaller share of the unfamiliar rows misses them
ROWS_TO_COLLECT = 3
ROWS_TO_CHECK = 12


@dataclass(frozen=True)
class Parts:
    """Noise and disagreement over the rows.

    Attributes:
        rule: the rule of both.
        unit: of the target.
        target: what the target is called; empty if it has no name.
        prediction: the approximation of the prediction.
        n_members: how many models there are, None if unknown.
        bayes: the mean noise.
        excess: the mean disagreement.
        n_rows: how many rows there are.
        mostly_excess: in how many rows the disagreement is the larger part.
        half: how few rows hold half of all disagreement.
        noisiest: what the row with the most noise is called.
        least_known: what the row with the most disagreement is called.
        as_extreme: how many rows share the largest noise, and how many the largest disagreement.
        largest: the largest noise and the largest disagreement.
        agree: whether the models agree in every row, up to rounding.
        has_zero: whether zero is the least possible noise, as far as these rows tell.
    """

    rule: str
    unit: str
    target: str
    prediction: str
    n_members: int | None
    bayes: float
    excess: float
    n_rows: int
    mostly_excess: int
    half: int
    noisiest: str
    least_known: str
    as_extreme: tuple[int, int]
    largest: tuple[float, float]
    agree: bool
    has_zero: bool

    @classmethod
    def of(cls, rows: Rows, *, unit: str = "", target: str = "", n_members: int | None = None) -> Parts:
        """The parts of these rows."""
        bayes, excess = rows.bayes, rows.excess
        running = np.cumsum(np.sort(excess)[::-1] / _size(excess))
        return cls(
            rule=rows.pair.rule,
            unit=unit,
            target=target,
            prediction=rows.pair.prediction,
            n_members=n_members,
            bayes=mean_of(bayes),
            excess=mean_of(excess),
            n_rows=len(bayes),
            mostly_excess=int((excess > bayes).sum()),
            half=int(np.searchsorted(running, 0.5 * running[-1]) + 1),
            noisiest=rows.called([int(np.argmax(bayes))]),
            least_known=rows.called([int(np.argmax(excess))]),
            # A row is not the noisiest if others tie with it.
            as_extreme=(count_equal(bayes, float(bayes.max())), count_equal(excess, float(excess.max()))),
            largest=(float(bayes.max()), float(excess.max())),
            agree=bool((excess <= EQUAL * np.maximum(np.abs(bayes), np.abs(bayes + excess))).all()),
            has_zero=has_shares(rows.pair.rule, bayes),
        )

    @property
    def total(self) -> float:
        """Their sum, the expected penalty."""
        return self.bayes + self.excess

    @property
    def shares(self) -> tuple[float, float]:
        """Noise and disagreement as shares of their sum."""
        larger = max(self.bayes, self.excess)  # a sum of very large numbers would be infinite
        whole = self.bayes / larger + self.excess / larger
        return self.bayes / larger / whole, self.excess / larger / whole

    @property
    def has_shares(self) -> bool:
        """Whether the parts are shares of a whole."""
        return self.has_zero and self.total > 0.0

    @property
    def is_one_model(self) -> bool:
        """Whether there is one model, which cannot disagree with itself."""
        return self.n_members == 1

    @property
    def is_square(self) -> bool:
        """Whether both are squares of the target's unit; the page then shows their roots."""
        return is_square(self.rule)

    @property
    def shown_unit(self) -> str:
        """The unit of the numbers that the page shows."""
        return self.unit if self.is_square else risk_unit(self.rule, self.unit)

    def shown(self, risk: float) -> float:
        """A risk as the page shows it: the root if it is a square."""
        return max(risk, 0.0) ** 0.5 if self.is_square else risk


@dataclass(frozen=True)
class RealisedPenalty:
    """The penalty that the targets gave, beside the one that the models expected.

    Attributes:
        expected: mean over the rows.
        realised: mean over the rows.
        error: the standard error of the difference, if the rows are independent of each other.
    """

    expected: float
    realised: float
    error: float

    @classmethod
    def of(cls, expected: np.ndarray, realised: np.ndarray) -> RealisedPenalty:
        """From the penalties of each row."""
        size = max(_size(expected), _size(realised))
        spread = size * float((realised / size - expected / size).std(ddof=1))  # paired: both are larger in noisy rows
        return cls(mean_of(expected), mean_of(realised), spread / len(realised) ** 0.5)

    @property
    def beyond_chance(self) -> bool:
        """Whether they differ by more than chance explains, 95 times in 100."""
        return abs(self.realised - self.expected) > STANDARD_ERRORS * self.error


@dataclass(frozen=True)
class Example:
    """A row with its interval, to speak of.

    Attributes:
        name: what the row is called.
        prediction: of the row, in one number.
        low: the lower end of its 90 % interval.
        high: the upper end.
    """

    name: str
    prediction: float
    low: float
    high: float


@dataclass(frozen=True)
class Missed:
    """Unfamiliar rows that a threshold against large errors does not catch.

    Attributes:
        name: of their data set.
        by: the measure of the threshold.
        caught: the share of them that is caught.
        instead: the measure that catches the most.
        caught_instead: the share that a threshold on that measure catches.
    """

    name: str
    by: str
    caught: float
    instead: str
    caught_instead: float


@dataclass(frozen=True)
class ReportFindings:
    """The numbers of a report.

    Attributes:
        parts: noise and disagreement.
        ood: the same of rows with unfamiliar inputs, by the name of their data set.
        results: of the tasks that could be done, by the name of the task.
        missing: why other tasks could not be done.
        calibration: of the mixture, where targets and members are known.
        average: the mean expected penalty of predicting with the average of the models, where it is known or quick to compute.
        realised: that penalty beside the one the targets gave, where it is quick to compute.
        choices: the measure to use on these rows, by task.
        leads: the measure that sentences and thresholds are about, by task.
        tenth: the most uncertain tenth of the rows by the lead of selective prediction; None for few rows.
        most_uncertain: noise and disagreement of the tenth of the rows with the most of both; None for few rows.
        missed: the unfamiliar rows that the threshold of the tenth does not catch.
        first: the places of the rows that are the most uncertain by the lead of selective prediction.
        collect: the places of the rows with the most disagreement.
        example: the first of the most uncertain rows with its interval, where the members are known.
        is_level: whether all rows are equally uncertain by the lead of selective prediction.
        claim: what may be said about more data.
    """

    parts: Parts
    ood: Mapping[str, Parts]
    results: Mapping[str, Any]
    missing: Mapping[str, str]
    calibration: Calibration | None
    average: float | None
    realised: RealisedPenalty | None
    choices: Mapping[str, ChosenMeasure]
    leads: Mapping[str, str]
    tenth: Flagged | None
    most_uncertain: Parts | None
    missed: Sequence[Missed]
    first: Sequence[int]
    collect: Sequence[int]
    example: Example | None
    is_level: bool
    claim: Claim


def find(subject: Subject, *, resamples: int, seed: int, progress: Callable[[str], None] = lambda _: None) -> ReportFindings:
    """Compute all findings; `progress` receives the name of each step.

    Raises:
        InvalidValueError: NaN among measures or errors.
    """
    _check(subject)
    results, missing = _results(subject, resamples=resamples, seed=seed, progress=progress)
    found = None
    if subject.ensemble is not None and subject.target is not None and subject.n_rows > 1:
        progress("calibration")
        found = calibration(subject.ensemble, subject.target)
    average = _average(subject)
    leads = {task: _lead(task, subject, results) for task in (SELECTIVE, OOD)}
    several = subject.n_rows >= FEWEST_TO_HAND_OVER
    about: dict[str, Any] = {"unit": subject.unit, "target": subject.target_name, "n_members": subject.n_members}
    # Of ties, the first in the file.
    lead = subject.measures[leads[SELECTIVE]]
    first, collect = (np.argsort(-each, kind="stable") for each in (lead, subject.excess))
    parts, realised = Parts.of(subject, **about), _realised(subject, average)
    return ReportFindings(
        parts=parts,
        ood={name: Parts.of(rows, **about) for name, rows in subject.ood_pairs.items()},
        results=results,
        missing=missing,
        calibration=found,
        average=None if average is None else mean_of(average),
        realised=realised,
        choices=_choices(subject, results, seed),
        leads=leads,
        tenth=flag(subject.measures[leads[SELECTIVE]], TENTH) if several else None,
        most_uncertain=Parts.of(_most_uncertain(subject), **about) if several else None,
        missed=_missed(subject, leads) if several else (),
        first=first[: min(ROWS_TO_CHECK, max(1, round(TENTH * subject.n_rows)))].tolist(),
        collect=collect[:ROWS_TO_COLLECT].tolist(),
        example=_example(subject, int(first[0])),
        is_level=count_equal(lead, float(lead.max())) == subject.n_rows,
        claim=Claim(
            subject.kind,
            contradiction(parts, realised, found),
            _promise(subject),
            is_checked=realised is not None or found is not None,
        ),
    )


def _promise(subject: Subject) -> Promise | None:
    """What the audit says of the disagreement that the page shows."""
    return None if subject.audit is None else subject.audit[subject.pair.excess]


def _most_uncertain(subject: Subject) -> Rows:
    """The tenth of the rows with the most noise and disagreement together; ties are kept whole."""
    size = max(_size(subject.bayes), _size(subject.excess))
    sums = subject.bayes / size + subject.excess / size
    rows = flag(sums, TENTH).rows
    pair = subject.pair
    return Rows({pair.bayes: subject.bayes[rows], pair.excess: subject.excess[rows]}, pair, subject.numbers[rows])


def _example(subject: Subject, place: int) -> Example | None:
    if subject.ensemble is None or subject.prediction is None:
        return None
    mixture = subject.ensemble[place : place + 1].mixture
    low, high = (float(to_numpy(mixture.quantile(level))[0]) for level in (0.05, 0.95))
    return Example(subject.called([place]), float(subject.prediction[place]), low, high)


def _check(subject: Subject) -> None:
    """Raise what the tasks would raise, before any work."""
    if subject.n_rows > 1:
        scores = as_scores(subject.measures)
        if subject.error is not None:
            errors_of(subject.error, scores, may_be_negative=_is_log_score(subject))
    elif not np.isfinite([column[0] for column in subject.measures.values()]).all():
        raise InvalidValueError(f"{subject.title}: the only row has no finite measures")


def _is_log_score(subject: Subject) -> bool:
    return subject.error_words == ErrorWords.of("nll")


def _results(
    subject: Subject, *, resamples: int, seed: int, progress: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The results of all tasks whose arguments are known, and why others could not be done."""
    results: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for task in all_tasks():
        arguments = _arguments(task, subject)
        if task.section is None or arguments is None:
            continue
        progress(task.title.lower())
        arguments |= {name: value for name, value in (("resamples", resamples), ("seed", seed)) if name in task.options}
        if "may_be_negative" in task.options:
            arguments["may_be_negative"] = _is_log_score(subject)
        try:
            results[task.name] = task.function(**arguments)
        except InvalidValueError as error:  # such as too few rows: the page says so and goes on
            missing[task.name] = str(error)
    return results, missing


def _arguments(task: Task, subject: Subject) -> dict[str, Any] | None:
    """What the task reads, or None where the subject lacks it."""
    known = {"table": subject.measures if subject.n_rows > 1 else None, "tables": _ood_tables(subject), "error": subject.error}
    reads = task.reads or {}
    found = {name: known[kind.rstrip("?")] for name, kind in reads.items()}
    needed = [name for name, kind in reads.items() if not kind.endswith("?")]
    return None if any(found[name] is None for name in needed) else {k: v for k, v in found.items() if v is not None}


def _ood_tables(subject: Subject) -> Any:
    """The measures of unfamiliar rows as the tasks take them: one table, or several by name."""
    tables = {name: rows.measures for name, rows in subject.ood.items()}
    return next(iter(tables.values())) if len(tables) == 1 else tables or None


def _average(subject: Subject) -> np.ndarray | None:
    """The penalty of predicting with the mixture in each row: read, or computed where that is quick and exact."""
    name = subject.pair.of_average
    if name is None or name in subject.measures:
        return None if name is None else subject.measures[name]
    exactness = subject.exactness.get(subject.pair.excess)  # unknown for measures that were read; files hold Gaussians
    exact = exactness is None or exactness.method == "closed form"
    if subject.ensemble is None or subject.pair.rule not in QUICK or not exact:
        return None
    found = to_numpy(evaluate(subject.ensemble, [name])[name]).astype(np.float64, copy=False)
    return found if np.isfinite(found).all() else None  # a mean of some rows would not compare with the others


def _realised(subject: Subject, average: np.ndarray | None) -> RealisedPenalty | None:
    kind = QUICK.get(subject.pair.rule)
    if average is None or subject.ensemble is None or subject.target is None or kind is None or subject.n_rows < 2:
        return None
    return RealisedPenalty.of(average, prediction_error(subject.ensemble, subject.target, kind))


def _choices(subject: Subject, results: Mapping[str, Any], seed: int) -> dict[str, ChosenMeasure]:
    found = {}
    for name in (SELECTIVE, OOD):
        result = results.get(name)
        if result is not None and result.has_spread and subject.n_rows >= FEWEST:  # without resamples nothing is significant
            ood = None if name == SELECTIVE else _ood_tables(subject)
            found[name] = choose_among(as_scores(subject.measures), result, ood=ood, seed=seed)
    return found


def _lead(task: str, subject: Subject, results: Mapping[str, Any]) -> str:
    """The measure to speak about: the recommended one, or else that of the pair, or else the best."""
    if task == SELECTIVE or subject.n_members == 1:  # one model cannot disagree, so its excess says nothing
        wanted = (recommend(SELECTIVE).measure, subject.pair.total, subject.pair.bayes)
    else:
        wanted = (recommend(task).measure, subject.pair.excess, subject.pair.excess)
    result = results.get(task)
    if result is not None:
        return next((name for name in wanted if name in result), result.best())
    return next(name for name in (*wanted, subject.pair.excess) if name in subject.measures)


def _missed(subject: Subject, leads: Mapping[str, str]) -> list[Missed]:
    """The data sets of unfamiliar inputs that a threshold against large errors lets through."""
    by, missed = leads[SELECTIVE], []
    for name, rows in subject.ood.items():
        if by not in rows.measures or (caught := _caught(subject, rows, by)) >= MISSED:
            continue
        shares = {each: _caught(subject, rows, each) for each in subject.measures if each in rows.measures}
        best = leads[OOD] if shares.get(leads[OOD], 0.0) > 0.5 else max(shares, key=lambda each: shares[each])
        missed.append(Missed(name, by, caught, best, shares[best]))
    return missed


def _caught(subject: Subject, rows: Rows, measure: str) -> float:
    return float((rows.measures[measure] >= flag(subject.measures[measure], TENTH).threshold).mean())


def mean_of(values: np.ndarray) -> float:
    """The mean, also of numbers whose sum would be infinite."""
    size = _size(values)
    return size * float((values / size).mean())


def _size(values: np.ndarray) -> float:
    """The largest size of the numbers; 1 if that is zero or infinite."""
    size = float(np.abs(values).max())
    return size if 0.0 < size < np.inf else 1.0


def count_equal(values: np.ndarray, value: float) -> int:
    """How many of the values equal this one, up to rounding."""
    return int((np.abs(values - value) <= EQUAL * abs(value)).sum())
