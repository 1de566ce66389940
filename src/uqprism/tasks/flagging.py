"""A threshold for production: which rows are so uncertain that somebody should look at them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.registry import unknown
from uqprism.tasks.recommendation import recommend
from uqprism.tasks.scores import as_scores


@dataclass(frozen=True, eq=False)
class Flagged:
    """Rows at or above a threshold; a new row is flagged likewise if `uncertainty >= threshold`.

    Attributes:
        rows: whether each row is flagged, (rows,).
        threshold: the least uncertainty that is.
        measure: whose threshold it is.
    """

    rows: np.ndarray
    threshold: float
    measure: str

    @property
    def count(self) -> int:
        """How many are flagged."""
        return int(self.rows.sum())

    def __repr__(self) -> str:
        return f"<Flagged: {self.count:,} of {len(self.rows):,} rows, {self.measure} >= {self.threshold:.6g}>"


def flag(table: Any, share: float = 0.1, *, measure: object = None) -> Flagged:
    """The most uncertain rows and the threshold they are above: this share of the rows, rounded up to whole ones.

    Rows as uncertain as the last that is flagged are flagged too, so that the threshold alone decides, here and on new rows.

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
    count = math.ceil(share * len(values) - 1e-9)  # 7 % of 100 rows are 7, however 0.07 is rounded
    threshold = float(np.partition(values, -count)[-count])
    return Flagged(values >= threshold, threshold, name)
