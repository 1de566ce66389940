"""CSV files as all commands see them: the names of the columns, and what is wrong with a file in one set of words."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from uqprism.ensemble.columns import Layout
from uqprism.errors import FileError

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def column_names(path: Path) -> list[str]:
    """What the first line says; a file without one, or with another separator, is refused."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        names = next(csv.reader(file), [])
    if not names:
        raise FileError(f"{path}: is empty; a CSV file begins with the names of its columns")
    for mark, word in SEPARATORS.items():
        if len(names) == 1 and mark in names[0]:
            raise FileError(
                f"{path}: the columns are separated by {word}; the separator must be a comma and the decimal mark a point, "
                f"so save it again that way (pandas: read_csv(path, sep={mark!r}, decimal=...).to_csv)"
            )
    return names


def explained(error: Exception, path: Path, names: Sequence[str], layout: Layout | None) -> FileError:
    """What Arrow says, with the name of the column, and what to do about a value that is not of its type."""
    text = str(error).splitlines()[0]
    number = re.search(r"In CSV column #(\d+): (?:Row #\d+: )?(.*)", text)
    if number is None:
        return FileError(f"{path}: cannot be read: {text}")
    name = names[int(number[1])]
    remedy = "its type was guessed from the first 4 MB, write to .csv to pass it through as text"
    if layout is not None and name in (*layout.mean, *layout.spread):
        remedy = "members must be numbers"
    return FileError(f"{path}: column {name!r}: {number[2]}; {remedy}")
