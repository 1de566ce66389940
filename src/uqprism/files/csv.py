"""CSV files, read in batches: members are numbers, and a cell that is none makes its row a bad one, not the file."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from uqprism.ensemble.columns import Columns
from uqprism.errors import BadFileError, InvalidValueError
from uqprism.files.described import as_metadata, described
from uqprism.files.npz import stated_weights
from uqprism.files.numbers import mostly_text
from uqprism.files.packed import opened
from uqprism.files.paths import Span
from uqprism.files.source import Batch, InputFile, Schema, joined, naming, pa
from uqprism.measures import is_measure
from uqprism.support.optional import require
from uqprism.support.reading import BLOCK, check_columns, check_unpacked, reason

arrow_csv = require("pyarrow.csv", extra="cli")

CSV_BLOCK = 1 << 22  # Arrow reads several ahead
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
GUESSED = "its type was guessed from the first 4 MB, write to .csv to pass it through as text"
UTF8 = "is not UTF-8 text; save it as UTF-8"


class CsvInput(InputFile):
    """A CSV file with a header. Members are numbers; other columns are text, or have the types that their values suggest."""

    def __init__(self, span: Span, columns: Columns, as_text: bool) -> None:
        super().__init__(span, columns)
        self.first_line, self.as_text = _header(span.path), as_text

    @cached_property
    def header(self) -> dict[str, Any]:
        """What is said beside the file of its members, if a command wrote it; otherwise empty."""
        return described(self.path)

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the members, if they are stated beside the file."""
        weights = self.header.get("weights")
        return None if weights is None else stated_weights(weights, self.path)

    @property
    def _about(self) -> dict[bytes, bytes] | None:
        """The same as the metadata of a schema."""
        return as_metadata(self.header, self.weights)

    @property
    def names(self) -> list[str]:
        """The names of all columns, from the first line."""
        return self.first_line

    @cached_property
    def schema(self) -> Schema:
        """The columns, with the types that the first block suggests."""
        # Guessed types would fail on members that are whole numbers in the first block and not later.
        types = dict.fromkeys(self._members, pa.float64())
        if self.as_text:  # a number read and written again may look different, an identifier lose its zeros
            types = {name: types.get(name, pa.string()) for name in self.first_line}
        with naming(self.path, "read"):
            found = self._guessed(types)
        # A table can have thousands of members, so that changing one field after the other would take minutes.
        members = set(self._members)
        found = [pa.field(field.name, pa.float64()) if field.name in members else field for field in found]
        found = pa.schema(found, metadata=self._about)
        if binary := [field.name for field in found if pa.types.is_binary(field.type)]:
            raise BadFileError(self.path, f"column {binary[0]!r} {UTF8}")
        return found

    def _guessed(self, types: dict[str, Any]) -> Schema:
        try:
            return self._open(types).schema
        except pa.ArrowInvalid as error:
            if not self._is_of_member(error):
                raise self._explained(error) from None
        try:  # the first block has text among the members' numbers
            return self._open(types | dict.fromkeys(self._members, pa.string())).schema
        except pa.ArrowInvalid as error:
            raise self._explained(error) from None

    @property
    def table_schema(self) -> Schema:
        """The columns, with the types that all values suggest."""
        return self.table().schema.with_metadata(self._about)

    @cached_property
    def _members(self) -> tuple[str, ...]:
        """The columns of the members; none in a file without members."""
        try:
            return self.layout.names
        except InvalidValueError:
            return ()

    def _open(self, types: dict[str, Any]) -> Any:
        """Arrow's reader of the file from its beginning."""
        self.close()  # a reader before this one, which has 10 kB for each column
        self._stored, text = opened(self.path)  # here, because Arrow's reader does not tell how far it is
        block = arrow_csv.ReadOptions(block_size=CSV_BLOCK)
        self._reader = arrow_csv.open_csv(text, read_options=block, **_options(types))
        return self._reader

    def _batches(self, rows: int, names: Sequence[str] | None = None) -> Iterator[tuple[Batch, float]]:
        if names is not None:
            yield from ((batch.select(list(names)), fraction) for batch, fraction in self._batches(rows))
            return
        types = {field.name: field.type for field in self.schema}
        done = 0
        try:
            for batch, fraction in self._read(types, rows):
                done += batch.num_rows
                yield batch, fraction
        except pa.ArrowInvalid as error:
            if not self._is_of_member(error):
                raise self._explained(error) from None
            yield from self._read_with_text(types | dict.fromkeys(self._members, pa.string()), rows, done)

    def _read(self, types: dict[str, Any], rows: int) -> Iterator[tuple[Batch, float]]:
        size, done = max(self.path.stat().st_size, 1), 0
        with _Lines(self.path) as lines:
            for batch in joined(self._open(types), rows):
                lines.count_to(self._stored.tell())
                for start in range(0, batch.num_rows, rows):  # a block of short lines has many rows
                    # Arrow reads ahead, so the fraction runs a little ahead of the rows.
                    yield batch.slice(start, rows), min(self._stored.tell() / size, 1.0)
                done += batch.num_rows
            self._check_lines(lines.count_to(math.inf), done)

    def _read_with_text(self, types: dict[str, Any], rows: int, first: int) -> Iterator[tuple[Batch, float]]:
        """The batches from row `first` on, with numbers as text, because a cell among them is none."""
        done = 0
        try:
            for batch, fraction in self._read(types, rows):
                piece = batch.slice(min(max(first - done, 0), batch.num_rows))
                if done <= first < done + batch.num_rows:
                    self._check_text(piece)
                done += batch.num_rows
                if piece.num_rows:
                    yield piece, fraction
        except pa.ArrowInvalid as error:
            raise self._explained(error) from None

    def _check_text(self, batch: Batch) -> None:
        """Refuse columns of members that are text altogether."""
        for name in self._members:
            if (example := mostly_text(batch.column(name))) is not None:
                raise BadFileError(self.path, f"column {name!r} must hold numbers, most of its cells are such as {example}")

    def _table(self, names: Sequence[str] | None) -> Any:
        wanted = list(self.first_line if names is None else names)
        types = {name: pa.float64() for name in set(self._members).intersection(wanted)}
        if self.as_text:
            types = {name: types.get(name, pa.string()) for name in wanted}
        with _Lines(self.path) as found:  # first, so that a file that cannot be unpacked is not in memory
            lines = found.count_to(math.inf)
        for _ in range(len(wanted) + 1):  # a column with text among its numbers becomes text, and the file is read again
            try:
                table = arrow_csv.read_csv(opened(self.path)[1], **_options(types, wanted))
            except pa.ArrowInvalid as error:
                name = self._column_of(error)
                if not _is_of_cell(error) or name is None or types.get(name) == pa.string():
                    raise self._explained(error) from None
                types[name] = pa.string()
            else:
                self._check_lines(lines, table.num_rows)
                return table
        raise BadFileError(self.path, "cannot be read as columns of numbers and text")

    def _column_of(self, error: Exception) -> str | None:
        """The name of the column that an error of Arrow is about, which names it by its number."""
        number = re.search(r"In CSV column #(\d+):", str(error))
        return None if number is None or int(number[1]) >= len(self.first_line) else self.first_line[int(number[1])]

    def _is_of_member(self, error: Exception) -> bool:
        return _is_of_cell(error) and self._column_of(error) in self._members

    def _explained(self, error: Exception) -> InvalidValueError:
        """Arrow's message with the name of the column or the line, and with the way to correct it."""
        if not self._members and not any(map(is_measure, self.first_line)):  # then this tells more: the file may be a letter
            try:
                self.layout  # noqa: B018 (raises)
            except InvalidValueError as problem:
                return problem
        text, name = reason(error), self._column_of(error)
        if name is not None:
            text = re.sub(r".*In CSV column #\d+: (?:Row #\d+: )?", "", text)
            return BadFileError(self.path, f"column {name!r}: {text}; {UTF8 if 'UTF8' in text else GUESSED}")
        if "straddl" in text:
            return BadFileError(self.path, f"a row has more than {CSV_BLOCK:,} bytes; a quote that is not closed makes one")
        if "Expected" in text:
            text = self._ragged() or text
        return BadFileError(self.path, f"cannot be read: {text}")

    def _ragged(self) -> str | None:
        """Which line has another number of columns than the header."""
        for line, record in _records(self.path):
            if len(record) != len(self.first_line):
                return (
                    f"line {line} has {len(record)} columns, the first line {len(self.first_line)}; quote values with commas, "
                    "and write a point as the decimal mark"
                )
        return None

    def place(self, row: int) -> str:
        """The row, and its line in the file."""
        for i, (line, _) in enumerate(_records(self.path)):
            if i == row + 1:  # after the header
                return f"row {row} (line {line})"
        return super().place(row)

    def _check_lines(self, lines: int, rows: int) -> None:
        """Compare the rows with the lines: a quote that is not closed takes the lines after it into one value."""
        if lines == rows + 1:
            return
        found = sum(1 for _ in _records(self.path, strict=True)) - 1  # there are values of several lines, or empty lines
        if found != rows:
            raise BadFileError(self.path, f"has {found:,} rows, but only {rows:,} could be read; check its quotes")

    def close(self) -> None:
        """Drop the file, which is closed when Arrow has stopped reading ahead.

        If it were closed during a read, its descriptor would go to the next file opened, and the read would take a block of that.
        """
        for name in ("_reader", "_stored"):
            vars(self).pop(name, None)


