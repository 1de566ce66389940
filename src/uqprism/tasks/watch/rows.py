"""What is watched of each row: noise, disagreement and, once the outcome is known, penalty and calibration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from uqprism.adapters import from_frame
from uqprism.arrays import is_array, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.columns import Columns, NoMembersError
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError, ShapeError
from uqprism.evaluation import evaluate
from uqprism.registry import unknown
from uqprism.rules import CRPS, Quadratic, Rule, SquaredError
from uqprism.rules.kernel import KernelRule
from uqprism.tasks.calibration import calibration
from uqprism.tasks.recalibration import Recalibration, mean_scores
from uqprism.tasks.scores import is_table

HALVES = (CRPS, KernelRule, Quadratic, SquaredError)
UNSEEN = -1  # the group of rows whose group the reference does not have


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with one number per quantity, (rows,) each.

    Attributes:
        bayes: the Bayes risk; NaN in bad rows.
        excess: the excess risk; NaN in bad rows.
        penalty: the score of the prediction; NaN where the outcome is not known.
        calibration: the probability that was predicted of values up to the outcome; NaN where that is not known.
        group: the place of the group among those of the reference, `UNSEEN` for others.
        number: the place of the row, among those that were read with it or, once it is watched, among all.
    """

    bayes: np.ndarray
    excess: np.ndarray
    penalty: np.ndarray
    calibration: np.ndarray
    group: np.ndarray
    number: np.ndarray

    def __len__(self) -> int:
        return len(self.bayes)

    def __getitem__(self, part: Any) -> Rows:
        return Rows(*(getattr(self, each.name)[part] for each in fields(self)))

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """All of them, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return Rows(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Rows)))

    @property
    def good(self) -> np.ndarray:
        """Whether noise and disagreement of a row are numbers, (rows,)."""
        return ~(np.isnan(self.bayes) | np.isnan(self.excess))


@dataclass(frozen=True)
class Reader:
    """How rows are read from what a watch is given.

    Attributes:
        rule: the scoring rule.
        groups: the column of the groups, or None.
        target: the column of the outcomes, or None.
        recalibration: what is applied to predictions before they are scored, or None.
        columns: which columns hold the members.
        names: the groups of the reference, in order.
    """

    rule: Rule
    groups: str | None = None
    target: str | None = None
    recalibration: Recalibration | None = None
    columns: Columns = field(default_factory=Columns)
    names: tuple[str, ...] = ()

    @property
    def measures(self) -> tuple[str, str]:
        """The measures of noise and disagreement."""
        return f"{self.rule.name}.bayes.members", f"{self.rule.name}.excess.members.members"

    def read(self, given: Any, target: Any = None, groups: Any = None, argument: str = "batch") -> Rows:
        """The rows of an ensemble, or of a table with columns of measures or of members."""
        ensemble: EnsemblePrediction | None = None
        if isinstance(given, EnsemblePrediction):
            ensemble = given.flat()
        elif is_table(given):
            target = _column(given, self.target) if target is None and self.target is not None else target
            groups = _column(given, self.groups) if groups is None and self.groups is not None else groups
            if not self.scored(names_of(given), target):
                ensemble = self._members(given, argument)
        else:
            raise ArgumentError(
                f"{argument} must be an EnsemblePrediction, a MeasureTable or a table with columns of members or measures, got "
                f"{type(given).__name__}"
            )
        table = given
        if ensemble is not None:
            ensemble = ensemble if self.recalibration is None else self.recalibration.apply(ensemble)
            table = evaluate(ensemble, list(self.measures))
        bayes, excess = (floats(table[name], name) for name in self.measures)
        if len(bayes) != len(excess):
            raise ShapeError(f"{argument} must have columns of one length, got {len(bayes)} and {len(excess)}")
        penalty, pit = self._outcomes(ensemble, target, len(bayes), argument)
        group = self.read_groups(groups, len(bayes), argument)
        return Rows(bayes, excess, penalty, pit, group, np.arange(len(bayes)))

    def scored(self, names: Collection[str], target: Any) -> bool:
        """Whether the measures are taken from a table with these columns; outcomes and recalibration need the members."""
        return set(self.measures) <= set(names) and target is None and self.recalibration is None

    def _members(self, table: Any, argument: str) -> EnsemblePrediction:
        own = self.columns
        chosen = {"mean_columns": own.mean, "variance_columns": own.variance, "scale_columns": own.scale}
        try:
            return from_frame(table, family=own.family, **chosen)
        except NoMembersError:
            if set(self.measures) <= set(names_of(table)):
                raise no_members(argument) from None
            raise ArgumentError(
                f"{argument} has neither members nor the columns {' and '.join(self.measures)}; score it first"
            ) from None

    def _outcomes(
        self, ensemble: EnsemblePrediction | None, target: Any, count: int, argument: str
    ) -> tuple[np.ndarray, np.ndarray]:
        penalty, pit = np.full((2, count), np.nan)
        if target is None:
            return penalty, pit
        if ensemble is None:
            raise no_members(argument)
        y = floats(target, "target")
        if len(y) != count:
            raise ShapeError(
                f"target must have one value for each of the {count:,} rows, got {len(y):,}; NaN where not known yet"
            )
        known = np.isfinite(y)
        if known.any():
            part = ensemble[known]
            penalty[known] = mean_scores(part, y[known], self.rule)
            pit[known] = calibration(part, y[known]).pit
        return penalty, pit

    def read_groups(self, groups: Any, count: int, argument: str) -> np.ndarray:
        """The place of the group of each row."""
        if groups is None:
            if self.names:
                raise ArgumentError(f"{argument} lacks the groups that the reference has; pass groups=, one for each row")
            return np.full(count, UNSEEN)
        found = codes(groups, self.names)
        if len(found) != count:
            raise ShapeError(f"groups must have one value for each of the {count:,} rows, got {len(found):,}")
        return found

    def with_groups(self, given: Any, groups: Any) -> Reader:
        """The same with the groups of this reference."""
        if groups is None and self.groups is not None:
            groups = _column(given, self.groups) if is_table(given) else None
            if groups is None:
                raise ArgumentError(
                    f"groups={self.groups!r} names a column, but the reference is no table; pass one value per row"
                )
        return self if groups is None else replace(self, names=tuple(sorted(set(texts(groups)[0]))))

    def expected(self, rows: Rows) -> np.ndarray:
        """What the models expect the prediction of each row to cost, (rows,).

        For scores that are squared distances, the average of all models disagrees with a model half as much as two models do, so
        this is exact. For others it is the total risk between members, which the calibration scales.
        """
        return rows.bayes + (0.5 if isinstance(self.rule, HALVES) else 1.0) * rows.excess

    def share(self, rows: Rows) -> np.ndarray:
        """How much of the uncertainty is disagreement, which does not move when the world gets noisier in all places alike."""
        if self.rule.may_be_negative:  # such as the log score, whose excess has no unit
            return rows.excess
        total = rows.bayes + rows.excess
        with np.errstate(invalid="ignore"):  # infinite risks
            return np.where(total > 0.0, rows.excess / np.where(total > 0.0, total, 1.0), 0.0)


def no_members(argument: str) -> ArgumentError:
    """The error for a table of measures where members are needed."""
    return ArgumentError(f"{argument} has measures but no members, which outcomes and recalibration need; pass predictions")


def codes(groups: Any, names: Sequence[str]) -> np.ndarray:
    """The place of each group among these names."""
    found, places = texts(groups)
    known = {name: i for i, name in enumerate(names)}
    return np.array([known.get(text, UNSEEN) for text in found], dtype=np.int64)[places]


def texts(groups: Any) -> tuple[list[str], np.ndarray]:
    """The different groups as texts, and which of them each row has."""
    if hasattr(groups, "dictionary_encode"):  # an Arrow column, for which this is much quicker
        coded = groups.combine_chunks() if hasattr(groups, "combine_chunks") else groups
        coded = coded if hasattr(coded, "dictionary") else coded.dictionary_encode(null_encoding="encode")
        if hasattr(coded, "dictionary"):
            return [str(each) for each in coded.dictionary.to_pylist()], coded.indices.to_numpy(zero_copy_only=False)
    values = np.asarray(groups)
    values = (
        values.reshape(-1) if values.dtype.kind in "biuU" else np.array([str(each) for each in values.reshape(-1)], dtype=str)
    )
    found, places = np.unique(values, return_inverse=True)
    return [str(each) for each in found.tolist()], places


def names_of(table: Any) -> list[str]:
    """The names of the columns."""
    for attribute in ("column_names", "columns"):
        if hasattr(table, attribute):
            return [str(name) for name in getattr(table, attribute)]
    return [str(name) for name in table]


def _column(table: Any, name: str) -> Any:
    if name not in names_of(table):
        raise InvalidValueError(str(unknown("column", name, names_of(table))))
    return table[name]


def floats(values: Any, argument: str) -> np.ndarray:
    """Real numbers as a flat array, NaN where one is missing."""
    if hasattr(values, "isna") and hasattr(values, "to_numpy"):  # pandas, whose missing values are of several kinds
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan)).reshape(-1)
    if hasattr(values, "to_numpy"):  # Arrow, Polars
        found = (
            values.to_numpy() if not hasattr(values, "null_count") or not hasattr(values, "buffers") else values.to_numpy(False)
        )
    else:
        found = to_numpy(values) if is_array(values) else np.asarray(values)
    found = np.asarray(found).reshape(-1)
    if found.dtype.kind not in "fiub":
        raise ArrayTypeError(f"{argument} must be real numbers, got dtype {found.dtype}; convert it to float first")
    return found.astype(np.float64, copy=False)
