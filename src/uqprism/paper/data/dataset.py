"""`Dataset`: samples for training, validation and testing, and how rows are split into these parts."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError, ShapeError
from uqprism.support.reading import loading
from uqprism.support.storage import write_npz

Array = Any
KIND = "uqprism.paper.data.Dataset"
PARTS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs with their targets.

    Attributes:
        inputs: (n, features) for tables, (n, channels, height, width) for images; images are uint8.
        targets: (n,), finite, float64.
    """

    inputs: Array
    targets: Array

    def __post_init__(self) -> None:
        inputs = _numbers(self.inputs, "inputs")
        targets = _numbers(self.targets, "targets").astype(np.float64, copy=False)
        if inputs.ndim < 2:
            raise ShapeError(f"inputs must be (n, features) or (n, channels, height, width), got shape {inputs.shape}")
        if targets.ndim != 1 or len(inputs) != len(targets):
            raise ShapeError(f"targets must be one number per row of inputs, ({len(inputs)},), got shape {targets.shape}")
        if not np.isfinite(targets).all():  # one NaN makes every loss NaN
            row = int(np.flatnonzero(~np.isfinite(targets))[0])
            raise InvalidValueError(f"targets must be finite, got {targets[row]} in row {row}; drop such rows")
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "targets", targets)

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: Array) -> Samples:
        """The samples with these row numbers, in their order, or those where a mask is true."""
        return Samples(self.inputs[rows], self.targets[rows])


@dataclass(frozen=True, eq=False)
class Dataset:
    """Three disjoint sets of samples.

    Attributes:
        name: its name in results.
        train: for training; in active learning, the pool.
        validation: for early stopping.
        test: for the results.
    """

    name: str
    train: Samples
    validation: Samples
    test: Samples

    def __post_init__(self) -> None:
        shapes = {part: getattr(self, part).inputs.shape[1:] for part in PARTS}
        if len(set(shapes.values())) > 1:
            raise ShapeError(f"inputs of {self.name} must have one shape in all parts, got {shapes}")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{part}={len(getattr(self, part))}" for part in PARTS)
        return f"Dataset({self.name!r}, {sizes}, inputs={self.train.inputs.shape[1:]})"

    def checksum(self) -> str:
        """SHA-256 of the numbers, their types and shapes, in hexadecimal; the name does not change it."""
        digest = hashlib.sha256()
        for key, array in self._arrays().items():
            # One byte order, so that the checksum is the same on every machine.
            plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            digest.update(f"{key} {plain.dtype.str} {plain.shape}\n".encode())
            digest.update(plain.data if plain.size else b"")
        return digest.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one .npz file, completely or not at all."""
        write_npz(path, KIND, {"name": self.name}, self._arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dataset:
        """Read a file that `save` wrote."""
        with loading(path, KIND) as (header, arrays):
            parts = {part: Samples(arrays[f"{part}_inputs"], arrays[f"{part}_targets"]) for part in PARTS}
            return cls(name=str(header["name"]), **parts)

    def _arrays(self) -> dict[str, Array]:
        return {f"{part}_{field}": getattr(getattr(self, part), field) for part in PARTS for field in ("inputs", "targets")}


def split(name: str, samples: Samples, seed: int, test_fraction: float, validation_fraction: float) -> Dataset:
    """The rows in random order, split into test, validation and training rows; both fractions are of all rows."""
    # Test rows first, so that they do not depend on the share of validation rows.
    test, validation, train = split_rows(len(samples), seed, test_fraction, validation_fraction)
    return Dataset(name, train=samples.take(train), validation=samples.take(validation), test=samples.take(test))


def split_rows(count: int, seed: int, *fractions: float) -> list[Array]:
    """Row numbers 0 to count-1 in random order, in one part per fraction and one of the remaining rows; none may be empty."""
    if not all(0.0 < fraction < 1.0 for fraction in fractions) or sum(fractions) >= 1.0:
        raise InvalidValueError(f"fractions must lie between 0 and 1 and leave rows to train on, got {fractions}")
    ends = np.cumsum([round(fraction * count) for fraction in fractions])
    pieces = np.split(np.random.default_rng(seed).permutation(count), ends)
    if not all(len(piece) for piece in pieces):
        raise InvalidValueError(f"{count} rows cannot be split into parts of {fractions} and the rest: one would be empty")
    return pieces


def _numbers(values: Array, name: str) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":  # an array of objects could not be stored without pickle
        raise InvalidValueError(f"{name} must be numbers, got an array of {array.dtype}")
    return array
