"""Readers of file formats. A file that is damaged or of another kind raises one `FileError` that names it."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from uqprism.errors import BadFileError, FileError, UqprismError
from uqprism.support.optional import require
from uqprism.support.reading import npz_arrays

Array = Any
DataFrame = Any
AGAIN = "delete it and fetch it again"
DAMAGED = "damaged or of another kind"
GZIP = b"\x1f\x8b"  # the first bytes of every gzip file
BLOCK = 1 << 20  # bytes


@contextmanager
def reading(source: object, problem: str) -> Iterator[None]:
    """Turn any error of the block into a `FileError` that says "`source` is `problem`".

    Parsers raise many kinds of errors on damaged bytes: for a single flipped bit, `zipfile` alone raises `ValueError`, `OSError`,
    `RuntimeError`, `NotImplementedError` or `struct.error`.
    """
    try:
        yield
    except BadFileError as error:
        raise FileError(f"{source} is {problem}: {error.reason}; {AGAIN}") from None
    except (UqprismError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:  # the file could not be opened
            raise FileError(f"cannot read {source}: {error.strerror}") from None
        raise FileError(f"{source} is {problem}: {str(error) or type(error).__name__}; {AGAIN}") from None


def read_bytes(path: Path, sha256: str | None = None) -> bytes:
    """The contents of the file; with `sha256`, only if that is their checksum in hexadecimal."""
    with reading(path, "unreadable"):
        data = path.read_bytes()
    if sha256 is not None and (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise FileError(f"{path} is {DAMAGED}: its SHA-256 is {found}, that of the official file is {sha256}; {AGAIN}")
    return data


def zip_member(path: Path, name: str) -> bytes:
    """The contents of the one member with this file name, in any folder of the zip archive, if its checksum is right."""
    with reading(path, DAMAGED), ZipFile(path) as archive:
        return archive.read(_only(path, name, archive.namelist()))


def tar_member(path: Path, name: str) -> bytes:
    """The contents of the one member with this file name in a tar archive, gzipped or not; gzip's checksum is compared."""
    with reading(path, DAMAGED), _plain(path) as stream:
        contents: dict[str, bytes] = {}
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                if member.isfile():
                    wanted = archive.extractfile(member) if _base(member.name) == name else None
                    contents[member.name] = b"" if wanted is None else wanted.read()
        while stream.read(BLOCK):  # tarfile stops at the end of the archive, and gzip's checksum comes after it
            pass
        return contents[_only(path, name, list(contents))]


def _plain(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """The file opened for reading, decompressed if it is gzipped."""
    with path.open("rb") as file:
        compressed = file.read(2) == GZIP
    return gzip.open(path) if compressed else path.open("rb")


def _base(member: str) -> str:
    return member.rsplit("/", 1)[-1]


def _only(path: Path, name: str, members: list[str]) -> str:
    found = [member for member in members if _base(member) == name]
    if len(found) != 1:
        raise FileError(f"{path} must hold one file {name}, got {len(found)} among {len(members)} members")
    return found[0]


def read_npz(path: Path, names: Sequence[str]) -> list[Array]:
    """The arrays of these names in a .npz file."""
    with reading(path, "no complete .npz file"):
        found = npz_arrays(path, names)
        absent = [name for name in names if name not in found]
        if absent:
            raise FileError(f"{path} must hold the arrays {', '.join(names)}, and lacks {', '.join(absent)}")
        return [found[name] for name in names]


def read_parquet(path: Path, skipped: Collection[str] = ()) -> DataFrame:
    """A table of numbers as float64, without the skipped columns."""
    pandas, _ = require("pandas", extra="paper"), require("pyarrow", extra="paper")
    from pyarrow.parquet import ParquetFile

    with (
        reading(path, "no complete Parquet table of numbers"),
        path.open("rb") as opened,
        ParquetFile(opened, page_checksum_verification=True) as file,
    ):
        names = [name for name in file.schema_arrow.names if name not in skipped]
        table = file.read(names)
        if table.num_rows != file.metadata.num_rows:
            raise FileError(f"{path} must have the {file.metadata.num_rows:,} rows that its footer names, got {table.num_rows:,}")
        return pandas.DataFrame({name: table[name].to_numpy().astype(np.float64) for name in names})


def read_csv(data: bytes, source: str, *, names: Sequence[str] | None = None, skipped: Collection[str] = ()) -> DataFrame:
    """Comma-separated numbers as float64, without the skipped columns, which may hold text.

    The first line names the columns, unless `names` does. A row with a missing value is an error.
    """
    pandas = require("pandas", extra="paper")
    first, _, below = data.partition(b"\n")
    columns = list(names or (name.strip(' "\r') for name in first.decode(errors="replace").split(",")))
    types = {i: str if name in skipped else np.float64 for i, name in enumerate(columns)}
    body = io.BytesIO(data if names else below)
    with reading(source, f"no table of {len(columns)} columns of numbers"):
        table = pandas.read_csv(body, header=None, dtype=types, na_filter=False, float_precision="round_trip")
        if table.shape[1] != len(columns):
            raise FileError(f"{source} must have {len(columns)} columns, got {table.shape[1]}")
    return table.set_axis(columns, axis=1)[[name for name in columns if name not in skipped]]


def read_xlsx(data: bytes, source: str) -> DataFrame:
    """The first sheet of a workbook as float64: a row of column names, then rows of numbers without empty cells."""
    pandas, _ = require("pandas", extra="paper"), require("openpyxl", extra="paper")
    with reading(source, "no complete .xlsx workbook of numbers"):
        with ZipFile(io.BytesIO(data)) as archive:  # openpyxl does not read every member to its checksum
            if damaged := archive.testzip():
                raise BadZipFile(f"the checksum of {damaged} is wrong")
        table = pandas.read_excel(io.BytesIO(data), engine="openpyxl", dtype=np.float64, na_filter=False)
        table = table.rename(columns=str.strip)
    if table.empty:
        raise FileError(f"{source} has no rows below its header")
    return table


def read_picture(data: bytes, source: object) -> Array:
    """The picture (3, height, width), uint8, in the bytes of a JPEG or PNG file; `source` names it in errors."""
    return np.asarray(_opened(data, source).convert("RGB")).transpose(2, 0, 1)


def read_labels(path: Path) -> Array:
    """The numbers (height, width), uint8, of a picture file with one channel of 8 bits."""
    image = _opened(read_bytes(path), path)
    if image.mode not in {"L", "P"}:
        raise FileError(f"{path} must have one channel of 8 bits with label numbers, got {image.mode}")
    return np.asarray(image)


def _opened(data: bytes, source: object) -> Any:
    require("PIL", extra="deep")
    from PIL import Image

    with reading(source, "no complete picture"):
        Image.open(io.BytesIO(data)).verify()  # compares the checksums of a PNG, some of which loading ignores
        image = Image.open(io.BytesIO(data))
        image.load()  # reads all of it, so that a file that is cut off is noticed here
    return image
