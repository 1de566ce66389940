"""The tables of a report, as text in cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.measures.vocabulary import measure_in_words, risk_unit
from uqprism.plots.words import ErrorWords, from_set
from uqprism.report.findings import OOD, SELECTIVE, count_equal
from uqprism.report.formatting import MINUS, SPACE, count, number, percent, same_decimals
from uqprism.report.subject import Rows, Subject
from uqprism.tasks.flagging import Flagged, flag
from uqprism.tasks.rank_correlation import SAME, RankCorrelation, rank_alike
from uqprism.tasks.result import TaskResult
from uqprism.tasks.selection import simplicity

MOST_UNCERTAIN = 10
FIRST = 8
SHARES = (0.1, 0.05, 0.01)
LONGEST = 60  # characters of a cell


@dataclass(frozen=True)
class Column:
    """A heading, and whether the cells below it are numbers."""

    title: str
    numeric: bool = True


@dataclass(frozen=True)
class Name:
    """A measure in a cell: its name, what it means, and the names of others that order the rows alike."""

    name: str
    meaning: str
    alike: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, alike: Sequence[str] = ()) -> Name:
        """The cell of a measure."""
        return cls(name, measure_in_words(name), tuple(alike))


@dataclass(frozen=True)
class PageTable:
    """A table of texts; rows after the first few are hidden until asked for.

    Attributes:
        caption: what the table shows.
        columns: the headings.
        rows: a cell for each heading, a text or a name.
        first: how many rows are shown at once.
        note: a sentence below the table.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | Name, ...], ...]
    first: int = FIRST
    note: str = ""


def text(value: Any) -> str:
    """A value of a file as text, cut where it is long."""
    if value is None:
        return ""
    shown = number(float(value)) if isinstance(value, float | np.floating) else str(value)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def texts(values: Sequence[Any]) -> list[str]:
    """The values of a column as texts; numbers have one number of decimals unless all are whole."""
    if any(isinstance(value, float | np.floating) for value in values) and all(
        isinstance(value, float | int | np.floating | np.integer) for value in values
    ):
        return same_decimals([float(value) for value in values])
    return [text(value) for value in values]


PARTS = {"bayes": "noise", "excess": "disagreement"}


def most_uncertain(subject: Subject, by: str) -> PageTable:
    """The rows with the most noise (`bayes`) or disagreement (`excess`)."""
    values = getattr(subject, by)
    places = np.argsort(-values, kind="stable")[:MOST_UNCERTAIN]
    order = ("excess", "bayes") if by == "excess" else ("bayes", "excess")
    columns = {"row": [f"{row}" for row in subject.numbers[places]]}
    columns |= {PARTS[kind]: same_decimals(getattr(subject, kind)[places].tolist()) for kind in order}
    # A file may have a column called noise.
    columns |= {(name if name not in columns else f"{name} (file)"): cells for name, cells in details(subject, places).items()}
    caption = "The rows with the most disagreement" if by == "excess" else "The noisiest rows"
    many, shown = (count_equal(some, float(values[places[-1]])) for some in (values, values[places]))
    note = f"{count(many, 'row')} share the last value; the first {shown} of them in the file are shown." if many > shown else ""
    return _table(caption, columns, first=MOST_UNCERTAIN, note=note)


def details(subject: Subject, places: np.ndarray, *, in_columns: bool = True) -> dict[str, list[str]]:
    """What else is known of some rows: columns of the file, prediction, target, and in columns an interval."""
    shown = texts if in_columns else lambda values: [text(value) for value in values]
    found = {str(name): shown(values) for name, values in subject.columns_at(places).items()}
    if subject.prediction is not None:
        found["prediction"] = shown(subject.prediction[places].tolist())
    if in_columns and subject.ensemble is not None:
        # Only of the rows shown: quantiles of a mixture are found by bisection.
        mixture = subject.ensemble[places].mixture
        ends = same_decimals(np.concatenate([np.asarray(mixture.quantile(level)) for level in (0.05, 0.95)]).tolist())
        pairs = zip(ends[: len(places)], ends[len(places) :], strict=True)
        found[f"90{SPACE}% interval"] = [f"{low} to {high}" for low, high in pairs]
    if subject.target is not None:
        found[_free(subject.target_name, found)] = shown(subject.target[places].tolist())
    return found


def _free(name: str, taken: Mapping[str, Any]) -> str:
    return name if name not in taken else f"{name} (target)"  # the target may be shown as a column already


def by_origin(subject: Subject, *, shares: bool) -> PageTable:
    """The parts of the known rows beside those of unfamiliar ones, a line for each file."""
    every: dict[str, Rows] = {"known rows": subject}
    every |= {from_set(name): rows for name, rows in subject.ood_pairs.items()}
    means = np.array([[rows.bayes.mean(), rows.excess.mean()] for rows in every.values()])
    cells: dict[str, Sequence[Any]] = {"rows": list(every), "how many": [f"{rows.n_rows:,}" for rows in every.values()]}
    if shares:
        cells["share of disagreement"] = [percent(float(excess / (bayes + excess))) for bayes, excess in means]
    shown, n = same_decimals([*means[:, 1], *means[:, 0], *means.sum(axis=1)], at=0.0), len(every)
    # One number of decimals for all, so that they can be compared.
    cells |= {"disagreement": shown[:n], "noise": shown[n : 2 * n], "expected penalty": shown[2 * n :]}
    note = "Means over the rows. The penalty is what the models expect, so it needs no targets."
    return _table(UNFAMILIAR, cells, words=("rows",), note=note)


