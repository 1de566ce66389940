"""Write and read the files of a finished run."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uqprism.errors import BadFileError, FileError, InvalidValueError
from uqprism.paper.comparison import Agreement
from uqprism.paper.experiment import Claim, Experiment, Result
from uqprism.paper.report import page
from uqprism.support.optional import require
from uqprism.support.reading import loading, read_json, reading
from uqprism.support.storage import atomic, write_npz, write_text
from uqprism.support.versions import versions

RECORD, ARRAYS, REPORT, TABLES, WORK = "result.json", "arrays.npz", "report.md", "tables", "_work"
KIND = "uqprism.paper.Result"


def write(experiment: Experiment[Any], preset: str, result: Result, folder: Path, account: Mapping[str, Any]) -> None:
    """Write all files, result.json last; `account` holds durations, hardware and versions."""
    from uqprism.plots.style import save

    withdraw(folder)
    record = {
        "experiment": experiment.name,
        "preset": preset,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        **account,
        "versions": versions(),
        **{each.name: getattr(result, each.name) for each in dataclasses.fields(Result) if each.name != "arrays"},
    }
    record["claims"] = [dataclasses.asdict(claim) for claim in result.claims]
    record["agreements"] = {name: dataclasses.asdict(each) for name, each in result.agreements.items()}
    write_npz(folder / ARRAYS, KIND, {"experiment": experiment.name}, dict(result.arrays))
    (folder / TABLES).mkdir(exist_ok=True)
    for title, rows in result.tables.items():
        write_parquet(folder / TABLES / f"{file_name(title)}.parquet", rows)
    pictures = experiment.draw(result)
    for name, picture in pictures.items():
        save(picture.figure, folder / name)
    captions = {name: picture.caption for name, picture in pictures.items()}
    write_text(folder / REPORT, page(experiment, result, record, captions))
    # Last: it means that everything else is there.
    write_text(folder / RECORD, json.dumps(_without_nan(record), indent=2, allow_nan=False) + "\n")


def withdraw(folder: Path) -> None:
    """Remove a result and its page, which must not show pictures and numbers of two runs while they are replaced."""
    (folder / RECORD).unlink(missing_ok=True)  # first: without it nothing passes for finished
    (folder / REPORT).unlink(missing_ok=True)
    shutil.rmtree(folder / TABLES, ignore_errors=True)


def load(folder: str | os.PathLike[str]) -> tuple[Result, dict[str, Any]]:
    """The result in a folder, and the rest of its result.json."""
    where = Path(folder)
    record = read_record(where)
    if not (where / ARRAYS).exists():
        raise FileError(f"there is no {where / ARRAYS}: the result is not complete, make it again with --overwrite")
    with loading(where / ARRAYS, KIND) as (_, arrays):
        pass
    with reading(where / RECORD, "was not written by uqprism reproduce, or was changed since"):
        record["claims"] = tuple(Claim(**claim) for claim in record["claims"])
        record["agreements"] = {name: Agreement(**each) for name, each in record.get("agreements", {}).items()}
        record["notes"] = tuple(record["notes"])
        names = {each.name for each in dataclasses.fields(Result)} & set(record)
        return Result(**{name: record.pop(name) for name in names}, arrays=arrays), record


def read_record(folder: Path) -> dict[str, Any]:
    """The contents of result.json."""
    path = folder / RECORD
    if not path.exists():
        raise FileError(f"there is no {path}")
    try:
        record = read_json(path)
    except BadFileError:
        record = {}
    if not {"experiment", "config", "claims", "finished"} <= set(record):
        raise InvalidValueError(f"{path} was not written by uqprism reproduce, or was changed since")
    return record


def file_name(title: str) -> str:
    """A title as a file name."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the same columns as a Parquet file; a column of several types becomes text."""
    pyarrow = require("pyarrow", extra="cli")
    parquet = require("pyarrow.parquet", extra="cli")
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for name, values in columns.items():
        types = {type(value) for value in values if value is not None}
        if len(types) > 1:  # a column of Arrow has one type
            common = float if types == {int, float} else str
            columns[name] = [None if value is None else common(value) for value in values]
    with atomic(path) as file:
        parquet.write_table(pyarrow.table(columns), file)


def _without_nan(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by None."""
    if isinstance(value, Mapping):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
