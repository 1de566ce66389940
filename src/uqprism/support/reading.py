"""Reading files that may be damaged: each fault becomes one error that names the file; sizes are checked before they are used."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from uqprism.errors import BadFileError, ClusterError, FileError, MissingExtraError, UqprismError

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

PathLike = str | os.PathLike[str]
LONGEST = 300  # characters of a reason
MOST_UNPACKED = 1 << 26  # bytes that any file may hold; more are refused if they are packed more densely than `DENSEST`
DENSEST = 200  # bytes of contents per byte of the file; predictions are packed less than 10 to 1
MOST_ARRAYS = 10_000
MOST_COLUMNS = 10_000  # of a table; each costs 0.2 ms and 35 kB even if it is empty
MOST_IN_ARRAYS = 20_000  # columns that come as rows of arrays, which cost half as much
MOST_DIRECTORY = 1 << 24  # bytes of the list of a zip file's entries, which Python reads at once
LARGEST_JSON = 1 << 26
BLOCK = 1 << 20


@contextmanager
def reading(path: PathLike, problem: str = "cannot be read") -> Iterator[None]:
    """Turn every error of the block into one that names the file and says what is wrong with it.

    Parsers raise all kinds of errors on damaged bytes: for a single flipped bit `zipfile` alone raises `ValueError`, `OSError`,
    `RuntimeError`, `NotImplementedError` or `struct.error`.
    """
    try:
        yield
    except (FileError, ClusterError, MissingExtraError):  # they say it already, or are no fault of the file
        raise
    except UqprismError as error:
        text = str(error).removeprefix(f"{os.fspath(path)}: ")
        raise BadFileError(path, text) from None
    except MemoryError:
        advice = "does not fit into memory; use Parquet or CSV, which score reads in batches, or several smaller files"
        raise FileError(f"{os.fspath(path)}: {advice}") from None
    except Exception as error:
        if type(error).__name__ == "ArrowCancelled":  # by Ctrl-C
            raise
        raise BadFileError(path, f"{problem}: {reason(error)}") from None


def reason(error: Exception) -> str:
    """The message of an error in one line of bounded length."""
    if isinstance(error, OSError) and error.strerror:
        # A damaged archive names places before the beginning of the file.
        return "it is damaged or of another kind" if error.errno == errno.EINVAL else error.strerror
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    lines = str(error).splitlines()
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def check_unpacked(path: PathLike, unpacked: int, size: int) -> None:
    """Refuse a file of this size whose contents need far more memory than predictions can."""
    if unpacked > max(MOST_UNPACKED, DENSEST * size):
        raise BadFileError(
            path,
            f"its {size:,} bytes unpack to {unpacked:,}, more than {DENSEST} to 1, which predictions never do; "
            "if it is meant to, write it without compression",
        )


def check_columns(path: PathLike, count: int, most: int = MOST_COLUMNS) -> None:
    """Refuse a table with more columns than can be read in seconds."""
    if count > most:
        raise BadFileError(path, f"holds {count:,} columns, more than {most:,} are not read; write the members in parts")


# JSON ----------------------------------------------------------------------------------------------------------------


def parse_json(text: str | bytes, path: PathLike, what: str = "its header") -> dict[str, Any]:
    """The JSON object in a text; errors name the file that the text is from."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFileError(path, f"{what} is not JSON: {reason(error)}") from None
    if not isinstance(found, dict):
        raise BadFileError(path, f"{what} must be a JSON object, got {type(found).__name__}")
    return found


def read_json(path: PathLike) -> dict[str, Any]:
    """The JSON object in a file."""
    with reading(path), open(path, "rb") as file:
        text = file.read(LARGEST_JSON + 1)
    if len(text) > LARGEST_JSON:
        raise BadFileError(path, f"is larger than {LARGEST_JSON:,} bytes, which no file of uqprism is")
    return parse_json(text, path, "its text")


# NPZ -----------------------------------------------------------------------------------------------------------------


