"""Tables of a report, as text in cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.report.subject import Subject
from uqprism.report.words import measure_in_words, number
from uqprism.tasks.rank_correlation import RankCorrelation
from uqprism.tasks.result import TaskResult

MOST_UNCERTAIN = 10
FIRST = 8
NAMED = 6
LONGEST = 60  # characters of a cell


@dataclass(frozen=True)
class Column:
    """A heading, and whether numbers stand under it."""

    title: str
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """Rows of text; those after the first few are folded away.

    Attributes:
        caption: what it shows.
        columns: the headings.
        rows: as many cells each; one of two texts is a name and what it means.
        first: how many rows are open.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | tuple[str, str], ...], ...]
    first: int = FIRST


def text(value: Any) -> str:
    """Any value of a file, short."""
    if value is None:
        return ""
    told = number(float(value)) if isinstance(value, float | np.floating) else str(value)
    return told if len(told) <= LONGEST else told[: LONGEST - 1] + "…"


def most_uncertain(subject: Subject, by: str) -> Table:
    """The rows with the most noise (`noise`), or with the most that data would remove (`removable`)."""
    values = getattr(subject, by)
    places = np.argsort(-values, kind="stable")[:MOST_UNCERTAIN]
    order = ("removable", "noise") if by == "removable" else ("noise", "removable")
    columns = {"row": [f"{row}" for row in subject.numbers[places]]}
    columns |= {KINDS[kind]: [number(float(x)) for x in getattr(subject, kind)[places]] for kind in order}
    columns |= {(name if name not in columns else f"{name} (file)"): cells for name, cells in details(subject, places).items()}
    caption = "Where more data would help most" if by == "removable" else "The noisiest rows"
    return _of(caption, columns, first=MOST_UNCERTAIN)


KINDS = {"noise": "noise", "removable": "removable part"}


def details(subject: Subject, places: np.ndarray, *, interval: bool = True) -> dict[str, list[str]]:
    """What is known of some rows, by column: those of the file, prediction, interval, target."""
    found = {str(name): [text(value) for value in values] for name, values in subject.others(places).items()}
    if subject.prediction is not None:
        found["prediction"] = [number(float(x)) for x in subject.prediction[places]]
    if interval and subject.ensemble is not None:
        mixture = subject.ensemble[places].mixture
        ends = zip(*(np.asarray(mixture.quantile(level)) for level in (0.05, 0.95)), strict=True)
        found["90 % interval"] = [f"{number(float(low))} to {number(float(high))}" for low, high in ends]
    if subject.target is not None:
        found[_free(subject.target_name, found)] = [number(float(x)) for x in subject.target[places]]
    return found


def _free(name: str, taken: Mapping[str, Any]) -> str:
    return name if name not in taken else f"{name} (target)"


def of_result(result: Any) -> Table | None:
    """What a task found, the best first; None for a result of which there is no table."""
    if isinstance(result, TaskResult):
        return _of_measures(result)
    if isinstance(result, RankCorrelation):
        rows = [row for row in result.summary() if row["measures"] > 1]
        if not rows:
            return None
        cells = {
            "measures": [str(row["measures"]) for row in rows],
            "order the rows alike": [_listed(row["rank_alike"]) for row in rows],
        }
        return _of("Measures with the same order of the rows", cells, words=("order the rows alike",))
    rows = getattr(result, "summary", result.rows)()
    return _of("", {name: [text(row[name]) for row in rows] for name in rows[0]}) if rows else None


def _listed(names: str) -> str:
    """The first few of many names."""
    every = names.split(", ")
    return names if len(every) <= NAMED else f"{', '.join(every[:NAMED])} and {len(every) - NAMED} more"


def _of_measures(result: TaskResult) -> Table:
    from uqprism.report.figures.words import explained

    names = result.ranked()
    cells: dict[str, Sequence[Any]] = {"measure": [(name, measure_in_words(name)) for name in names]}
    cells[_short(result.metric)] = [f"{result[name]:.3f}" for name in names]
    if result.has_spread:
        ends, good = result.interval(), set(result.not_worse())
        cells["95 % interval"] = ["{:.3f} to {:.3f}".format(*ends[name]) for name in names]
        cells["as good as the best"] = ["yes" if name in good else "no" for name in names]
    for part in result.parts:
        cells[part] = [f"{result.parts[part][name]:.3f}" for name in names]
    better = "higher" if result.higher_is_better else "lower"
    words = ("measure", "as good as the best")
    return _of(f"{explained(result.metric)}; {better} is better", cells, words=words)


def _short(metric: str) -> str:
    from uqprism.report.figures.words import short

    return short(metric)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, str) and (cell[:1] in "-0123456789" or cell in {"infinite", "unknown"})


def _of(caption: str, columns: Mapping[str, Sequence[Any]], *, first: int = FIRST, words: Sequence[str] = ()) -> Table:
    heads = tuple(Column(name, numeric=name not in words and all(map(_is_number, cells))) for name, cells in columns.items())
    return Table(caption, heads, tuple(zip(*columns.values(), strict=True)), first)