class _Lines:
    """The number of lines of a file, counted up to where it was read: these bytes are still in memory."""

    def __init__(self, path: Path) -> None:
        self.path, self.size, self.length, self.count, self.last = path, path.stat().st_size, 0, 0, b"\n"
        self.stored, self.text = opened(path)

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.text.close()
        self.stored.close()

    def count_to(self, end: float) -> int:
        """The lines so far, read on until at least so many bytes on disk are used."""
        while self.stored.tell() < end and (block := self.text.read(BLOCK)):
            self.length, self.count, self.last = self.length + len(block), self.count + block.count(b"\n"), block[-1:]
            check_unpacked(self.path, self.length, self.size)
        return self.count + (self.last != b"\n")


def _options(types: dict[str, Any], columns: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "parse_options": arrow_csv.ParseOptions(newlines_in_values=True),  # else a quoted line break could end a block
        "convert_options": arrow_csv.ConvertOptions(column_types=types, include_columns=list(columns)),
    }


def _is_of_cell(error: Exception) -> bool:
    """Whether Arrow refused the value of a cell, which is text where a number was expected."""
    return "CSV conversion error" in str(error) and "UTF8" not in str(error)


def _records(path: Path, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """The first line of each record, and its values, read slowly; without empty lines. Strict about quotes if asked."""
    stored, text = opened(path)
    with stored, io.TextIOWrapper(io.BufferedReader(text, BLOCK), "utf-8-sig", "surrogateescape", newline="") as file:
        found, line = csv.reader(file, strict=strict), 1
        try:
            for record in found:
                if record:
                    yield line, record
                line = found.line_num + 1
        except csv.Error as error:
            raise BadFileError(path, f"line {line}: a quoted value is not closed: {error}") from None


def _header(path: Path) -> list[str]:
    """The names in the first line; refuses a file without one, or with another separator."""
    stored, text = opened(path)
    with stored, text:
        start = text.read(CSV_BLOCK)
    if len(start) == CSV_BLOCK and not re.search(rb"[\r\n]", start):
        raise BadFileError(path, f"its first line has more than {CSV_BLOCK:,} bytes; a CSV file begins with the names of columns")
    lines = io.TextIOWrapper(io.BytesIO(start), "utf-8-sig", "surrogateescape", newline="")  # with a mark of spreadsheets or not
    names = next(csv.reader(lines), [])
    if not names:
        raise BadFileError(path, "is empty; a CSV file begins with the names of its columns")
    if any("\udc80" <= mark <= "\udcff" for mark in "".join(names)):  # bytes that are no text
        raise BadFileError(path, f"its first line {UTF8}")
    for mark, word in SEPARATORS.items():
        if len(names) == 1 and mark in names[0]:
            raise BadFileError(
                path,
                f"the columns are separated by {word}; the separator must be a comma and the decimal mark a point, "
                f"so save it again that way (pandas: read_csv(path, sep={mark!r}, decimal=...).to_csv)",
            )
    check_columns(path, len(names))
    return names
