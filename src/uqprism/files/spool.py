"""Numbers of all rows of large files, kept in temporary files: their exact ranks with little memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

CHUNK = 1 << 20  # numbers in memory at a time
DIGIT = 16  # bits that a pass over the file settles


class Spool:
    """A column of doubles in a file, appended to once and then read in chunks; NaN is counted and left out of ranks.

    Args:
        path: the file, which `close` removes.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.missing, self._count = path, 0, 0
        self._file = path.open("wb")

    def append(self, values: np.ndarray) -> None:
        """Add the numbers of the next rows."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        self.missing += int(np.isnan(values).sum())
        self._count += len(values)
        values.tofile(self._file)

    def complete(self) -> None:
        """End the writing."""
        self._file.close()

    def __len__(self) -> int:
        return self._count - self.missing

    def rows(self) -> Iterator[np.ndarray]:
        """The numbers of all rows, also those that are missing."""
        with self.path.open("rb") as file:
            while len(part := np.fromfile(file, np.float64, CHUNK)):
                yield part

    def chunks(self) -> Iterator[np.ndarray]:
        """All numbers."""
        for part in self.rows():
            yield part[~np.isnan(part)]

    def largest(self, count: int) -> float:
        """The number that so many rows reach or exceed; exact, in four passes over the file that each settle 16 bits."""
        prefix, left = 0, len(self) - count  # how many are below it among those that begin with the prefix
        for shift in range(64 - DIGIT, -1, -DIGIT):
            counts = np.zeros(1 << DIGIT, np.int64)
            for part in self.chunks():
                keys = _ordered(part)
                if shift + DIGIT < 64:
                    keys = keys[keys >> np.uint64(shift + DIGIT) == np.uint64(prefix)]
                digits = (keys >> np.uint64(shift)) & np.uint64((1 << DIGIT) - 1)
                counts += np.bincount(digits.astype(np.int64), minlength=len(counts))
            digit = int(np.searchsorted(np.cumsum(counts), left, side="right"))
            left -= int(counts[:digit].sum())
            prefix = (prefix << DIGIT) | digit
        return _number(prefix)

    def median(self) -> float:
        """The number in the middle; the upper one of two. NaN without any numbers."""
        return self.largest((len(self) + 1) // 2) if len(self) else float("nan")

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def _ordered(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of the values: the bits of a double, inverted for negative ones."""
    bits = (values + 0.0).view(np.uint64)  # the sum makes minus zero plain
    return np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))


def _number(key: int) -> float:
    bits = key ^ (1 << 63) if key >> 63 else key ^ ((1 << 64) - 1)
    return float(np.uint64(bits).view(np.float64))
