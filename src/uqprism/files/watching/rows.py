"""What is watched of the rows of files: from columns of measures, or from members that are scored on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from uqprism.ensemble.prediction import EnsemblePrediction
from uqprism.errors import InvalidValueError
from uqprism.files.numbers import as_cells, as_numbers
from uqprism.files.paths import PathLike, Span, find_files
from uqprism.files.read import Batch, InputFile, open_input
from uqprism.registry import unknown
from uqprism.support.parallel import limited_to
from uqprism.tasks.watch.rows import UNSEEN, Reader, Rows
from uqprism.tasks.watch.watch import SOURCES

AT_ONCE = 1 << 16  # rows
NUMBERS_AT_ONCE = 1 << 21  # of members


class FileReader:
    """Reads the rows of one file.

    Attributes:
        scored: whether the measures are taken from the file, and not computed from members.
    """

    def __init__(self, file: InputFile, reader: Reader) -> None:
        self.file, self.reader = file, reader
        for name in (reader.groups, reader.target):
            if name is not None and name not in file.names:
                raise InvalidValueError(f"{file.path}: {unknown('column', name, file.names)}")
        self.scored = reader.scored(file.names, reader.target)
        members = reader.measures if self.scored else file.layout.names
        self.names = [name for name in dict.fromkeys([*members, reader.groups, reader.target]) if name is not None]
        self.size = AT_ONCE if self.scored else max(64, min(AT_ONCE, NUMBERS_AT_ONCE // len(file.layout.names)))

    def batches(self) -> Iterator[Batch]:
        """The columns that are needed, in batches of bounded size."""
        return (batch for batch, _ in self.file.batches(self.size, self.names))

    def rows(self, batch: Batch) -> Rows:
        """The rows of a batch; bad ones have NaN."""
        with limited_to(1):  # batches are computed side by side
            return self._rows(batch)

    def _rows(self, batch: Batch) -> Rows:
        reader, place = self.reader, str(self.file.path)
        groups = None if reader.groups is None else batch.column(reader.groups)
        if self.scored:
            measures = {name: as_numbers(batch.column(name)) for name in reader.measures}
            return reader.read(measures, None, groups, place)
        layout = self.file.layout
        arrays = layout.arrays(lambda name: as_cells(batch.column(name), name), None if layout.lists else np.float64)
        good = layout.good(arrays)
        target = None if reader.target is None else as_numbers(batch.column(reader.target)).astype(np.float64)
        if good is not None:
            arrays = {name: x[..., good] for name, x in arrays.items()}
            target = None if target is None else target[good]
        ensemble = EnsemblePrediction(layout.members(arrays, check=False), self.file.weights, check=False)
        rows = replace(reader, names=()).read(ensemble, target, None, place)
        rows = rows if good is None else _spread(rows, good)
        return rows if groups is None else replace(rows, group=reader.read_groups(groups, len(rows), place))


def _spread(rows: Rows, good: np.ndarray) -> Rows:
    """The rows in the places of good ones, with NaN in the others."""

    def spread(column: np.ndarray) -> np.ndarray:
        found = np.full(len(good), np.nan)
        found[good] = column
        return found

    return Rows(
        bayes=spread(rows.bayes),
        excess=spread(rows.excess),
        penalty=spread(rows.penalty),
        calibration=spread(rows.calibration),
        group=np.full(len(good), UNSEEN),
        number=np.arange(len(good)),
    )


def opened(path: Path, reader: Reader) -> InputFile:
    """The file, open."""
    return open_input(Span(path, path.name), reader.columns)


@SOURCES.register("files")
def read_files(given: PathLike | Sequence[PathLike], reader: Reader) -> tuple[Reader, Rows]:
    """All rows of these files, and the reader; one that has no groups yet gets those of the files."""
    paths = [span.path for span in find_files(given)]
    if reader.groups is not None and not reader.names:
        columns = []
        for path in paths:
            with closing(opened(path, reader)) as file:
                columns += file.table([reader.groups]).column(0).unique().to_pylist()
        reader = reader.with_groups(None, columns)
    parts: list[Rows] = []
    for path in paths:
        with closing(opened(path, reader)) as file:
            source = FileReader(file, reader)
            parts += map(source.rows, source.batches())
    if not parts:
        raise InvalidValueError(f"{paths[0]}: has no rows")
    return reader, Rows.joined(parts)
