"""Score a file as `uqprism score` does, with its numbers and messages; summarise the result and write it to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uqprism import files
from uqprism.app.inputs import PARTS, ScoringChoice, Upload
from uqprism.ensemble.columns import Layout
from uqprism.errors import InvalidValueError
from uqprism.files.points import Points
from uqprism.files.read import arrow_csv, pa, pq
from uqprism.files.write import CsvOutput
from uqprism.measures import Measure, is_measure
from uqprism.report import sentences
from uqprism.report.findings import Parts
from uqprism.report.subject import MeasurePair, Rows, shows_disagreement
from uqprism.tasks.retention import GRID
from uqprism.tasks.selective_prediction import selective_prediction

FLAGGED = "flagged"
TARGETS = ("y", "target")
ONE_DISTRIBUTION = (
    "Both approximations are one distribution for each row, so these measures do not show how far the models disagree; choose "
    "each model in one of the roles."
)


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
    """

    frame: Any
    n_rows: int
    layout: Layout
    weights: tuple[float, ...] | None
    targets: tuple[str, ...]
    schema: Any

    def refusal(self, ending: str) -> str | None:
        """Why no file with this ending can be written, or None."""
        if FLAGGED in self.schema.names:
            return f"column {FLAGGED!r} is there already; rename it"
        nested = [field.name for field in self.schema if pa.types.is_nested(field.type)] if ending == ".csv" else []
        return f"column {nested[0]!r} is nested, which CSV cannot hold" if nested else None

    @property
    def n_models(self) -> int:
        """How many models predicted."""
        return len(self.layout.mean)

    @property
    def bad_rows(self) -> int:
        """How many rows were left out."""
        return self.n_rows - len(self.frame)

    @property
    def usual_target(self) -> str | None:
        """The column of the target, if it has one of the usual names."""
        return next((name for name in TARGETS if name in self.targets), None)


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
        members = {*points.layout.mean, *points.layout.spread}
        targets = tuple(name for name in points.numeric_names if name not in members and not is_measure(name))
        return ScoredFile(_frame(table, choice), table.num_rows, points.layout, points.weights, targets, table.schema)


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
    )


def _frame(table: Any, choice: ScoringChoice) -> Any:
    """The table without bad rows, with the parts at the end; columns of the file that are named like parts are marked."""
    names = {name: part for part, name in choice.measures.items()}
    ours = {*names.values(), FLAGGED}
    own = {name: _free(f"{name} (file)", table.column_names) for name in table.column_names if name in ours}
    frame = table.to_pandas(ignore_metadata=True)  # an index in the file would hide the rows' numbers
    return frame.rename(columns=names | own).dropna(subset=list(names.values()))


def _free(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _free(f"{name} (file)", taken)


def summary(scored: ScoredFile, choice: ScoringChoice) -> str:
    """The parts of the penalty, and what the penalty is, in the sentences of the report."""
    pair = MeasurePair(choice.rule, choice.measures["noise"], choice.measures["disagreement"])
    if not shows_disagreement(Measure.parse(pair.excess)):
        return ONE_DISTRIBUTION
    columns = {name: scored.frame[part].to_numpy() for part, name in choice.measures.items()}
    parts = Parts.of(Rows.of(columns, pair), n_members=scored.n_models)
    text = f"{sentences.split(parts)} {sentences.rows_of_each_kind(parts)}".rstrip()
    return f"{text}\n\n{sentences.penalty(parts, pair.prediction, None, intervals=False)}"


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
    with path.open(encoding="utf-8") as file:
        names = arrow_csv.open_csv(pa.BufferReader(file.readline().encode())).schema.names
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
        curves: the mean squared error of the rows kept, by part, and for the best and a random order.
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
    curves = {name: np.asarray(result.curves[name]) for name in names}
    return RetentionByPart(100.0 * GRID, curves, {part: result[part] for part in PARTS}, int(known.sum()), int((~known).sum()))
