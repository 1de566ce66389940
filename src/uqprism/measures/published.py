"""The numbers in the paper's tables, under the names of our measures.

The tables index measures by (truth, prediction), unlike the paper's definitions. They also print the column `excess 2,1` equal to
`excess 1,1` for every rule, though by definition they differ: by a factor of two, or, under the log score, in the order of the
points. `printed_as` says which measure a column really shows; compare like with like by it.
"""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from uqprism.errors import ArgumentError
from uqprism.measures.catalogue import catalogue
from uqprism.measures.measure import Measure
from uqprism.registry import unknown

RULES = {"CRPS": "crps", "Log": "log", "SE": "squared_error", "Quad.": "quadratic"}
SYMBOLS = {"total": "tot", "bayes": "Bayes", "excess": "exc"}
BASELINE = "random"  # a column of the active-learning table that is no measure


class Cell(NamedTuple):
    """A number of the paper and the standard deviation printed with it."""

    value: float
    spread: float


Table = dict[str, Cell]


def tables() -> list[str]:
    """The names of the tables."""
    return list(_stored())


def rows(name: str) -> list[str]:
    """The data sets of a table that has a block for each, such as `ood_detection_full`; none for a table of means."""
    return list(_blocks(name)) if name.endswith("_full") else []


def table(name: str, row: str | None = None) -> Table:
    """The cells of a table by the name of our measure; those that the paper leaves blank are not in it.

    Args:
        name: one of `tables()`.
        row: one of `rows(name)`, for a table that has them.
    """
    block = _blocks(name)
    if (row is None) == bool(rows(name)):
        raise ArgumentError(f"table {name!r} has {'no rows' if row else 'rows of its own'}: choose from {rows(name) or 'none'}")
    if row is not None:
        if row not in block:
            raise unknown(f"row of the table {name}", row, block)
        block = block[row]
    return {
        measure_of(rule, column): Cell(*cell)
        for rule, columns in block.items()
        for column, cell in columns.items()
        if cell is not None
    }


def measure_of(rule: str, column: str) -> str:
    """The name of our measure in this row and column of a table: `CRPS`, `total 3a,1` is `crps.total.members.matched`."""
    if column == BASELINE:
        return BASELINE
    risk, indices = column.split()
    return _by_label()[RULES[rule], f"R_{SYMBOLS[risk]}^{{{indices}}}"]


def measures(rules: tuple[str, ...] = tuple(RULES.values())) -> list[Measure]:
    """The measures that have a column in the paper, also where the cell is blank: 16 for each rule, in the paper's order."""
    # The other tables have the same columns; that of active learning also has BASELINE.
    columns = next(iter(_stored()["ood_detection_mean"].values()))
    short = {name: rule for rule, name in RULES.items()}
    return [Measure.parse(measure_of(short[rule], column)) for rule in rules for column in columns]


def printed_as(measure: str) -> str:
    """The measure whose numbers the tables show under this one's label: itself, but `excess 1,1` for `excess 2,1`."""
    found = Measure.parse(measure) if measure != BASELINE else None
    # The column `excess 2,1` in the tables' order (truth, prediction).
    if found is not None and (found.risk, found.prediction, found.truth) == ("excess", "members", "mixture"):
        return dataclasses.replace(found, truth="members").name
    return measure


def label(measure: str) -> str:
    """How the tables write it, without the rule: R_exc^{3a,1}."""
    return measure if measure == BASELINE else Measure.parse(measure).paper_label(order="truth,prediction")


@cache
def _stored() -> dict[str, Any]:
    return json.loads((files("uqprism.measures") / "paper_tables.json").read_text())


def _blocks(name: str) -> dict[str, Any]:
    if name not in _stored():
        raise unknown("table of the paper", name, _stored())
    return _stored()[name]


@cache
def _by_label() -> dict[tuple[str, str], str]:
    return {(each.rule, each.paper_label(order="truth,prediction")): each.name for each in catalogue(list(RULES.values()))}
