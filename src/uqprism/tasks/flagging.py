"""A threshold for production: the most uncertain rows, to be reviewed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import unknown_measure
from uqprism.tasks.scores import as_scores
from uqprism.tasks.task import recommend

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
    """

    rows: np.ndarray
    threshold: float
    measure: str
    asked: float
    below: float

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
        return self.count > _whole_rows(self.asked, len(self.rows))

    @property
    def shortest(self) -> str:
        """The threshold in the fewest digits, at least three, that flag the same of these rows."""
        for digits in range(FEWEST_DIGITS, MOST_DIGITS):
            text = f"{Context(digits, ROUND_FLOOR).create_decimal(self.threshold):f}"
            if self.below < float(text) <= self.threshold:
                return text.rstrip("0").rstrip(".") if "." in text else text
        return repr(self.threshold)

    def __repr__(self) -> str:
        ties = f", {self.asked:.3g} asked for: ties allow no fewer" if self.tied else ""
        text = f"{self.count:,} of {len(self.rows):,} rows (share {self.share:.3g}{ties})"
        return f"<Flagged: {text}, {self.measure} >= {self.shortest}>"


def flag(table: Any, share: float = 0.1, *, measure: object = None) -> Flagged:
    """Flag the most uncertain rows, this share of all rounded up to whole rows, and give the threshold for new rows.

    Rows that equal the last flagged one up to rounding are flagged too, so that the threshold alone decides, here and on new
    rows; `share` of the result is the share reached.

    Args:
        table: measures of each row (a `MeasureTable`, a mapping, a data frame), or one array of uncertainties.
        share: of the rows, above 0 and up to 1.
        measure: a column of the table; by default the only one, or else the one that `recommend("selective_prediction")` names.
    """
    if not 0.0 < share <= 1.0:
        raise InvalidValueError(f"share must be above 0 and up to 1, got {share}; 0.1 flags the most uncertain tenth")
    columns = as_scores(table, fewest=1).columns
    advised = recommend("selective_prediction").measure
    name = str(measure) if measure is not None else next(iter(columns)) if len(columns) == 1 else advised
    if name not in columns:
        if measure is None:
            raise ArgumentError(f"measure= must say which of {len(columns)} columns to go by, since {advised!r} is not there")
        raise unknown_measure("in this table", name, columns)
    values = columns[name]
    count = _whole_rows(share, len(values))
    last = np.partition(values, -count)[-count]  # the whole order is not needed
    # An infinite value has no values next to it, and infinity less infinity is NaN.
    threshold = float(values[values >= last - ROUNDING * abs(last)].min()) if np.isfinite(last) else float(last)
    rows = values >= threshold
    return Flagged(rows, threshold, name, share, float(values[~rows].max(initial=-np.inf)))


def _whole_rows(share: float, n_rows: int) -> int:
    return math.ceil(share * n_rows - 1e-9)  # 7 % of 100 rows are 7, however 0.07 is rounded
