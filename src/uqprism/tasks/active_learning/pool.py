"""The data of a loop: a pool of inputs of any kind with their targets, and a test set."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from uqprism.arrays import Array, is_array, is_torch, to_numpy
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError, ShapeError

Features = Callable[[Any, Any], Array]


@dataclass(frozen=True, eq=False)
class Pool:
    """Inputs and targets of the pool, and those of the test set if there is one; targets are finite numbers (rows,).

    Inputs are kept as they came: arrays of any library, data frames, images, sparse matrices.
    """

    inputs: Any
    targets: Array
    test_inputs: Any = None
    test_targets: np.ndarray | None = None

    @classmethod
    def of(cls, inputs: Any, targets: Any, test: Any = None) -> Pool:
        """Check inputs, targets and the test set."""
        inputs, targets = _pair(inputs, targets, "pool_inputs", "pool_targets")
        if test is None:
            return cls(inputs, targets)
        if not isinstance(test, tuple | list) or len(test) != 2:
            raise ArgumentError(f"test must be a pair (inputs, targets), got {type(test).__name__}; leave it out for no metrics")
        test_inputs, test_targets = _pair(test[0], test[1], "test inputs", "test targets")
        if len(test_targets) < 2:
            raise InvalidValueError(f"test must have at least 2 rows, got {len(test_targets)}; leave it out for no metrics")
        if _row_shape(test_inputs) != _row_shape(inputs):
            raise ShapeError(
                f"test inputs must have rows of the pool's shape {_row_shape(inputs)}, got {_row_shape(test_inputs)}"
            )
        return cls(inputs, targets, test_inputs, to_numpy(test_targets).astype(np.float64))

    def __len__(self) -> int:
        return len(self.targets)

    def rows(self, indices: np.ndarray) -> tuple[Any, Array]:
        """Inputs and targets of some rows, in this order, of the kind that they came as."""
        return take(self.inputs, indices), take(self.targets, indices)

    def others(self, indices: np.ndarray) -> np.ndarray:
        """The indices that are not among these, sorted."""
        left = np.ones(len(self), dtype=bool)
        left[indices] = False
        return np.flatnonzero(left)

    def features(self, function: Features | None, model: Any) -> np.ndarray:
        """The features that distances are measured in, (rows, d), in standard units; by default the inputs."""
        if function is None:
            return self._flat_inputs
        return in_standard_units(_matrix(function(model, self.inputs), len(self), "features(model, inputs)"))

    @cached_property
    def _flat_inputs(self) -> np.ndarray:
        return in_standard_units(_matrix(self.inputs, len(self), "pool_inputs"))

    @cached_property
    def fingerprint(self) -> dict[str, str | None]:
        """Checksums of inputs and targets, which are compared when a loop is resumed."""
        return {
            "pool_inputs": digest(self.inputs),
            "pool_targets": digest(self.targets),
            "test inputs": None if self.test_targets is None else digest(self.test_inputs),
            "test targets": None if self.test_targets is None else digest(self.test_targets),
        }


def take(values: Any, indices: np.ndarray) -> Any:
    """Some rows of an array of any library, a data frame or a sparse matrix, as the same kind."""
    if hasattr(values, "iloc"):
        return values.iloc[indices]  # brackets would look for columns
    if is_torch(values):
        import torch

        return values[torch.as_tensor(indices, device=values.device)]
    return values[indices]


def digest(values: Any) -> str:
    """A hash of all numbers, their shape and their type."""
    found = hashlib.sha256()
    for part in _hashable(values):
        found.update(f"{part.dtype} {part.shape}".encode())
        # The bytes of an array of objects are their addresses.
        found.update(repr(part.tolist()).encode() if part.dtype.hasobject else np.ascontiguousarray(part).data.cast("B"))
    return found.hexdigest()[:32]


def _hashable(values: Any) -> list[np.ndarray]:
    if hasattr(values, "iloc"):
        import pandas as pd

        about = np.array([str(part) for part in (*getattr(values, "columns", ()), *np.atleast_1d(values.dtypes))], dtype=object)
        return [about, pd.util.hash_pandas_object(values, index=False).to_numpy()]
    if hasattr(values, "tocsr"):
        return [np.array(values.shape), values.indptr, values.indices, values.data]
    return [to_numpy(values)]


# Checks ---------------------------------------------------------------------------------------------------------------


def _pair(inputs: Any, targets: Any, inputs_name: str, targets_name: str) -> tuple[Any, Array]:
    inputs, targets = _inputs(inputs, inputs_name), _targets(targets, targets_name)
    if inputs.shape[0] != len(targets):
        raise ShapeError(
            f"{inputs_name} and {targets_name} must have as many rows, got {inputs.shape[0]} and {len(targets)}; "
            "both must be of the same points"
        )
    return inputs, targets


def _inputs(values: Any, name: str) -> Any:
    """Something with rows that can be taken by number."""
    if hasattr(values, "tocsr"):
        return values.tocsr()  # rows of other sparse formats cannot be taken by number
    if not is_array(values) and not hasattr(values, "iloc"):
        try:
            values = np.asarray(values)
        except ValueError:
            raise ShapeError(f"{name} must be rows of one length") from None
    if len(values.shape) == 0:
        raise ShapeError(f"{name} must be an array or a table of rows, got {type(values).__name__}")
    return values


def _targets(values: Any, name: str) -> Array:
    """One finite number for each row; a tensor stays one."""
    found = values if is_torch(values) else np.asarray(to_numpy(values) if is_array(values) else values)
    if len(found.shape) == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if len(found.shape) != 1:
        raise ShapeError(f"{name} must be one number for each row, got shape {tuple(found.shape)}")
    as_numbers = to_numpy(found)  # for the checks alone: a tensor goes to the model as it is
    if as_numbers.dtype.kind not in "fiub":
        raise ArrayTypeError(f"{name} must be real numbers, got dtype {as_numbers.dtype}; convert it to float first")
    bad = ~np.isfinite(as_numbers)
    if bad.any():
        raise InvalidValueError(
            f"{name} must be finite: {int(bad.sum())} of {len(bad)} are NaN or infinite, the first in row {int(bad.argmax())}; "
            "drop those rows"
        )
    return found


def in_standard_units(features: np.ndarray) -> np.ndarray:
    """Each feature (points, d) with mean zero and standard deviation one; constant ones are zero."""
    centred = features - features.mean(axis=0)
    scale = centred.std(axis=0)
    # The mean of equal numbers may be off by a rounding, which must not become a feature.
    return np.where(np.ptp(features, axis=0) > 0.0, centred / np.where(scale > 0.0, scale, 1.0), 0.0)


def _row_shape(values: Any) -> tuple[int, ...]:
    return tuple(values.shape[1:])


def _matrix(values: Any, rows: int, name: str) -> np.ndarray:
    """Finite numbers (rows, d) to measure distances in."""
    values = values.toarray() if hasattr(values, "toarray") else values
    try:
        found = np.asarray(to_numpy(values) if is_array(values) else values).astype(np.float64)
    except (TypeError, ValueError):
        raise ArrayTypeError(f"{name} must be numbers for selection='diverse'; give features=, which returns some") from None
    if found.ndim == 0 or len(found) != rows:
        raise ShapeError(f"{name} must have one row for each of {rows} points, got shape {found.shape}")
    if not np.isfinite(found).all():
        raise InvalidValueError(f"{name} must be finite for selection='diverse'; impute what is missing, or give features=")
    return found.reshape(rows, -1)
