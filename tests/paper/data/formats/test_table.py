"""Tables are read from comma-separated text and from workbooks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.formats.table import read_csv
from uqprism.paper.data.formats.xlsx import SHEET, read_xlsx


def test_a_header_names_the_columns() -> None:
    table = read_csv(b'"a", b,c\r\n1,2.5,-3e2\r\n4,5,6\r\n', "t.csv")
    assert table.names == ("a", "b", "c")
    np.testing.assert_array_equal(table.values, [[1, 2.5, -300], [4, 5, 6]])
    np.testing.assert_array_equal(table.columns(["c", "a"]), [[-300, 1], [6, 4]])


def test_skipped_columns_may_hold_text() -> None:
    table = read_csv(b"url, a, b\nhttp://x/#1,1,2\nhttp://y,3,4", "t.csv", skipped=("url", "elsewhere"))
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])


def test_names_may_be_given() -> None:
    table = read_csv(b"1,2\n3,4\n", "t.csv", names=["a", "b"])
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(read_csv(b"1,2", "t.csv", names=["a", "b"]).values, [[1, 2]])


@pytest.mark.parametrize(
    ("data", "names", "message"),
    [
        (b"a,b\n", None, "has no rows"),
        (b"", ["a", "b"], "has no rows"),
        (b"a,b\n1,2\n3", None, "no table of 2 columns"),
        (b"a,b\n1,2\n3,x\n", None, "no table of 2 columns.*'x'"),
        (b"a,b\n1,2,3\n", None, "must have 2 columns, got 3"),
        (b"1,2\n", ["a", "b", "c"], "must have 3 columns, got 2"),
        (b"\x93\x00\xff,\xfe\n\xff\xfe,1\n", None, "no table of 2 columns"),
    ],
)
def test_damaged_text_is_refused(data: bytes, names: list[str] | None, message: str) -> None:
    with pytest.raises(FileError, match=message) as error:
        read_csv(data, "t.csv", names=names)
    assert "t.csv" in str(error.value)


def test_absent_columns_are_named() -> None:
    with pytest.raises(FileError, match=r"t\.csv must have the columns y, z, got a, b"):
        read_csv(b"a,b\n1,2\n", "t.csv").columns(["a", "y", "z"])


def test_the_first_sheet_of_a_workbook_is_read() -> None:
    rows: list[list[object]] = [["AT", "V", "PE"], [14.96, 41.76, 463.26], [25, -1e-3, 444.37]]
    table = read_xlsx(files.xlsx(rows), "b.xlsx")
    assert table.names == ("AT", "V", "PE")
    np.testing.assert_array_equal(table.values, rows[1:])


def test_texts_inside_cells_are_read_too() -> None:
    sheet = b'<x xmlns="n"><row><c t="inlineStr"><is><t>A</t></is></c></row><row><c><v>2</v></c></row></x>'
    table = read_xlsx(files.zipped({SHEET: sheet}), "b.xlsx")
    assert (table.names, table.values.tolist()) == (("A",), [[2.0]])


def test_damaged_workbooks_are_refused() -> None:
    whole = files.xlsx([["a", "b"], [1.0, 2.0]])
    for data in (whole[:-40], b"a,b\n1,2\n", files.zipped({"other": b""}), files.zipped({SHEET: b"<worksheet><row>"})):
        with pytest.raises(FileError, match=r"b\.xlsx is no \.xlsx workbook, or damaged"):
            read_xlsx(data, "b.xlsx")
    shared = files.zipped({SHEET: b'<w xmlns="n"><row><c t="s"><v>7</v></c></row></w>'})
    with pytest.raises(FileError, match="damaged"):
        read_xlsx(shared, "b.xlsx")
    for rows, message in (
        ([["a", "b"]], "got 1 rows"),
        ([["a", "b"], [1.0, None]], "full rows"),
        ([["a", "b"], [1.0, "x"]], "numbers below the header.*'x'"),
    ):
        with pytest.raises(FileError, match=message):
            read_xlsx(files.xlsx(rows), "b.xlsx")
