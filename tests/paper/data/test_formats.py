"""Files are read as what they are, and damaged ones are refused or read as they were.

Formats with a checksum of their contents must give the very same data, as where only a date was changed. Those without one cannot
tell a wrong pixel from a right one: there, the data must have the shape and the type of the original.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import numpy as np
import pyarrow
import pytest
from pandas import DataFrame
from pyarrow import parquet

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.formats import (
    read_bytes,
    read_csv,
    read_labels,
    read_npz,
    read_parquet,
    read_xlsx,
    tar_member,
    zip_member,
)
from uqprism.paper.data.images import read_cifar, read_emnist, read_idx, read_images, read_svhn
from uqprism.paper.data.sets.street_scenes import read_camvid

ROWS = [["AT", "V", "PE"], [14.96, 41.76, 463.26], [25, -1e-3, 444.37]]


def check(table: DataFrame, names: list[str], values: object) -> None:
    assert list(table) == names
    assert set(map(str, table.dtypes)) == {"float64"}
    np.testing.assert_array_equal(table, values)


@pytest.mark.parametrize(
    ("text", "options", "names", "values"),
    [
        (b'"a", b,c\r\n1,2.5,-3e2\r\n4,5,6\r\n', {}, ["a", "b", "c"], [[1, 2.5, -300], [4, 5, 6]]),
        (b"url, a, b\nhttp://x/#1,1,2\nhttp://y,3,4", {"skipped": ("url", "another")}, ["a", "b"], [[1, 2], [3, 4]]),
        (b"1,2\n3,4\n", {"names": ["a", "b"]}, ["a", "b"], [[1, 2], [3, 4]]),
        (b"1,2", {"names": ["a", "b"]}, ["a", "b"], [[1, 2]]),
    ],
)
def test_columns_of_csv_files_are_named_by_the_first_line_or_by_the_caller(text: bytes, options, names, values) -> None:
    """Skipped columns may hold text."""
    check(read_csv(text, "t.csv", **options), names, values)


def test_numbers_in_text_are_rounded_correctly(rng) -> None:
    values = rng.normal(size=(500, 3)) * 10.0 ** rng.integers(-30, 30, (500, 3))
    np.testing.assert_array_equal(read_csv(files.csv(values), "t.csv", names=["a", "b", "c"]), values)


@pytest.mark.parametrize(
    ("data", "names", "message"),
    [
        (b"a,b\n", None, "no table of 2 columns.*No columns"),
        (b"", ["a", "b"], "no table of 2 columns.*No columns"),
        (b"a,b\n1,2\n3", None, "no table of 2 columns"),
        (b"a,b\n1,2\n3,\n", None, "no table of 2 columns"),
        (b"a,b\n1,2\n3,x\n", None, "no table of 2 columns.*'x'"),
        (b"a,b\n1,2\n3,nan\n", None, "no table of 2 columns"),
        (b"a,b\n1,2\n3,4,5\n", None, "no table of 2 columns"),
        (b"a,b\n1,2,3\n", None, "must have 2 columns, got 3"),
        (b"1,2\n", ["a", "b", "c"], "must have 3 columns, got 2"),
        (b"\x93\x00\xff,\xfe\n\xff\xfe,1\n", None, "no table of 2 columns"),
    ],
)
def test_damaged_text_is_refused(data: bytes, names: list[str] | None, message: str) -> None:
    with pytest.raises(FileError, match=rf"t\.csv .*{message}"):
        read_csv(data, "t.csv", names=names)


def test_the_first_sheet_of_a_workbook_is_read() -> None:
    check(read_xlsx(files.xlsx(ROWS), "b.xlsx"), ROWS[0], ROWS[1:])


def test_texts_may_be_in_the_cells_or_in_a_table_of_strings() -> None:
    """openpyxl writes them into the cells, Excel into the table."""
    with ZipFile(io.BytesIO(files.xlsx([["A"], [2.0]]))) as book:
        members = {name: book.read(name) for name in book.namelist()}
    sheet, strings, types = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "[Content_Types].xml"
    inside = b't="inlineStr"><is><t>A</t></is>'
    assert inside in members[sheet]
    members[sheet] = members[sheet].replace(inside, b't="s"><v>0</v>')
    space = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    members[strings] = b"<sst " + space + b"><si><t>B</t></si></sst>"
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    entry = b'<Override PartName="/xl/sharedStrings.xml" ContentType="' + kind + b'" /></Types>'
    members[types] = members[types].replace(b"</Types>", entry)
    check(read_xlsx(files.zipped(members), "b.xlsx"), ["B"], [[2.0]])
    members[sheet] = members[sheet].replace(b"<v>0</v>", b"<v>7</v>")
    with pytest.raises(FileError, match="no complete"):
        read_xlsx(files.zipped(members), "b.xlsx")


def test_damaged_workbooks_are_refused() -> None:
    whole = files.xlsx(ROWS)
    for data, message in (
        (whole[:-40], "no complete"),
        (b"a,b\n1,2\n", "no complete"),
        (files.zipped({"other": b""}), "no complete"),
        (files.zipped({"xl/worksheets/sheet1.xml": b"<worksheet><row>"}), "no complete"),
        (files.xlsx(ROWS[:1]), "no rows below its header"),
        (files.xlsx([*ROWS, [1.0, None, 2.0]]), "no complete"),
        (files.xlsx([*ROWS, [1.0, "x", 2.0]]), "no complete .* of numbers: .*column V"),
    ):
        with pytest.raises(FileError, match=rf"b\.xlsx .*{message}"):
            read_xlsx(data, "b.xlsx")


def test_damaged_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.arange(1000), y=np.arange(3))
    whole = path.read_bytes()
    for data in (whole[:-10], whole[: len(whole) // 2], b"PK", whole[:100] + b"\xff" * 200 + whole[300:]):
        with pytest.raises(FileError, match=r"no complete \.npz file"):
            read_npz(files.put(tmp_path, "broken.npz", data), ["x"])
    np.save(tmp_path / "one.npy", np.arange(3))
    np.savez(tmp_path / "pickled.npz", x=np.array([{}], dtype=object))
    for other in ("one.npy", "pickled.npz"):
        with pytest.raises(FileError, match=r"no complete \.npz file"):
            read_npz(tmp_path / other, ["x"])
    with pytest.raises(FileError, match="must hold the arrays x, z, and lacks z"):
        read_npz(path, ["x", "z"])


def test_parquet_tables_of_mixed_numbers_become_doubles(tmp_path: Path) -> None:
    columns = {"a": pyarrow.array([1, 2], "int16"), "b": pyarrow.array([0.5, 1.5], "float32"), "c": pyarrow.array(["x", "y"])}
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    check(read_parquet(path, skipped=("c",)), ["a", "b"], [[1, 0.5], [2, 1.5]])
    with pytest.raises(FileError, match="no complete Parquet table of numbers"):
        read_parquet(path)
    for data in (path.read_bytes()[:-10], b"", b"a,b\n1,2\n"):
        with pytest.raises(FileError, match="no complete Parquet table"):
            read_parquet(files.put(tmp_path, "broken.parquet", data))


FLIPS = 150  # files that are tried for each format
RNG = np.random.default_rng(5)
IMAGES, LABELS = RNG.integers(0, 256, (4, 3, 32, 32), dtype=np.uint8), np.array([3, 0, 9, 1], np.uint8)
STRIPES = np.repeat(np.arange(24, dtype=np.uint8)[:, None], 40, axis=1)
NUMBERS = RNG.normal(size=(30, 3)).round(3)
BATCH = {"readme.html": b"hello" * 50, "cifar-10-batches-bin/test_batch.bin": files.cifar(IMAGES, LABELS)}


class Case(NamedTuple):
    """The bytes of a file, what reads it, and whether its format has a checksum of the contents."""

    whole: bytes
    read: Callable[[Path], object]
    checked: bool


def written(write: Callable[..., object], *arguments: object, **options: object) -> bytes:
    buffer = io.BytesIO()
    write(buffer, *arguments, **options)
    return buffer.getvalue()


def table(**options: object) -> bytes:
    columns = {name: NUMBERS[:, i] for i, name in enumerate("abc")}
    return written(lambda file: parquet.write_table(pyarrow.table(columns), file, **options))


def house_numbers(**options: bool) -> Case:
    whole = files.matlab({"X": IMAGES.transpose(2, 3, 1, 0), "y": LABELS[:, None] + 1}, **options)
    sha256 = hashlib.sha256(whole).hexdigest()
    return Case(whole, lambda path: read_svhn(path, sha256), True)


WORKBOOK = files.xlsx([["a", "b", "c"], *NUMBERS.tolist()])
SCENES = files.scenes("val", list(IMAGES.transpose(0, 2, 3, 1)), IMAGES[:, 0])
CSV = files.csv(NUMBERS, ["a", "b", "c"])
CASES = {
    "CIFAR-10 archive": Case(files.tarred(BATCH), read_cifar, True),
    "gzipped tar": Case(files.tarred(BATCH), lambda path: tar_member(path, "readme.html"), True),
    "zip": Case(files.zipped({"a/b.csv": CSV, "c": b""}), lambda path: zip_member(path, "b.csv"), True),
    "EMNIST archive": Case(files.zipped(files.letters(IMAGES[:, 0], LABELS)), read_emnist, True),
    "gzipped IDX": Case(files.idx_gz(IMAGES[:, 0]), lambda path: read_idx(path, 3), True),
    "SVHN, compressed": house_numbers(compressed=True),
    "compact images": Case(written(np.savez, x=IMAGES[:, 0], y=LABELS), read_images, True),
    "compact images, compressed": Case(written(np.savez_compressed, x=IMAGES[:, 0] // 64, y=LABELS), read_images, True),
    "compact scenes": Case(written(np.savez, **SCENES), lambda path: read_camvid(path, "val"), True),
    "workbook": Case(WORKBOOK, lambda path: read_xlsx(path.read_bytes(), "b.xlsx"), True),
    "PNG": Case(files.picture(STRIPES, "PNG"), read_labels, True),
    "IDX": Case(files.idx(IMAGES[:, 0]), lambda path: read_idx(path, 3), False),
    "SVHN": house_numbers(),
    "Parquet": Case(table(), read_parquet, False),
    "Parquet with checksums": Case(table(write_page_checksum=True), read_parquet, False),  # not of its footer
    "text": Case(CSV, lambda path: read_csv(path.read_bytes(), "t.csv"), False),
}


def arrays(value: object) -> list[np.ndarray]:
    """What was read, as arrays."""
    if isinstance(value, DataFrame):
        return [value.to_numpy()]
    if isinstance(value, bytes):
        return [np.frombuffer(value, np.uint8)]
    return [np.asarray(each) for each in value] if isinstance(value, tuple) else [np.asarray(value)]


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """The same bytes but for one to four, next to each other or not, one of which is in the last tenth every fourth time."""
    values = np.frombuffer(whole, np.uint8).copy()
    places = rng.integers(len(values), size=rng.integers(1, 5))
    if rng.random() < 0.25:
        places[0] = len(values) - 1 - rng.integers(max(len(values) // 10, 1))
    values[places] ^= rng.integers(1, 256, size=len(places), dtype=np.uint8)
    return values.tobytes()


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_file_is_refused_or_read_as_it_was(name: str, tmp_path: Path) -> None:
    whole, read, checked = CASES[name]
    expected = arrays(read(files.put(tmp_path, "whole", whole)))
    rng, refused = np.random.default_rng(17), 0
    for _ in range(FLIPS):
        path = files.put(tmp_path, "damaged", damaged(whole, rng))
        try:
            found = arrays(read(path))
        except FileError:
            refused += 1
            continue
        assert [(each.shape, each.dtype) for each in found] == [(each.shape, each.dtype) for each in expected]
        if checked:
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
    assert not checked or refused > FLIPS // 2


@pytest.mark.parametrize("place", [0.02, 0.3, 0.6, 0.9, 0.999])
def test_a_flipped_byte_anywhere_in_a_cifar_archive_is_noticed(place: float, tmp_path: Path) -> None:
    values = bytearray(CASES["CIFAR-10 archive"].whole)
    values[int(place * len(values))] ^= 0x10
    path = files.put(tmp_path, "cifar-10-binary.tar.gz", bytes(values))
    with pytest.raises(FileError, match=rf"{path} is damaged or of another kind: .*; delete it and fetch it again"):
        read_cifar(path)


def test_pixels_of_a_cifar_archive_are_held_against_its_checksum(tmp_path: Path) -> None:
    """The pixels are stored as they are, so that nothing but the checksum at the end can tell."""
    whole = gzip.compress(gzip.decompress(files.tarred(BATCH)), compresslevel=0)
    at = whole.index(IMAGES[2].tobytes()[:50]) + 7
    path = files.put(tmp_path, "c.tar.gz", whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(FileError, match="CRC check failed"):
        read_cifar(path)


def test_an_array_that_claims_to_be_shorter_is_held_against_its_checksum(tmp_path: Path) -> None:
    whole = written(np.savez, x=IMAGES[:, 0], y=LABELS)
    path = files.put(tmp_path, "a.npz", whole.replace(b"(4, 32, 32)", b"(2, 32, 32)"))
    with pytest.raises(FileError, match=r"no complete \.npz file: array .x. of shape .* needs 2,048 bytes, but has 4,096"):
        read_images(path)


def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    for read in (read_cifar, read_emnist, read_images, read_parquet, read_bytes, read_labels):
        with pytest.raises(FileError, match=rf"cannot read {tmp_path / 'none'}: No such file"):
            read(tmp_path / "none")
