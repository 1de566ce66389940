"""Arrays of numbers in MATLAB 5 files: a header, then elements of a type, a length and contents, often compressed with zlib.

Not through `scipy.io.loadmat`: on a damaged file it can end the process, as it trusts the numbers that stand for types.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.formats.damage import reading

Array = Any
HEADER = 128
ORDERS = {b"IM": "<", b"MI": ">"}  # the last two bytes of the header, as the writing machine stores the number of "MI"
MATRIX, COMPRESSED = 14, 15
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}  # types of contents
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}  # types of arrays
COMPLEX = 0x0800


def read(path: Path) -> dict[str, Array]:
    """The arrays of real numbers in the file by name, in their own types; other variables are left out."""
    with reading(path, "no complete MATLAB 5 file"):
        data = memoryview(path.read_bytes())
        order = ORDERS.get(bytes(data[HEADER - 2 : HEADER]))
        if order is None:
            raise FileError(f"{path} is no complete MATLAB 5 file: its header must end with IM or MI")
        found = {}
        for kind, contents in _elements(data[HEADER:], order):
            if kind == COMPRESSED:  # zlib compares the checksum at its end
                [(kind, contents)] = _elements(memoryview(zlib.decompress(contents)), order)  # noqa: PLW2901
            if kind == MATRIX:
                found.update(_matrix(contents, order))
        return found


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """The type and the contents of each element."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        start = at + 8
        if kind >> 16:  # up to four bytes of contents stand in the tag
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        end = start + size
        if end > len(data) or (start == at + 4 and size > 4):
            raise ValueError(f"an element of {size:,} bytes is cut off")
        yield kind, data[start:end]
        at = end if kind == COMPRESSED else end + -end % 8


def _matrix(data: memoryview, order: str) -> dict[str, Array]:
    """The array by its name; nothing where it is of another kind than real numbers."""
    parts = _elements(data, order)
    (_, flags), (_, lengths), (_, name) = (next(parts) for _ in range(3))
    (flag,) = struct.unpack_from(f"{order}I", flags)
    if flag & 0xFF not in CLASSES or flag & COMPLEX:
        return {}
    stored, contents = next(parts)
    values = np.frombuffer(contents, order + STORED[stored])
    shape = tuple(np.frombuffer(lengths, order + "i4").tolist())
    if min(shape) < 0 or math.prod(shape) != len(values):
        raise ValueError(f"an array of shape {shape} has {len(values):,} numbers")
    return {bytes(name).decode(): values.astype(CLASSES[flag & 0xFF]).reshape(shape, order="F")}
