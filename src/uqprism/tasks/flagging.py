"""A threshold for production: which rows are so uncertain that somebody should look at them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.registry import unknown
from uqprism.tasks.scores import as_scores
from uqprism.tasks.task import recommend

ROUNDING = 1e-12  # relative: values that are equal on paper differ by less
FEWEST_DIGITS, MOST_DIGITS = 3, 17


@dataclass(frozen=True, eq=False)
class Flagged:
    """Rows at or above a threshold; a new row is flagged likewise if `uncertainty >= threshold`.

    Attributes:
        rows: whether each row is flagged, (rows,).
        threshold: the least uncertainty that is.
        measure: whose threshold it is.
        asked: the share of the rows that was asked for.
        below: the highest uncertainty that is not flagged; minus infinity if all rows are.
    """

    rows: np.ndarray
    threshold: float
    measure: str
    asked: float
    below: float

    @property
    def count(self) -> int:
        """How many are flagged."""
        return int(self.rows.sum())

    @property
    def share(self) -> float:
        """The share of the rows that is flagged: more than was asked for where rows tie."""
        return self.count / len(self.rows)

    @property
    def tied(self) -> bool:
        """Whether more rows are flagged than were asked for, because the last of them share their value."""
        return self.count > _whole_rows(self.asked, len(self.rows))

    @property
    def shortest(self) -> str:
        """The threshold in as few digits, at least three, as still flag the very same of these rows."""
        for digits in range(FEWEST_DIGITS, MOST_DIGITS):
            told = f"{Context(digits, ROUND_FLOOR).create_decimal(self.threshold):f}"
            if self.below < float(told) <= self.threshold:
                return told.rstrip("0").rstrip(".") if "." in told else told
        return repr(self.threshold)

    def __repr__(self) -> str:
        ties = f", {self.asked:.3g} asked for: ties allow no fewer" if self.tied else ""
        told = f"{self.count:,} of {len(self.rows):,} rows (share {self.share:.3g}{ties})"
        return f"<Flagged: {told}, {self.measure} >= {self.shortest}>"


def flag(table: Any, share: float = 0.1, *, measure: object = None) -> Flagged:
    """The most uncertain rows and the threshold they are above: this share of the rows, rounded up to whole ones.

    Rows as uncertain as the last that is flagged, up to rounding, are flagged too, so that the threshold alone decides, here
    and on new rows; `share` of the result is what is reached.

    Args:
        table: measures of each row (a `MeasureTable`, a mapping, a data frame), or one array of uncertainties.
        share: of the rows, above 0 and up to 1.
        measure: a column of the table; by default the only one, or else the one `recommend("selective_prediction")` names.
    """
    if not 0.0 < share <= 1.0:
        raise InvalidValueError(f"share must be above 0 and up to 1, got {share}; 0.1 flags the most uncertain tenth")
    columns = as_scores(table, fewest=1).columns
    advised = recommend("selective_prediction").measure
    name = str(measure) if measure is not None else next(iter(columns)) if len(columns) == 1 else advised
    if name not in columns:
        if measure is None:
            raise ArgumentError(f"measure= must say which of {len(columns)} columns to go by, since {advised!r} is not there")
        raise unknown("measure in this table", name, columns)
    values = columns[name]
    count = _whole_rows(share, len(values))
    last = np.partition(values, -count)[-count]
    threshold = float(values[values >= last - ROUNDING * abs(last)].min()) if np.isfinite(last) else float(last)
    rows = values >= threshold
    return Flagged(rows, threshold, name, share, float(values[~rows].max(initial=-np.inf)))


def _whole_rows(share: float, n_rows: int) -> int:
    return math.ceil(share * n_rows - 1e-9)  # 7 % of 100 rows are 7, however 0.07 is rounded