@contextmanager
def loading(path: PathLike, kind: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The header and the arrays of a file that `write_npz` wrote as this kind; errors of the block are faults of the file."""
    with reading(path, "is not a readable .npz file"):
        arrays = npz_arrays(path)
    name = kind.rsplit(".", maxsplit=1)[-1]
    header = parse_json(arrays.pop("header").tobytes(), path) if "header" in arrays else {}
    if header.get("format") != kind:
        raise BadFileError(path, f"was not written by {name}.save")
    with reading(path, f"does not hold what {name}.save writes"):
        yield header, arrays


def npz_arrays(path: PathLike, names: Sequence[str] | None = None) -> dict[str, Any]:
    """The arrays of a .npz file: all, or those of these names that it has.

    Unlike `numpy.load`, it compares the size of each array with that of its entry before it takes memory, reads each entry to its
    end, where the checksum is compared, and evaluates no Python. Call it inside `reading`.
    """
    from zipfile import ZipFile  # as `import uqprism` must be quick

    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        _check_directory(path, file, size)
        with ZipFile(file) as archive:
            entries = _entries(path, archive.infolist())
            wanted = [name for name in (entries if names is None else names) if name in entries]
            check_unpacked(path, sum(entries[name].file_size for name in wanted), size)
            return {name: _array(path, archive, entries[name], name) for name in wanted}


def _check_directory(path: PathLike, file: IO[bytes], size: int) -> None:
    """Refuse a zip file with a list of entries that would need minutes to read."""
    file.seek(-min(size, 1 << 16), os.SEEK_END)
    tail = file.read()
    at = tail.rfind(b"PK\5\6")  # the record at the end of a zip file
    length = struct.unpack_from("<L", tail, at + 12)[0] if 0 <= at <= len(tail) - 22 else 0
    if MOST_DIRECTORY < length < 0xFFFFFFFF:
        raise BadFileError(path, f"its list of entries has {length:,} bytes; more than {MOST_ARRAYS:,} arrays are not read")


def _entries(path: PathLike, found: Sequence[ZipInfo]) -> dict[str, ZipInfo]:
    """The entries with arrays, by the names of these."""
    arrays = [entry for entry in found if entry.filename.endswith(".npy")]
    entries = {entry.filename.removesuffix(".npy"): entry for entry in arrays}
    if len(arrays) > MOST_ARRAYS:
        raise BadFileError(path, f"holds {len(arrays):,} arrays, more than {MOST_ARRAYS:,} are not read")
    if len(entries) < len(arrays):
        raise BadFileError(path, "holds two arrays of one name; write each once")
    return entries


def _array(path: PathLike, archive: ZipFile, entry: ZipInfo, name: str) -> Any:
    with archive.open(entry) as stream:
        shape, fortran, dtype = _array_header(path, stream, name)
        length, there = math.prod(shape) * dtype.itemsize, entry.file_size - stream.tell()
        if length != there:
            raise BadFileError(
                path, f"array {name!r} of shape {shape} needs {length:,} bytes, but has {there:,}: it is damaged or cut off"
            )
        contents = np.empty(length, np.uint8)
        view, done = contents.data, 0
        while done < length:
            block = stream.read(min(BLOCK, length - done))  # the last one compares the checksum
            if not block:
                raise BadFileError(path, f"array {name!r} is cut off")
            view[done : done + len(block)] = block
            done += len(block)
        return contents.view(dtype).reshape(shape, order="F" if fortran else "C")


# NumPy evaluates the header as Python; here it is matched, so that it can do nothing else.
_NUMBER = r"(?:0|[1-9]\d{0,17})L?\s*"  # NumPy of Python 2 wrote an L behind
_SHAPE = rf"\(\s*(?:{_NUMBER},\s*(?:{_NUMBER}(?:,\s*{_NUMBER})*,?\s*)?)?\)"
_ITEM = rf"\s*'(\w+)'\s*:\s*('[^']*'|True|False|{_SHAPE})\s*"
_HEADER = re.compile(rf"\s*\{{{_ITEM},{_ITEM},{_ITEM},?\s*\}}\s*")
_TYPE = re.compile(r"'[<>|=]?[biufcmMSUVO?]\d{0,9}(?:\[\w{1,9}\])?'")
LENGTHS = {1: "<H", 2: "<L", 3: "<L"}  # of the header, by the version of the format
LONGEST_HEADER = 10_000


def _array_header(path: PathLike, stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape of an array, whether its first axis is the fastest, and its type."""
    start = stream.read(8)
    if len(start) < 8 or start[:6] != b"\x93NUMPY" or start[6] not in LENGTHS:
        raise BadFileError(path, f"array {name!r} does not begin as arrays of NumPy do")
    form = LENGTHS[start[6]]
    length = struct.unpack(form, stream.read(struct.calcsize(form)))[0]
    text = stream.read(length).decode("latin-1") if length <= LONGEST_HEADER else ""
    if re.search(r"'descr':\s*\[", text):
        raise BadFileError(path, f"array {name!r} is structured; store a plain array for each of its fields")
    matched = _HEADER.fullmatch(text)
    items = dict(zip(matched.groups()[::2], matched.groups()[1::2], strict=True)) if matched else {}
    if (
        items.keys() != {"descr", "fortran_order", "shape"}
        or not _TYPE.fullmatch(items["descr"])
        or items["fortran_order"] not in {"True", "False"}
        or not items["shape"].startswith("(")
    ):
        raise BadFileError(path, f"array {name!r} has no valid header")
    dtype = np.dtype(items["descr"].strip("'"))
    if dtype.hasobject:
        raise BadFileError(path, f"array {name!r} holds Python objects; store plain arrays")
    if dtype.kind == "V" or not dtype.itemsize:
        raise BadFileError(path, f"array {name!r} has type {dtype}; store plain numbers")
    shape = tuple(int(each) for each in re.findall(r"\d+", items["shape"]))
    return shape, items["fortran_order"] == "True", dtype
