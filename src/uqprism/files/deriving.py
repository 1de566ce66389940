"""Files of predictions that were made from others by outcomes: recalibrated members, or intervals beside the members."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.layout import MIXTURE
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.files.described import in_metadata
from uqprism.files.numbers import as_cells
from uqprism.files.options import ScoreOptions
from uqprism.files.paths import PathLike, ending
from uqprism.files.points import Points
from uqprism.files.read import naming, pa
from uqprism.files.write import CsvOutput, ParquetOutput, describe_output
from uqprism.support.storage import atomic_path

LOWER, UPPER = "lower", "upper"
QUANTILES = "quantiles"


def check_output(output: PathLike, *inputs: Points, overwrite: bool = False) -> Path:
    """The path of a file to write; refuses inputs, other formats, and what exists already."""
    target = Path(output)
    if ending(target) not in (".parquet", ".csv"):
        raise ArgumentError(f"output {target}: must be a .parquet or .csv file")
    if any(target.resolve() == path.resolve() for points in inputs for path in points.paths):
        raise ArgumentError(f"output {target}: is an input; name another")
    if target.exists() and not overwrite:
        raise ArgumentError(f"output {target}: exists already; name another, or pass overwrite (--overwrite)")
    return target


def outcomes(points: Points, target: str) -> np.ndarray:
    """The column of what happened, one finite number for each row."""
    found = points.read([target])[target]
    bad = ~np.isfinite(found)
    if bad.any():
        raise InvalidValueError(
            f"{points.title}: column {target!r} must have a number in every row to learn from, row {int(np.argmax(bad))} has "
            f"none ({int(bad.sum())} in all); leave such rows out"
        )
    return found


def write_ensemble(points: Points, ensemble: EnsemblePrediction, target: Path) -> None:
    """The rows of a file with other members: its other columns, and after them those of the members as `to_arrow` names them."""
    table = ensemble.to_arrow()
    _write(target, _others(points), flat_table(table, target) if ending(target) == ".csv" else table)


def flat_table(table: Any, path: Path) -> Any:
    """The same members with a number in each cell, as CSV needs: `q0.05_0` for each level, `mean_0_1` for each component."""
    header = in_metadata(table.schema.metadata, path)
    if header["family"] not in (QUANTILES, MIXTURE):  # lists of others have no such form, as the output will say
        return table
    levels = [np.format_float_positional(level, trim="0") for level in header["options"].get("levels", ())]
    columns: dict[str, Any] = {}
    for name in table.column_names:
        for i, values in enumerate(as_cells(table.column(name), name).T):
            columns[f"q{levels[i]}_{name.rpartition('_')[2]}" if levels else f"{name}_{i}"] = values
    return pa.table(columns).replace_schema_metadata(table.schema.metadata)


def write_beside(points: Points, columns: Mapping[str, np.ndarray], target: Path) -> None:
    """The rows of a file with these columns after its own."""
    clash = [name for name in columns if name in points.names]
    if clash:
        raise InvalidValueError(f"{points.title}: has a column {clash[0]!r} already; rename it")
    whole = {name: points.column(name) for name in points.names}
    _write(target, whole, pa.table(dict(columns)).replace_schema_metadata(points.schema.metadata))


def _others(points: Points) -> dict[str, Any]:
    members = {*points.layout.names}
    return {name: points.column(name) for name in points.names if name not in members}


def _write(target: Path, columns: dict[str, Any], added: Any) -> None:
    both = {**columns, **{name: added.column(name) for name in added.column_names}}
    # What the file said of its own members is gone with them.
    about = {key: value for key, value in (added.schema.metadata or {}).items() if key == FORMAT.encode()}
    table = pa.table(both).replace_schema_metadata(about or None)
    with naming(target, "written"), atomic_path(target) as temporary:
        file = CsvOutput(temporary, table.schema) if ending(target) == ".csv" else _parquet(temporary, table.schema)
        try:
            for batch in table.combine_chunks().to_batches(1 << 16):
                file.write(batch)
        finally:
            file.close()
    describe_output(target, table.schema)


def _parquet(path: Path, schema: Any) -> ParquetOutput:
    return ParquetOutput(path, schema, ScoreOptions(()))
