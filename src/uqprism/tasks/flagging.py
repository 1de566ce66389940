"""A threshold for production: the most uncertain rows, to be reviewed, and why they are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from typing import Any, Protocol

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import unknown_measure
from uqprism.tasks.reasons import KINDS, Reasons, available_parts, risk_of
from uqprism.tasks.scores import as_scores
from uqprism.tasks.task import recommend

SHARE = 0.1  # unless something else is asked for
ROUNDING = 1e-12  # relative: values that are equal on paper differ by less
FEWEST_DIGITS, MOST_DIGITS = 3, 17  # 17 digits write any double exactly


@dataclass(frozen=True, eq=False)
class Flagged:
    """Rows at or above a threshold; a new row is flagged if `uncertainty >= threshold`.

    Attributes:
        rows: whether each row is flagged, (rows,).
        threshold: the lowest uncertainty that is flagged.
        measure: the column that the threshold is for.
        asked: the share of the rows that was requested.
        below: the highest uncertainty that is not flagged; minus infinity if all rows are.
        reasons: why each flagged row is uncertain, in words, (rows,), empty for the others; None where the table has no columns
            of noise and disagreement.
    """

    rows: np.ndarray
    threshold: float
    measure: str
    asked: float
    below: float
    reasons: np.ndarray | None = None

    @property
    def count(self) -> int:
        """The number of flagged rows."""
        return int(self.rows.sum())

    @property
    def share(self) -> float:
        """The share of the rows that is flagged; more than requested where rows tie."""
        return self.count / len(self.rows)

    @property
    def tied(self) -> bool:
        """Whether more rows are flagged than requested, because several share the last value."""
        return self.count > whole_rows(self.asked, len(self.rows))

    @property
    def counts(self) -> dict[str, int]:
        """How many rows are flagged for noise, for disagreement, and as unfamiliar; empty without reasons."""
        if self.reasons is None:
            return {}
        told = self.reasons[self.rows].tolist()
        return {kind: sum(text.startswith(kind) for text in told) for kind in KINDS}

    @property
    def shortest(self) -> str:
        """The threshold in the fewest digits, at least three, that flag the same of these rows."""
        return shortest(self.threshold, self.below)

    def __repr__(self) -> str:
        ties = f", {self.asked:.3g} asked for: ties allow no fewer" if self.tied else ""
        text = f"{self.count:,} of {len(self.rows):,} rows (share {self.share:.3g}{ties})"
        return f"<Flagged: {text}, {self.measure} >= {self.shortest}>"


class Uncertainties(Protocol):
    """Uncertainties of all rows, none NaN, in memory or in a file."""

    def __len__(self) -> int:
        """How many rows."""

    def largest(self, count: int) -> float:
        """The value that so many rows reach or exceed, 1 to all."""

    def chunks(self) -> Iterator[np.ndarray]:
        """All values, in the order of the rows."""


@dataclass(frozen=True)
class Wanted:
    """How many rows to flag: a share of them, those from a value on, or a number. One of the three is not None.

    Attributes:
        share: of the rows, rounded up to whole ones, with all that equal the last one.
        above: the threshold itself.
        budget: exactly so many rows, or all; of rows that equal the last one, the first in order.
    """

    share: float | None = None
    above: float | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        given = {name: x for name, x in vars(self).items() if x is not None}
        if len(given) > 1:
            raise ArgumentError(
                f"flag takes one of share (--share), above (--above) and budget (--budget), got {' and '.join(given)}"
            )
        if not given:
            object.__setattr__(self, "share", SHARE)
        if self.share is not None and not 0.0 < self.share <= 1.0:
            raise InvalidValueError(f"share must be above 0 and up to 1, got {self.share}; 0.1 flags the most uncertain tenth")
        if self.budget is not None and (self.budget != int(self.budget) or self.budget < 1):
            raise InvalidValueError(f"budget must be a whole number of rows, at least 1, got {self.budget}")
        if self.above is not None and math.isnan(self.above):
            raise InvalidValueError("above must be a number, got NaN")

    def threshold(self, values: Uncertainties) -> Threshold:
        """The threshold for these rows."""
        n_rows = len(values)
        if self.above is not None:
            return Threshold(float(self.above), *_beside(values, float(self.above)), None)
        if self.budget is not None:
            last = values.largest(min(int(self.budget), n_rows))
            below, above = _beside(values, last, strictly=True)
            return Threshold(last, below, above, min(int(self.budget), n_rows) - above)
        last = values.largest(whole_rows(self.share or SHARE, n_rows))
        # An infinite value has no values next to it, and infinity less infinity is NaN.
        least = last - ROUNDING * abs(last) if math.isfinite(last) else last
        threshold = min((float(part[part >= least].min(initial=np.inf)) for part in values.chunks()), default=last)
        return Threshold(threshold, *_beside(values, threshold), None)


@dataclass(frozen=True)
class Threshold:
    """A threshold, and what lies beside it.

    Attributes:
        value: the threshold.
        below: the highest value that is not flagged.
        above: how many rows are above it, or at it too if ties are None.
        ties: how many of the rows at the threshold are flagged, the first in order; None for all.
    """

    value: float
    below: float
    above: int
    ties: int | None

    def select(self, values: np.ndarray, tied_before: int = 0) -> tuple[np.ndarray, int]:
        """Which of these rows are flagged, and how many rows at the threshold there were up to here."""
        if self.ties is None:
            return values >= self.value, 0
        at = values == self.value
        place = tied_before + np.cumsum(at)
        return (values > self.value) | (at & (place <= self.ties)), tied_before + int(at.sum())


def flag(
    table: Any,
    share: float | None = None,
    *,
    above: float | None = None,
    budget: int | None = None,
    measure: object = None,
) -> Flagged:
    """Flag the most uncertain rows, and give the threshold for new rows: a share of them, those above a value, or a number.

    With `share`, that part of all rows is flagged, rounded up to whole rows; rows that equal the last flagged one up to rounding
    are flagged too, so that the threshold alone decides, here and on new rows, and `share` of the result is the share reached.
    With `above`, all rows at or above that value. With `budget`, exactly so many rows; of those that equal the last, the first.

    Where the table has columns of noise and disagreement, the result says why each row is flagged, see
    `uqprism.tasks.reasons.Reasons`.

    For files, also larger than memory, use `uqprism flag`, or `uqprism.files.flag`.

    Args:
        table: measures of each row (a `MeasureTable`, a mapping, a data frame), or one array of uncertainties.
        share: of the rows, above 0 and up to 1; by default 0.1.
        above: the threshold, in the units of the measure.
        budget: how many rows can be reviewed.
        measure: a column of the table; by default the only one, or else the one that `recommend("selective_prediction")` names.
    """
    wanted = Wanted(share, above, budget)
    columns = as_scores(table, fewest=1).columns
    name = _measure(measure, list(columns))
    values = columns[name]
    found = wanted.threshold(InMemory(values))
    rows, _ = found.select(values)
    parts = available_parts(name, columns)
    reasons = None if parts is None else _reasons(columns[parts[0]], columns[parts[1]], rows, risk_of(name))
    asked = float(rows.mean()) if share is None and (above is not None or budget is not None) else wanted.share or SHARE
    return Flagged(rows, found.value, name, asked, found.below, reasons)


def _measure(measure: object, names: list[str]) -> str:
    """The column to go by."""
    advised = recommend("selective_prediction").measure
    name = str(measure) if measure is not None else names[0] if len(names) == 1 else advised
    if name not in names:
        if measure is None:
            raise ArgumentError(f"measure= must say which of {len(names)} columns to go by, since {advised!r} is not there")
        raise unknown_measure("in this table", name, names)
    return name


def _reasons(noise: np.ndarray, disagreement: np.ndarray, rows: np.ndarray, risk: str) -> np.ndarray:
    told = np.full(len(rows), "", dtype=object)
    usual = Reasons(float(np.median(noise)), float(np.median(disagreement)), risk)
    told[rows] = usual.sentences(noise[rows], disagreement[rows])
    return told


@dataclass(frozen=True)
class InMemory:
    """Uncertainties in an array."""

    values: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def largest(self, count: int) -> float:
        """The value that so many rows reach or exceed."""
        return float(np.partition(self.values, -count)[-count])  # the whole order is not needed

    def chunks(self) -> Iterator[np.ndarray]:
        """All values."""
        yield self.values


def shortest(threshold: float, below: float) -> str:
    """A threshold in the fewest digits, at least three, that separate it from the highest value that is not flagged."""
    if not math.isfinite(threshold):
        return repr(threshold)
    for digits in range(FEWEST_DIGITS, MOST_DIGITS):
        text = f"{Context(digits, ROUND_FLOOR).create_decimal(threshold):f}"
        if below < float(text) <= threshold:
            return text.rstrip("0").rstrip(".") if "." in text else text
    return repr(threshold)


def _beside(values: Uncertainties, threshold: float, *, strictly: bool = False) -> tuple[float, int]:
    """The highest value below the threshold, and how many rows reach it, or with `strictly` exceed it."""
    below, count = -np.inf, 0
    for part in values.chunks():
        under = part < threshold
        below = max(below, float(part[under].max(initial=-np.inf)))
        count += int((part > threshold).sum()) if strictly else len(part) - int(under.sum())
    return below, count


def whole_rows(share: float, n_rows: int) -> int:
    """How many rows a share is, rounded up."""
    return math.ceil(share * n_rows - 1e-9)  # 7 % of 100 rows are 7, however 0.07 is rounded
