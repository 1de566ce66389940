"""IDX, the format of MNIST: a type, the number of axes, their lengths, then the numbers, all big-endian; often gzipped."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.formats.archives import GZIP
from uqprism.paper.data.formats.damage import AGAIN, reading

Array = Any
TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read(path: Path) -> Array:
    """The array in the file, in the machine's byte order."""
    with reading(path, "unreadable"):
        data = path.read_bytes()
    return parse(data, str(path))


def of_bytes(array: Array, axes: int, name: object) -> Array:
    """The array, if it is one of bytes with so many axes; `name` is for errors."""
    if array.dtype != np.uint8 or array.ndim != axes:
        raise FileError(f"{name} must hold uint8 with {axes} axes, got {array.dtype} of shape {array.shape}; {AGAIN}")
    return array


def parse(data: bytes, name: str) -> Array:
    """The array in these bytes, which are gzipped or not; `name` is for errors."""
    if data[:2] == GZIP:
        with reading(name, "no complete gzip file"):
            data = gzip.decompress(data)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in TYPES:
        raise FileError(f"{name} is no IDX file: it must start with two zeros and a known type, got {data[:4].hex(' ')}")
    dtype, axes = np.dtype(TYPES[data[2]]), data[3]
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(4, start, 4))
    expected = start + math.prod(shape) * dtype.itemsize
    if len(data) != expected:
        raise FileError(f"{name} must have {expected:,} bytes for an array of shape {shape}, got {len(data):,}")
    with reading(name, "no IDX file that NumPy can hold"):
        return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))
