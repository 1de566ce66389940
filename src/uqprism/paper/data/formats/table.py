"""Tables of numbers with named columns, and their comma-separated text."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import FileError

Array = Any


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of numbers.

    Attributes:
        source: where it was read from, for errors.
        names: of the columns.
        values: (rows, columns), float64.
    """

    source: str
    names: tuple[str, ...]
    values: Array

    def columns(self, names: Collection[str]) -> Array:
        """The columns of these names, (rows, len(names))."""
        absent = [name for name in names if name not in self.names]
        if absent:
            raise FileError(f"{self.source} must have the columns {', '.join(absent)}, got {', '.join(self.names)}")
        return self.values[:, [self.names.index(name) for name in names]]


def read_csv(data: bytes, source: str, *, names: Sequence[str] | None = None, skipped: Collection[str] = ()) -> Table:
    """Comma-separated numbers; the first line names the columns unless `names` does. Skipped columns may hold text."""
    first, _, below = data.partition(b"\n")
    header = list(names or (name.strip(' "\r') for name in first.decode(errors="replace").split(",")))
    body = data if names else below
    if not body.strip():
        raise FileError(f"{source} has no rows")
    wanted = [i for i, name in enumerate(header) if name not in skipped]
    chosen = wanted if len(wanted) < len(header) else None  # where all are read, every row is held against the first
    try:
        rows = io.TextIOWrapper(io.BytesIO(body), encoding="utf-8")
        values = np.loadtxt(rows, delimiter=",", usecols=chosen, ndmin=2, comments=None)
    except ValueError as error:
        raise FileError(f"{source} is no table of {len(header)} columns of numbers: {error}") from None
    if values.shape[1] != len(wanted):
        raise FileError(f"{source} must have {len(wanted)} columns, got {values.shape[1]}")
    return Table(source, tuple(header[i] for i in wanted), values)
