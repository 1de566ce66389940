"""The first sheet of an .xlsx workbook: a zip archive of XML files."""

from __future__ import annotations

import io
from xml.etree import ElementTree
from zipfile import ZipFile

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.formats.damage import reading
from uqprism.paper.data.formats.table import Table

SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"


def read_xlsx(data: bytes, source: str) -> Table:
    """The first sheet; its first row names the columns, all others are numbers, and no cell is empty."""
    with reading(source, "no .xlsx workbook, or damaged"), ZipFile(io.BytesIO(data)) as book:
        strings = _strings(book.read(STRINGS)) if STRINGS in book.namelist() else []
        rows = [_cells(row, strings) for row in _elements(book.read(SHEET), "row")]
    rows = [row for row in rows if row]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        raise FileError(f"{source} must have a header and full rows below it in its first sheet, got {len(rows)} rows")
    try:
        values = np.array([[float(cell) for cell in row] for row in rows[1:]])
    except ValueError as error:
        raise FileError(f"{source} must have numbers below the header: {error}") from None
    return Table(source, tuple(name.strip() for name in rows[0]), values)


def _elements(xml: bytes, tag: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(xml).findall(f".//{{*}}{tag}")  # noqa: S314  (expat bounds what entities grow to)


def _strings(xml: bytes) -> list[str]:
    return ["".join(part.text or "" for part in item.findall(".//{*}t")) for item in _elements(xml, "si")]


def _cells(row: ElementTree.Element, strings: list[str]) -> list[str]:
    """The texts of a row's cells, without those that are empty."""
    return [text for cell in row.findall("{*}c") if (text := _text(cell, strings))]


def _text(cell: ElementTree.Element, strings: list[str]) -> str:
    kind, value = cell.get("t"), cell.find("{*}v")
    if kind == "inlineStr":
        return "".join(part.text or "" for part in cell.findall(".//{*}t"))
    text = "" if value is None else value.text or ""
    return strings[int(text)] if kind == "s" and text else text
