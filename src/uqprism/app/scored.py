"""The measures of a file, row by row: computed by `uqprism score`, so that numbers and messages are those of the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqprism import files
from uqprism.app.choices import Choice
from uqprism.app.uploads import Upload
from uqprism.ensemble.columns import Layout
from uqprism.errors import InvalidValueError
from uqprism.files.points import Points
from uqprism.files.read import arrow_csv, pa, pq
from uqprism.files.write import CsvOutput
from uqprism.measures import is_measure

if TYPE_CHECKING:
    import numpy as np

FLAGGED = "flagged"
TARGETS = ("y", "target")


@dataclass(frozen=True)
class Scored:
    """The rows of a file that have members, with the parts of their penalties.

    Attributes:
        frame: a `pandas.DataFrame` of what the file holds beside members, then `total`, `noise` and `removable`; its index counts
            the rows of the file from 0.
        rows: how many rows the file has.
        layout: the columns of the members.
        weights: of the members, None for equal ones.
        targets: the columns that may hold what happened.
        schema: the Arrow schema of the scored file.
    """

    frame: Any
    rows: int
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
        return self.rows - len(self.frame)

    @property
    def usual_target(self) -> str | None:
        """The column that holds what happened, if it has one of the usual names."""
        return next((name for name in TARGETS if name in self.targets), None)


def score(upload: Upload, choice: Choice) -> Scored:
    """What `uqprism score` makes of the file; whatever it refuses is refused in its words."""
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
        return Scored(_frame(table, choice), table.num_rows, points.layout, points.weights, targets, table.schema)


def _score(path: Path, output: Path, choice: Choice, on_bad: Any, *, keep_members: bool) -> None:
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


def _frame(table: Any, choice: Choice) -> Any:
    """Without bad rows, and with the parts under their short names at the end; columns of the file with such names are marked."""
    names = {name: part for part, name in choice.measures.items()}
    ours = {*names.values(), FLAGGED}
    own = {name: _free(f"{name} (file)", table.column_names) for name in table.column_names if name in ours}
    frame = table.to_pandas(ignore_metadata=True)  # an index of its own would hide the rows' numbers
    return frame.rename(columns=names | own).dropna(subset=list(names.values()))


def _free(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _free(f"{name} (file)", taken)


def error(upload: Upload, choice: Choice, target: str) -> np.ndarray:
    """The squared error of each row of the file, as `uqprism selective --target` has it; NaN where there is none."""
    with upload.on_disk() as path:
        return Points.of(path, choice.columns, "drop").error(column=None, target=target, prediction=None)


def scored_file(upload: Upload, choice: Choice, flagged: np.ndarray, ending: str, *, keep_members: bool = False) -> bytes:
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
        table = _text(output) if ending == ".csv" else pq.read_table(output, partitioning=None)
        table = table.append_column(FLAGGED, pa.array(flagged))
        if ending == ".csv":
            _write_csv(table, output)
        else:
            pq.write_table(table, output)
        return output.read_bytes()


def _text(path: Path) -> Any:
    """A CSV file with every value as it is written, so that it comes out the same."""
    with path.open(encoding="utf-8") as file:
        names = arrow_csv.open_csv(pa.BufferReader(file.readline().encode())).schema.names
    convert = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    return arrow_csv.read_csv(path, parse_options=arrow_csv.ParseOptions(newlines_in_values=True), convert_options=convert)


def _write_csv(table: Any, path: Path) -> None:
    sink = CsvOutput(path, table.schema)
    try:
        for batch in table.combine_chunks().to_batches():
            sink.write(batch)
    finally:
        sink.close()
