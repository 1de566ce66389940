"""Adding measures to a batch of rows; bad rows are refused, get no measures, or are left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.layout import Layout
from uqprism.ensemble.prediction import EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.evaluation import evaluate
from uqprism.files.described import as_metadata, without_members
from uqprism.files.numbers import as_cells, cell, is_list, is_text, mostly_text, numbers_in
from uqprism.files.options import ScoreOptions
from uqprism.files.read import Batch, InputFile, Schema, pa
from uqprism.rules import Log, Quadratic
from uqprism.support.parallel import limited_to

REMEDY = "repair it, or leave such rows empty or out with on_bad (--on-bad null, --on-bad drop)"
BATCH_BYTES = 1 << 24  # of members and measures together, a few of which are in memory at a time


@dataclass(frozen=True)
class ScoredBatch:
    """A batch to write, the number of rows it was made from, how many were bad, and in how many predictions quantiles crossed."""

    batch: Batch
    rows: int
    bad: int
    crossed: int = 0


class Scorer:
    """Adds measures to the batches of one input file.

    Attributes:
        schema: of the results: the columns that pass through, then one per measure.
        batch_rows: how many rows a batch should have, so that memory is bounded for any number of members and measures.
    """

    def __init__(self, source: InputFile, options: ScoreOptions) -> None:
        self.layout, self.options, self.path = source.layout, options, source.path
        self.weights = options.weights if options.weights is not None else source.weights
        self.header = source.header or {}
        self.place = source.place
        _check_types(source, self.layout, self.path)
        members = set() if options.keep_members else {*self.layout.names}
        self.kept = [name for name in source.schema.names if name not in members]
        self.dtype = _dtype(source.schema, self.layout)
        self.needs_density = any(isinstance(measure.resolved(), Log | Quadratic) for measure in options.measures)
        self._check()
        self.schema = self._output_schema(source.schema)
        values = self._values_per_row(source) + len(options.measures)
        self.batch_rows = min(max(BATCH_BYTES // (8 * values), 1 << 6), 1 << 16)

    def _values_per_row(self, source: InputFile) -> int:
        """How many numbers the members of a row are; of lists, as the first cells have."""
        if not self.layout.lists:
            return len(self.layout.names)
        first = [source.sample(names[0])[:1].drop_null() for _, names in self.layout.columns]
        return self.layout.n_members * sum(max(1, sum(len(cell) for cell in cells)) for cells in first)

    def _check(self) -> None:
        clash = [name for name in self.options.names if name in self.kept]
        if clash:
            raise InvalidValueError(
                f"{self.path}: column {clash[0]!r} has the name of a measure; rename it, or choose other measures (--measures)"
            )
        point = np.ones((self.layout.n_members, 1))
        try:
            # Number and sum of the weights are refused before any row is read.
            EnsemblePrediction.gaussian(mean=point, scale=point, weights=self.weights, member_axis=0)
        except (ShapeError, InvalidValueError) as error:
            wrong = InvalidValueError if self.options.weights is None else ArgumentError  # the file's, or the user's
            raise wrong(f"{self.path}: {error}") from None

    def _output_schema(self, schema: Schema) -> Schema:
        fields = [schema.field(name) for name in self.kept]
        fields += [pa.field(name, pa.from_numpy_dtype(self.dtype)) for name in self.options.names]
        about = without_members(schema.metadata)
        if self.options.keep_members:
            about |= as_metadata(self.header, self.weights) or {}
        return pa.schema(fields, metadata=about or None)

    def __call__(self, batch: Batch, first_row: int) -> ScoredBatch:
        """The batch with its measures; `first_row` is its place in the file."""
        crossed: list[int] = []
        arrays = self.layout.arrays(lambda name: as_cells(batch.column(name), name), self.dtype, crossed)
        good = self._good(arrays)
        rows = batch.num_rows
        bad = 0 if good is None else rows - int(good.sum())
        if good is not None and self.options.on_bad == "error":

            def shown(name: str, row: int) -> str:
                return cell(batch.column(name), row)

            problem = complaint(self.layout, arrays, good=good, shown=shown, place=self.place, first_row=first_row)
            raise InvalidValueError(f"{self.path}: {problem}; {REMEDY}")
        if good is not None:
            arrays = {name: x[..., good] for name, x in arrays.items()}
        members = self.layout.members(arrays, check=False)  # the values are checked
        ensemble = EnsemblePrediction(members, self.weights, check=False)
        with limited_to(1):  # batches are computed side by side
            table = evaluate(ensemble, self.options.measures)
        kept = self._passed_on(batch)
        if good is not None and self.options.on_bad == "drop":
            kept, good = kept.filter(pa.array(good)), None
        columns = [*kept.columns, *(_column(np.asarray(table[name]), good) for name in self.options.names)]
        return ScoredBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), rows, bad, sum(crossed))

    def _good(self, arrays: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any] | None:
        """Which rows can be scored; None if all can."""
        return self.layout.good(arrays, dense=self.needs_density)

    def _passed_on(self, batch: Batch) -> Batch:
        """The columns that pass through; members that came as text become numbers if the file has numbers elsewhere."""
        kept = batch.select(self.kept)
        for place, name in enumerate(self.kept):
            field = self.schema.field(name)
            if not kept.column(place).type.equals(field.type):
                kept = kept.set_column(place, field, numbers_in(kept.column(place))[0])
        return kept


def complaint(
    layout: Layout,
    arrays: dict[str, np.ndarray[Any, Any]],
    *,
    good: np.ndarray[Any, Any],
    shown: Callable[[str, int], str],
    place: Callable[[int], str],
    first_row: int = 0,
) -> str:
    """Which value of the first bad row is bad, and why; `shown` gives a cell as it was read."""
    row, bad = int(np.argmin(good)), int((~good).sum())
    name, wanted = layout.complaint(arrays, row)
    found = shown(name, row)
    wanted = "a number" if found.startswith("'") else wanted
    more = f" ({bad} bad rows among rows {first_row} to {first_row + len(good) - 1})" if bad > 1 else ""
    return f"{place(first_row + row)}: {name} must be {wanted}, got {found}{more}"


def _check_types(source: InputFile, layout: Layout, path: Path) -> None:
    """Refuse member columns that hold no numbers; text may hold them, if most of its first cells do."""
    tests = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
    for name in layout.names:
        kind = source.schema.field(name).type
        if layout.lists != is_list(kind):
            wanted = f"lists of numbers, as {layout.family} members need" if layout.lists else "numbers"
            raise InvalidValueError(f"{path}: column {name!r} must hold {wanted}, its type is {kind}; convert it or name another")
        if layout.lists and is_text(kind.value_type):
            raise InvalidValueError(
                f"{path}: column {name!r} must hold lists of numbers, its type is {kind}; convert it or name another"
            )
        kind = kind.value_type if layout.lists else kind
        if is_text(kind) and (example := mostly_text(source.sample(name))) is None:
            continue
        shown = f"{kind}, such as {example}" if is_text(kind) else kind
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not any(test(kind) for test in tests):
            raise InvalidValueError(f"{path}: column {name!r} must hold numbers, its type is {shown}; convert it or name another")


def _dtype(schema: Schema, layout: Layout) -> np.dtype[Any]:
    """The widest of the members' precisions; whole numbers count as double."""
    # One precision for all, because they become one array.
    types = [schema.field(name).type for name in layout.names]
    types = [each.value_type if layout.lists else each for each in types]
    return np.result_type(*(t.to_pandas_dtype() if pa.types.is_floating(t) else np.float64 for t in types))


def _column(values: np.ndarray[Any, Any], good: np.ndarray[Any, Any] | None) -> Any:
    if good is None:
        return pa.array(values)
    spread_out = np.zeros(good.shape, values.dtype)
    spread_out[good] = values
    return pa.array(spread_out, mask=~good)  # null, not NaN: there is no measure
