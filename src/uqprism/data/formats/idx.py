"""IDX, the format of MNIST: a type, the number of axes, their lengths, then the numbers, all big-endian; often gzipped."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError

Array = Any
GZIP = b"\x1f\x8b"
TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read(path: Path) -> Array:
    """The array in the file, in the machine's byte order."""
    return parse(path.read_bytes(), str(path))


def parse(data: bytes, name: str) -> Array:
    """The array in these bytes, which are gzipped or not; `name` is for errors."""
    if data[:2] == GZIP:
        try:
            data = gzip.decompress(data)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FileError(f"{name} is no complete gzip file: {error}") from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in TYPES:
        raise FileError(f"{name} is no IDX file: it must start with two zeros and a known type, got {data[:4].hex(' ')}")
    dtype, axes = np.dtype(TYPES[data[2]]), data[3]
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(4, start, 4))
    expected = start + math.prod(shape) * dtype.itemsize
    if len(data) != expected:
        raise FileError(f"{name} must have {expected:,} bytes for an array of shape {shape}, got {len(data):,}")
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))
