"""The tables of a report, as text in cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.measures.vocabulary import is_square, measure_in_words, risk_unit
from uqprism.plots.words import ErrorWords, from_set
from uqprism.report.findings import OOD, SELECTIVE, count_equal, mean_of
from uqprism.report.formatting import MINUS, SPACE, amount, count, exact, number, percent, same_decimals
from uqprism.report.subject import Rows, Subject, cut
from uqprism.support.numbers import TIMES
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
    """A measure in a cell, in words; others that order the rows alike follow.

    Attributes:
        name: of the measure, shown on request.
        words: for it; empty if the name is all there is.
        alike: the others.
    """

    name: str
    words: str
    alike: tuple[Name, ...] = ()

    @classmethod
    def of(cls, name: str, alike: Sequence[str] = ()) -> Name:
        """The cell of a measure."""
        return cls(name, measure_in_words(name), tuple(map(cls.of, alike)))


@dataclass(frozen=True)
class PageTable:
    """A table of texts; rows after the first few are hidden until asked for.

    Attributes:
        caption: what the table shows.
        columns: the headings.
        rows: a cell for each heading, a text or a name.
        first: how many rows are shown at once.
        note: a sentence below the table.
        measure: the name of the measure that the table is about, shown on request.
        name: its anchor, if something links to it.
        folded: whether it is hidden until asked for.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | Name, ...], ...]
    first: int = FIRST
    note: str = ""
    measure: str = ""
    name: str = ""
    folded: bool = False


def text(value: Any) -> str:
    """A value of a file as text, cut where it is long; numbers in up to five digits, which tell rows apart."""
    if isinstance(value, float) and 1e-4 <= abs(value) < 1e9:
        return exact(f"{Decimal(f'{value:.5g}'):f}")
    return cut(number(value) if isinstance(value, float) else value, LONGEST)


def texts(values: Sequence[Any]) -> list[str]:
    """The values of a column of a file as texts; numbers with as many decimals as the longest of them has."""
    shown = [text(value) for value in values]
    if not all(isinstance(value, float | np.floating) for value in values) or any(TIMES in each for each in shown):
        return shown
    decimals = max((len(each.partition(".")[2]) for each in shown), default=0)
    return [
        exact(f"{value:.{decimals}f}") if np.isfinite(value) and decimals else each
        for value, each in zip(values, shown, strict=True)
    ]


PARTS = {"bayes": "noise", "excess": "disagreement"}
MOST = {"bayes": "The rows with the most noise", "excess": "The rows with the most disagreement"}


def to_check(subject: Subject, places: Sequence[int], measure: str) -> PageTable:
    """The most uncertain rows by the measure that finds errors."""
    words = measure_in_words(measure) or measure
    columns = _columns(subject, np.asarray(places, dtype=np.intp), ("bayes", "excess"))
    many = f"{len(places)} rows" if len(places) > 1 else "row"
    caption = f"The {many} to check first, by {words}"
    return _table(caption, columns, first=len(places), measure=measure, name="check")


def most_uncertain(subject: Subject, by: str) -> PageTable:
    """The rows with the most noise (`bayes`) or disagreement (`excess`)."""
    values = getattr(subject, by)
    places = np.argsort(-values, kind="stable")[:MOST_UNCERTAIN]
    columns = _columns(subject, places, ("excess", "bayes") if by == "excess" else ("bayes", "excess"))
    many, shown = (count_equal(some, float(values[places[-1]])) for some in (values, values[places]))
    note = f"{count(many, 'row')} share the last value; the first {shown} of them in the file are shown." if many > shown else ""
    return _table(MOST[by], columns, first=MOST_UNCERTAIN, note=note, name=f"most-{PARTS[by]}", folded=True)


def _columns(subject: Subject, places: np.ndarray, order: Sequence[str]) -> dict[str, list[str]]:
    """The cells of these rows: what they are called, both parts, and what else is known."""
    unit = risk_unit(subject.pair.rule, subject.unit) if not is_square(subject.pair.rule) else subject.unit
    columns = {subject.id_name: [cut(each, LONGEST) for each in subject.ids_at(places)]} if subject.id_name else {}
    columns[_free("row", columns)] = [f"{row}" for row in subject.numbers[places]]
    for kind in order:
        columns[_free(_with(PARTS[kind], unit), columns)] = same_decimals(subject.shown(getattr(subject, kind)[places]).tolist())
    # A file may have a column called noise.
    for name, cells in details(subject, places).items():
        columns[name if name not in columns else f"{name} (file)"] = cells
    return columns


