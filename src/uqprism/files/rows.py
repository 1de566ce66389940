"""Adding measures to a batch of rows; bad rows are refused, get no measures, or are left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.columns import Layout
from uqprism.ensemble.prediction import FORMAT, EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.evaluation import evaluate
from uqprism.families.base import NARROWEST
from uqprism.files.numbers import as_numbers, cell, is_text, mostly_text, numbers_in
from uqprism.files.options import ScoreOptions
from uqprism.files.read import Batch, InputFile, Schema, pa
from uqprism.files.values import LARGEST, SMALLEST, good_rows
from uqprism.support.parallel import limited_to

REMEDY = "repair it, or leave such rows empty or out with on_bad (--on-bad null, --on-bad drop)"
BATCH_BYTES = 1 << 24  # of members and measures together, a few of which are in memory at a time


@dataclass(frozen=True)
class ScoredBatch:
    """A batch to write, the number of rows it was made from, and how many of these were bad."""

    batch: Batch
    rows: int
    bad: int


class Scorer:
    """Adds measures to the batches of one input file.

    Attributes:
        schema: of the results: the columns that pass through, then one per measure.
        batch_rows: how many rows a batch should have, so that memory is bounded for any number of members and measures.
    """

    def __init__(self, source: InputFile, options: ScoreOptions) -> None:
        self.layout, self.options, self.path = source.layout, options, source.path
        self.weights = options.weights if options.weights is not None else source.weights
        self.place = source.place
        _check_types(source, self.layout, self.path)
        members = set() if options.keep_members else {*self.layout.mean, *self.layout.spread}
        self.kept = [name for name in source.schema.names if name not in members]
        self.dtype = _dtype(source.schema, self.layout)
        self._check()
        self.schema = self._output_schema(source.schema)
        values = 2 * len(self.layout.mean) + len(options.measures)
        self.batch_rows = min(max(BATCH_BYTES // (8 * values), 1 << 6), 1 << 16)

    def _check(self) -> None:
        clash = [name for name in self.options.names if name in self.kept]
        if clash:
            raise InvalidValueError(
                f"{self.path}: column {clash[0]!r} has the name of a measure; rename it, or choose other measures (--measures)"
            )
        point = np.ones((len(self.layout.mean), 1))
        try:
            # Number and sum of the weights are refused before any row is read.
            EnsemblePrediction.gaussian(mean=point, scale=point, weights=self.weights, member_axis=0)
        except (ShapeError, InvalidValueError) as error:
            wrong = InvalidValueError if self.options.weights is None else ArgumentError  # the file's, or the user's
            raise wrong(f"{self.path}: {error}") from None

    def _output_schema(self, schema: Schema) -> Schema:
        fields = [schema.field(name) for name in self.kept]
        fields += [pa.field(name, pa.from_numpy_dtype(self.dtype)) for name in self.options.names]
        about = dict(schema.metadata or {})
        if not self.options.keep_members:
            about.pop(FORMAT.encode(), None)  # its columns are dropped
        return pa.schema(fields, metadata=about or None)

    def __call__(self, batch: Batch, first_row: int) -> ScoredBatch:
        """The batch with its measures; `first_row` is its place in the file."""
        mean = _matrix(batch, self.layout.mean, self.dtype)
        spread = _matrix(batch, self.layout.spread, self.dtype)
        good = good_rows(mean, spread, self.layout.kind)
        rows = batch.num_rows
        bad = 0 if good is None else rows - int(good.sum())
        if good is not None and self.options.on_bad == "error":

            def shown(name: str, row: int) -> str:
                return cell(batch.column(name), row)

            problem = complaint(self.layout, mean, spread, good=good, shown=shown, place=self.place, first_row=first_row)
            raise InvalidValueError(f"{self.path}: {problem}; {REMEDY}")
        if good is not None:
            mean, spread = mean[:, good], spread[:, good]
        given: dict[str, Any] = {"mean": mean, self.layout.kind: spread}
        ensemble = EnsemblePrediction.gaussian(
            **given, weights=self.weights, member_axis=0, check=False
        )  # `good_rows` has checked the values
        with limited_to(1):  # batches are computed side by side
            table = evaluate(ensemble, self.options.measures)
        kept = self._passed_on(batch)
        if good is not None and self.options.on_bad == "drop":
            kept, good = kept.filter(pa.array(good)), None
        columns = [*kept.columns, *(_column(np.asarray(table[name]), good) for name in self.options.names)]
        return ScoredBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), rows, bad)

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
    mean: np.ndarray[Any, Any],
    spread: np.ndarray[Any, Any],
    *,
    good: np.ndarray[Any, Any],
    shown: Callable[[str, int], str],
    place: Callable[[int], str],
    first_row: int = 0,
) -> str:
    """Which value of the first bad row is bad, and why; `shown` gives a cell as it was read."""
    row, bad = int(np.argmin(good)), int((~good).sum())
    for name, value in zip((*layout.mean, *layout.spread), (*mean[:, row].tolist(), *spread[:, row].tolist()), strict=True):
        kind = layout.kind if name in layout.spread else "mean"
        least = SMALLEST.get(kind, 0.0)
        if not least <= abs(value) <= LARGEST[kind] or (kind != "mean" and value <= 0):
            wanted = "finite" if kind == "mean" else "finite and greater than zero"
            if np.isfinite(value) and abs(value) > LARGEST[kind]:
                wanted = f"at most {LARGEST[kind]:.0e} in size"
            elif 0 < value < least:
                wanted = f"at least {least:.0e}"
            break
    else:  # each value alone could be computed with
        name = layout.spread[int(np.argmin(spread[:, row]))]
        wanted = f"wider: a scale is at least {NARROWEST:.0e} of the others and of the distances between means"
    found = shown(name, row)
    wanted = "a number" if found.startswith("'") else wanted
    more = f" ({bad} bad rows among rows {first_row} to {first_row + len(good) - 1})" if bad > 1 else ""
    return f"{place(first_row + row)}: {name} must be {wanted}, got {found}{more}"


def _check_types(source: InputFile, layout: Layout, path: Path) -> None:
    """Refuse member columns that hold no numbers; text may hold them, if most of its first cells do."""
    tests = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
    for name in (*layout.mean, *layout.spread):
        kind = source.schema.field(name).type
        if is_text(kind) and (example := mostly_text(source.sample(name))) is None:
            continue
        shown = f"{kind}, such as {example}" if is_text(kind) else kind
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not any(test(kind) for test in tests):
            raise InvalidValueError(f"{path}: column {name!r} must hold numbers, its type is {shown}; convert it or name another")


def _dtype(schema: Schema, layout: Layout) -> np.dtype[Any]:
    """The widest of the members' precisions; whole numbers count as double."""
    # One precision for all, because they become one array.
    types = [schema.field(name).type for name in (*layout.mean, *layout.spread)]
    return np.result_type(*(t.to_pandas_dtype() if pa.types.is_floating(t) else np.float64 for t in types))


def _matrix(batch: Batch, names: tuple[str, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """These columns as (members, rows), each value copied once."""
    found = np.empty((len(names), batch.num_rows), dtype)
    for row, name in zip(found, names, strict=True):
        row[:] = as_numbers(batch.column(name))
    return found


def _column(values: np.ndarray[Any, Any], good: np.ndarray[Any, Any] | None) -> Any:
    if good is None:
        return pa.array(values)
    spread_out = np.zeros(good.shape, values.dtype)
    spread_out[good] = values
    return pa.array(spread_out, mask=~good)  # null, not NaN: there is no measure
