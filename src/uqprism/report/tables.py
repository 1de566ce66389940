"""Tables of a report, as text in cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.measures.vocabulary import measure_in_words, risk_unit
from uqprism.plots.words import ErrorWords, origin
from uqprism.report.subject import Subject
from uqprism.report.words import MINUS, SPACE, count, number, numbers, percent, tied
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
    """A heading, and whether numbers stand under it."""

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
        """With its meaning."""
        return cls(name, measure_in_words(name), tuple(alike))


@dataclass(frozen=True)
class Table:
    """Rows of text; those after the first few are folded away.

    Attributes:
        caption: what it shows.
        columns: the headings.
        rows: as many cells each, texts or names.
        first: how many rows are open.
        note: below it.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | Name, ...], ...]
    first: int = FIRST
    note: str = ""


def text(value: Any) -> str:
    """Any value of a file, short."""
    if value is None:
        return ""
    told = number(float(value)) if isinstance(value, float | np.floating) else str(value)
    return told if len(told) <= LONGEST else told[: LONGEST - 1] + "…"


def texts(values: Sequence[Any]) -> list[str]:
    """The values of a column, numbers with as many decimals each if there are any but whole ones."""
    if any(isinstance(value, float | np.floating) for value in values) and all(
        isinstance(value, float | int | np.floating | np.integer) for value in values
    ):
        return numbers([float(value) for value in values])
    return [text(value) for value in values]


def most_uncertain(subject: Subject, by: str) -> Table:
    """The rows with the most noise (`noise`), or with the most that data would remove (`removable`)."""
    values = getattr(subject, by)
    places = np.argsort(-values, kind="stable")[:MOST_UNCERTAIN]
    order = ("removable", "noise") if by == "removable" else ("noise", "removable")
    columns = {"row": [f"{row}" for row in subject.numbers[places]]}
    columns |= {KINDS[kind]: numbers(getattr(subject, kind)[places].tolist()) for kind in order}
    columns |= {(name if name not in columns else f"{name} (file)"): cells for name, cells in details(subject, places).items()}
    caption = "Where more data would help most" if by == "removable" else "The noisiest rows"
    many = tied(values, float(values[places[-1]]))
    shown = tied(values[places], float(values[places[-1]]))
    note = f"{count(many, 'row')} share the last value; the first {shown} of them in the file stand here." if many > shown else ""
    return _of(caption, columns, first=MOST_UNCERTAIN, note=note)


KINDS = {"noise": "noise", "removable": "removable part"}


def details(subject: Subject, places: np.ndarray, *, in_columns: bool = True) -> dict[str, list[str]]:
    """What is known of some rows, by column: those of the file, prediction, target; if to stand in columns, an interval too."""
    told = texts if in_columns else lambda values: [text(value) for value in values]
    found = {str(name): told(values) for name, values in subject.others(places).items()}
    if subject.prediction is not None:
        found["prediction"] = told(subject.prediction[places].tolist())
    if in_columns and subject.ensemble is not None:
        mixture = subject.ensemble[places].mixture
        ends = numbers(np.concatenate([np.asarray(mixture.quantile(level)) for level in (0.05, 0.95)]).tolist())
        pairs = zip(ends[: len(places)], ends[len(places) :], strict=True)
        found[f"90{SPACE}% interval"] = [f"{low} to {high}" for low, high in pairs]
    if subject.target is not None:
        found[_free(subject.target_name, found)] = told(subject.target[places].tolist())
    return found


def _free(name: str, taken: Mapping[str, Any]) -> str:
    return name if name not in taken else f"{name} (target)"


def by_origin(subject: Subject, *, shares: bool) -> Table:
    """The parts of the known rows beside those of rows from outside, one line for each file."""
    every = {"known rows": (subject.noise, subject.removable)}
    every |= {f"from {origin(name)}": (each.noise, each.removable) for name, each in subject.elsewhere.items()}
    means = np.array([[part.mean() for part in both] for both in every.values()])
    cells: dict[str, Sequence[Any]] = {"rows": list(every), "how many": [f"{len(noise):,}" for noise, _ in every.values()]}
    if shares:
        cells["removable share"] = [percent(float(removable / (noise + removable))) for noise, removable in means]
    told, n = numbers([*means[:, 1], *means[:, 0], *means.sum(axis=1)], at=0.0), len(every)
    cells |= {"removable part": told[:n], "noise": told[n : 2 * n], "expected penalty": told[2 * n :]}
    note = "Means over the rows. The penalty is what the models expect, so it needs no targets."
    return _of("Known rows and rows from outside", cells, words=("rows",), note=note)