def details(subject: Subject, places: np.ndarray, *, in_columns: bool = True) -> dict[str, list[str]]:
    """What else is known of some rows: columns of the file, prediction, target, and in columns an interval."""
    unit = subject.unit

    def shown(values: np.ndarray) -> list[str]:
        return same_decimals(values[places].tolist()) if in_columns else [amount(float(value), unit) for value in values[places]]

    shows = texts if in_columns else lambda values: [text(value) for value in values]
    found = {str(name): shows(values) for name, values in subject.columns_at(places).items()}
    head = _with("{}", unit) if in_columns else "{}"
    if subject.prediction is not None:
        found[head.replace("{}", "prediction")] = shown(subject.prediction)
    if in_columns and subject.ensemble is not None:
        # Only of the rows shown: quantiles of a mixture are found by bisection.
        mixture = subject.ensemble[places].mixture
        ends = same_decimals(np.concatenate([to_numpy(mixture.quantile(level)) for level in (0.05, 0.95)]).tolist())
        pairs = zip(ends[: len(places)], ends[len(places) :], strict=True)
        found[head.replace("{}", f"90{SPACE}% interval")] = [f"{low} to {high}" for low, high in pairs]
    if subject.target is not None:
        name = head.replace("{}", subject.target_name or "target")
        found[name if name not in found else f"{name} (target)"] = shown(subject.target)  # it may be shown as a column already
    return found


def _with(name: str, unit: str) -> str:
    """A heading with the unit of the numbers below it."""
    return f"{name}{SPACE}({unit})" if unit else name


def _free(name: str, taken: Mapping[str, Any]) -> str:
    return name if name not in taken else f"{name} (of the report)"


def by_origin(subject: Subject, *, shares: bool) -> PageTable:
    """The parts of the known rows beside those of unfamiliar ones, a line for each file."""
    every: dict[str, Rows] = {"known rows": subject}
    every |= {from_set(name): rows for name, rows in subject.ood_pairs.items()}
    means = np.array([[mean_of(rows.bayes), mean_of(rows.excess)] for rows in every.values()])
    cells: dict[str, Sequence[Any]] = {"rows": list(every), "how many": [f"{rows.n_rows:,}" for rows in every.values()]}
    if shares:
        cells["share of disagreement"] = [percent(float(excess / (bayes + excess))) for bayes, excess in means]
    values = subject.shown(np.array([*means[:, 1], *means[:, 0], *means.sum(axis=1)])).tolist()
    shown, n = same_decimals(values, at=0.0), len(every)
    unit = subject.unit if is_square(subject.pair.rule) else risk_unit(subject.pair.rule, subject.unit)
    # One number of decimals for all, so that they can be compared.
    for place, name in enumerate(("disagreement", "noise", "uncertainty")):
        cells[_with(name, unit)] = shown[place * n : (place + 1) * n]
    note = "Means over the rows. The models expect this uncertainty, so it needs no targets."
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
        _with("threshold", unit): [exact(each.shortest) for each in flags],
        "rows": [f"{each.count:,}" for each in flags],
    }
    note = _ties(flags)
    if words is not None and subject.error is not None:
        means = [[_mean(subject.error[each.rows == handed]) for each in flags] for handed in (False, True)]
        shown = same_decimals(np.ravel(words.shown(np.array(means))).tolist())
        kept, handed = (_with(name, words.unit) for name in ("error of rows kept", "of rows handed over"))
        cells |= {kept: shown[: len(flags)], handed: shown[len(flags) :]}
        whole = amount(float(words.shown(mean_of(subject.error))), words.unit)
        note = " ".join(filter(None, (note, f"The error is the {words.name}; over all rows it is {whole}.")))
    for name, rows in subject.ood.items():
        if measure in rows.measures:
            caught = [float((rows.measures[measure] >= each.threshold).mean()) for each in flags]
            cells[f"caught {from_set(name)}"] = [percent(share) for share in caught]
    return _table(f"{purpose}, by {words_of or measure}", cells, note=note, measure=measure if words_of else "")


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
    return mean_of(values) if len(values) else np.nan


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
    return _table("", {name: _cells([row[name] for row in rows]) for name in rows[0]}) if rows else None


def _cells(values: Sequence[Any]) -> list[str]:
    """The values of a column; numbers have one number of decimals unless all are whole."""
    numeric = all(isinstance(value, float | int | np.floating | np.integer) for value in values)
    if numeric and any(isinstance(value, float | np.floating) for value in values):
        return same_decimals([float(value) for value in values])
    return [text(value) for value in values]


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
    caption: str, columns: Mapping[str, Sequence[Any]], *, words: Sequence[str] = (), first: int = FIRST, **about: Any
) -> PageTable:
    heads = tuple(Column(name, numeric=name not in words and all(map(_is_number, cells))) for name, cells in columns.items())
    return PageTable(caption, heads, tuple(zip(*columns.values(), strict=True)), first, **about)