UNFAMILIAR = "Known rows and rows with unfamiliar inputs"


def thresholds(subject: Subject, measure: str, purpose: str, words: ErrorWords | None) -> PageTable:
    """The thresholds that hand over some shares of the rows, and what that does; errors where there are words for them."""
    values = subject.measures[measure]
    # With few rows, or ties, several shares hand over the same.
    flags = list({each.count: each for share in SHARES for each in [flag(values, share)]}.values())
    words_of = measure_in_words(measure)
    unit = risk_unit(measure.partition(".")[0], subject.unit) if words_of else ""
    cells: dict[str, Sequence[Any]] = {
        "hand over": [percent(each.share) if each.tied else f"{100 * each.asked:.0f}{SPACE}%" for each in flags],
        f"threshold, {unit}" if unit else "threshold": [each.shortest.replace("-", MINUS) for each in flags],
        "rows": [f"{each.count:,}" for each in flags],
    }
    note = _ties(flags)
    if words is not None and subject.error is not None:
        means = [[_mean(subject.error[each.rows == handed]) for each in flags] for handed in (False, True)]
        shown = same_decimals(np.ravel(words.shown(np.array(means))).tolist())
        cells |= {"error of rows kept": shown[: len(flags)], "of rows handed over": shown[len(flags) :]}
        whole = number(float(words.shown(subject.error.mean())))
        unit_of = f", in {words.unit}" if words.unit else ""
        note = " ".join(filter(None, (note, f"The error is the {words.name}{unit_of}; over all rows it is {whole}.")))
    for name, rows in subject.ood.items():
        if measure in rows.measures:
            caught = [float((rows.measures[measure] >= each.threshold).mean()) for each in flags]
            cells[f"caught {from_set(name)}"] = [percent(share) for share in caught]
    return _table(f"{purpose}, by {f'{words_of} ({measure})' if words_of else measure}", cells, note=note)


def _ties(flags: Sequence[Flagged]) -> str:
    """Why fewer rows cannot be handed over, where rows tie."""
    least = flags[-1]
    if not least.tied:
        return ""
    asked = f"{100 * least.asked:.0f}{SPACE}%"
    why = "rows that share their value are handed over together"
    return (
        f"To hand over {asked} is not possible: {why}, and the fewest are {percent(least.share)} ({count(least.count, 'row')})."
    )


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else np.nan


def of_result(result: Any, subject: Subject) -> PageTable | None:
    """The result of a task, the best measure first; None for an empty result."""
    if isinstance(result, TaskResult):
        return _of_measures(result, _all_rows(subject) if result.task == OOD else subject.measures)
    if isinstance(result, RankCorrelation):
        groups = [sorted(group, key=_simple(SELECTIVE)) for group in result.same_rankings()]
        groups.sort(key=len, reverse=True)  # the largest say the most
        if not groups:
            return None
        cells = {"measure": [Name.of(first, others) for first, *others in groups]}
        return _table(f"Measures whose orders of the rows are the same, or nearly (tau of {SAME} or more)", cells)
    rows = getattr(result, "summary", result.rows)()
    return _table("", {name: texts([row[name] for row in rows]) for name in rows[0]}) if rows else None


def _simple(task: str) -> Callable[[str], tuple[int, ...]]:
    return lambda name: simplicity(name, task)


def _all_rows(subject: Subject) -> dict[str, np.ndarray]:
    """Known and unfamiliar rows together: two measures may order only the latter differently."""
    tables = [subject.measures, *(rows.measures for rows in subject.ood.values())]
    return {name: np.concatenate([table[name] for table in tables]) for name in subject.measures}


def _of_measures(result: TaskResult, columns: Mapping[str, np.ndarray]) -> PageTable:
    """A line for each order of the rows, under the name of the simplest measure with that order, the best first."""
    groups = rank_alike({name: columns[name] for name in sorted(result, key=_simple(result.task))})
    sign = -1.0 if result.higher_is_better else 1.0
    groups.sort(
        key=lambda group: sign * round(result[group[0]], 3)
    )  # stable, so of values shown as equal the simplest comes first
    names = [group[0] for group in groups]
    cells: dict[str, Sequence[Any]] = {"measure": [Name.of(first, others) for first, *others in groups]}
    cells[result.describe().short] = [_three(result[name]) for name in names]
    if result.has_spread:
        ends, good = result.interval(), set(result.not_worse())
        cells[f"95{SPACE}% interval"] = [f"{_three(low)} to {_three(high)}" for low, high in map(ends.__getitem__, names)]
        cells["as good as the best"] = ["yes" if name in good else "no" for name in names]
    for part in result.parts:
        cells[part] = [_three(result.parts[part][name]) for name in names]
    words = ("measure", "as good as the best")
    note = (
        f"{len(result)} measures put the rows in {len(groups)} different orders; each has a line."
        if (len(groups) < len(result))
        else ""
    )
    return _table(result.describe().title, cells, words=words, note=note)


def _three(value: float) -> str:
    return f"{value:.3f}".replace("-", MINUS)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, str) and (cell[:1] in f"{MINUS}<>0123456789" or cell in {"infinite", "unknown"} or "%" in cell)


def _table(
    caption: str, columns: Mapping[str, Sequence[Any]], *, first: int = FIRST, words: Sequence[str] = (), note: str = ""
) -> PageTable:
    heads = tuple(Column(name, numeric=name not in words and all(map(_is_number, cells))) for name, cells in columns.items())
    return PageTable(caption, heads, tuple(zip(*columns.values(), strict=True)), first, note)
