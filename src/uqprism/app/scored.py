"""Score a file as `uqprism score` does, with its numbers and messages; summarise the result and write it to a file."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from uqprism import files
from uqprism.app.inputs import PARTS, ScoringChoice, Upload
from uqprism.ensemble.layout import Layout
from uqprism.errors import InvalidValueError
from uqprism.files.points import Points
from uqprism.files.read import arrow_csv, pa, pq
from uqprism.files.write import CsvOutput
from uqprism.measures import is_measure
from uqprism.tasks.retention import GRID
from uqprism.tasks.selective_prediction import selective_prediction

FLAGGED = "flagged"


@dataclass(frozen=True)
class ScoredFile:
    """The rows of a file with valid members, and the parts of their penalties.

    Attributes:
        frame: a `pandas.DataFrame` of the columns that hold no members, then `total`, `noise` and `disagreement`; its index
            counts the rows of the file from 0.
        n_rows: how many rows the file has.
        layout: the columns of the members.
        weights: of the members, None for equal ones.
        targets: the columns that may hold the target.
        schema: the Arrow schema of the scored file.
        renamed: what columns of the file are called in the frame, where their names are those of parts.
    """

    frame: Any
    n_rows: int
    layout: Layout
    weights: tuple[float, ...] | None
    targets: tuple[str, ...]
    schema: Any
    renamed: Mapping[str, str] = field(default_factory=dict)

    def refusal(self, ending: str) -> str | None:
        """Why no file with this ending can be written, or None."""
        if FLAGGED in self.schema.names:
            return f"column {FLAGGED!r} is there already; rename it"
        nested = [field.name for field in self.schema if pa.types.is_nested(field.type)] if ending == ".csv" else []
        return f"column {nested[0]!r} is nested, which CSV cannot hold" if nested else None

    @property
    def n_models(self) -> int:
        """How many models predicted."""
        return self.layout.n_members

    @property
    def bad_rows(self) -> int:
        """How many rows were left out."""
        return self.n_rows - len(self.frame)

    @property
    def measured(self) -> set[str]:
        """The columns of the frame that are not of the file."""
        return set(PARTS)

    def has_gaps(self, target: str) -> bool:
        """Whether rows lack this target."""
        return bool(self.frame[self.shown_name(target)].isna().any())

    def shown_name(self, column: str) -> str:
        """What a column of the file is called in the frame."""
        return self.renamed.get(column, column)


def score(upload: Upload, choice: ScoringChoice) -> ScoredFile:
    """Score the file as `uqprism score` does, with the same errors."""
    with upload.on_disk() as path:
        output = path.parent / "out" / "scored.parquet"
        keep_rows = "null" if choice.on_bad == "drop" else choice.on_bad  # rows keep their numbers
        _score(path, output, choice, keep_rows, keep_members=False)
        points = Points.of(path, choice.columns, "drop")
        table = pq.read_table(output, partitioning=None)
        if not table.num_rows:
            raise InvalidValueError(f"{path}: has no rows, only the names of its columns")
        members = {*points.layout.names}
        targets = tuple(name for name in points.numeric_names if name not in members and not is_measure(name))
        frame, renamed = _frame(table, choice)
        return ScoredFile(frame, table.num_rows, points.layout, points.weights, targets, table.schema, renamed)


def _score(path: Path, output: Path, choice: ScoringChoice, on_bad: Any, *, keep_members: bool) -> None:
    files.score(
        path,
        output,
        measures=list(choice.measures.values()),
        on_bad=on_bad,
        keep_members=keep_members,
        mean_columns=choice.mean_columns,
        variance_columns=choice.variance_columns,
        scale_columns=choice.scale_columns,
        family=choice.family,
    )


def _frame(table: Any, choice: ScoringChoice) -> tuple[Any, dict[str, str]]:
    """The table without bad rows, with the parts at the end; columns of the file that are named like parts get other names."""
    names = {name: part for part, name in choice.measures.items()}
    ours = {*names.values(), FLAGGED}
    own = {name: _free(f"{name} (file)", table.column_names) for name in table.column_names if name in ours}
    # An index in the file would hide the rows' numbers, and its description may be damaged.
    frame = table.replace_schema_metadata(None).to_pandas()
    return frame.rename(columns=names | own).dropna(subset=list(names.values())), own


def _free(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _free(f"{name} (file)", taken)


def error(upload: Upload, choice: ScoringChoice, target: str) -> np.ndarray:
    """The squared error of each row of the file, as in `uqprism selective --target`; NaN without a target."""
    with upload.on_disk() as path:
        return Points.of(path, choice.columns, "drop").error(column=None, target=target, prediction=None)


def scored_file(upload: Upload, choice: ScoringChoice, flagged: np.ndarray, ending: str, *, keep_members: bool = False) -> bytes:
    """The file that `uqprism score` writes, with one more column that says which rows are flagged.

    Args:
        upload: the file.
        choice: how to score it.
        flagged: for each row of the output, whether it is flagged.
        ending: `.csv` or `.parquet`.
        keep_members: keep the member columns.
    """
    with upload.on_disk() as path:
        output = path.parent / "out" / f"scored{ending}"
        _score(path, output, choice, choice.on_bad, keep_members=keep_members)
        table = _as_text(output) if ending == ".csv" else pq.read_table(output, partitioning=None)
        table = table.append_column(FLAGGED, pa.array(flagged))
        if ending == ".csv":
            _write_csv(table, output)
        else:
            pq.write_table(table, output)
        return output.read_bytes()


def _as_text(path: Path) -> Any:
    """A CSV file as text, so that every value is written as it was."""
    with path.open(encoding="utf-8", newline="") as file:
        names = next(csv.reader(file))  # a name may have line ends
    convert = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))  # types are given by name
    return arrow_csv.read_csv(path, parse_options=arrow_csv.ParseOptions(newlines_in_values=True), convert_options=convert)


def _write_csv(table: Any, path: Path) -> None:
    sink = CsvOutput(path, table.schema)
    try:
        for batch in table.combine_chunks().to_batches():
            sink.write(batch)
    finally:
        sink.close()


@dataclass(frozen=True)
class RetentionByPart:
    """How the error falls as the most uncertain rows are handed over.

    Attributes:
        kept: percentages of the rows.
        curves: the root mean squared error of the rows kept, by part, and for the best and a random order.
        ratios: the paper's prediction rejection ratio by part: 0 for the best order, 1 for chance.
        n_rows: how many rows have a target.
        without_target: how many have none.
    """

    kept: np.ndarray
    curves: dict[str, np.ndarray]
    ratios: dict[str, float]
    n_rows: int
    without_target: int


def retention(scored: ScoredFile, error: np.ndarray) -> RetentionByPart:
    """The retention curve of each part, as in `uqprism selective`.

    Args:
        scored: the scored file.
        error: of each row of the file, NaN where there is none.
    """
    here: Any = error[scored.frame.index.to_numpy()]  # bad rows have been left out of the frame
    known = np.isfinite(here)
    columns = {part: scored.frame[part].to_numpy()[known] for part in PARTS}
    result = selective_prediction(columns, error=here[known], resamples=0)  # intervals are not shown
    names = {**dict.fromkeys(PARTS), "oracle order": None, "random order": None}
    curves = {name: np.sqrt(np.asarray(result.curves[name])) for name in names}
    return RetentionByPart(100.0 * GRID, curves, {part: result[part] for part in PARTS}, int(known.sum()), int((~known).sum()))