def thresholds(subject: Subject, measure: str, purpose: str, words: ErrorWords | None) -> Table:
    """From which value on rows are handed over if so many shall be, and what comes of it; errors if there are words for them."""
    values = subject.measures[measure]
    flags = list({each.count: each for share in SHARES for each in [flag(values, share)]}.values())
    told_by = measure_in_words(measure)
    unit = risk_unit(measure.partition(".")[0], subject.unit) if told_by else ""
    cells: dict[str, Sequence[Any]] = {
        "hand over": [percent(each.share) if each.tied else f"{100 * each.asked:.0f}{SPACE}%" for each in flags],
        f"threshold, {unit}" if unit else "threshold": [each.shortest.replace("-", MINUS) for each in flags],
        "rows": [f"{each.count:,}" for each in flags],
    }
    note = _ties(flags)
    if words is not None and subject.error is not None:
        means = [[_mean(subject.error[each.rows == handed]) for each in flags] for handed in (False, True)]
        told = numbers(np.ravel(words.shown(np.array(means))).tolist())
        cells |= {"error of rows kept": told[: len(flags)], "of rows handed over": told[len(flags) :]}
        whole = number(float(words.shown(subject.error.mean())))
        told_unit = f", in {words.unit}" if words.unit else ""
        note = " ".join(filter(None, (note, f"The error is the {words.name}{told_unit}; over all rows it is {whole}.")))
    for name, table in subject.outside.items():
        if measure in table:
            cells[f"caught from {origin(name)}"] = [percent(float((table[measure] >= each.threshold).mean())) for each in flags]
    return _of(f"{purpose}, by {f'{told_by} ({measure})' if told_by else measure}", cells, note=note)


def _ties(flags: Sequence[Flagged]) -> str:
    """Why less cannot be handed over, where rows tie."""
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


def of_result(result: Any, subject: Subject) -> Table | None:
    """What a task found, the best first; None for a result of which there is no table."""
    if isinstance(result, TaskResult):
        return _of_measures(result, _all_rows(subject) if result.task == "ood_detection" else subject.measures)
    if isinstance(result, RankCorrelation):
        groups = [sorted(group, key=_simple("selective_prediction")) for group in result.same_rankings()]
        groups.sort(key=len, reverse=True)
        if not groups:
            return None
        cells = {"measure": [Name.of(first, others) for first, *others in groups]}
        return _of(f"Measures whose orders of the rows are the same, or nearly (tau of {SAME} or more)", cells)
    rows = getattr(result, "summary", result.rows)()
    return _of("", {name: texts([row[name] for row in rows]) for name in rows[0]}) if rows else None


def _simple(task: str) -> Callable[[str], tuple[int, ...]]:
    return lambda name: simplicity(name, task)


def _all_rows(subject: Subject) -> dict[str, np.ndarray]:
    """Known rows and those from outside together: orders may differ there alone."""
    tables = [subject.measures, *subject.outside.values()]
    return {name: np.concatenate([table[name] for table in tables]) for name in subject.measures}


def _of_measures(result: TaskResult, columns: Mapping[str, np.ndarray]) -> Table:
    """A row for each order of the rows, under the name of the simplest measure that has it, the best first."""
    groups = rank_alike({name: columns[name] for name in sorted(result, key=_simple(result.task))})
    sign = -1.0 if result.higher_is_better else 1.0
    groups.sort(key=lambda group: sign * round(result[group[0]], 3))  # stable: of those shown as equal the simplest first
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
        f"{len(result)} measures put the rows in {len(groups)} different orders, of which each has a line."
        if (len(groups) < len(result))
        else ""
    )
    return _of(result.describe().title, cells, words=words, note=note)


def _three(value: float) -> str:
    return f"{value:.3f}".replace("-", MINUS)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, str) and (cell[:1] in f"{MINUS}<>0123456789" or cell in {"infinite", "unknown"} or "%" in cell)


def _of(
    caption: str, columns: Mapping[str, Sequence[Any]], *, first: int = FIRST, words: Sequence[str] = (), note: str = ""
) -> Table:
    heads = tuple(Column(name, numeric=name not in words and all(map(_is_number, cells))) for name, cells in columns.items())
    return Table(caption, heads, tuple(zip(*columns.values(), strict=True)), first, note)
