"""The arrays of an .npz file of predictions, checked, as columns with an entry per point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.columns import NoMembersError, checked_header
from uqprism.ensemble.layout import MIXTURE, SHARES, no_columns
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import BadFileError, InvalidValueError
from uqprism.families import families
from uqprism.families.mixture import WEIGHTS
from uqprism.measures.table import FORMAT as MEASURES_FORMAT
from uqprism.support.reading import MOST_IN_ARRAYS, check_columns, npz_arrays, parse_json, reading

GAUSSIAN = ("mean", "variance", "scale")


class NpzArrays:
    """The arrays of one file, read whole.

    Arrays `mean` and `variance` or `scale`, (members, *points), or others that are called like parameters of a family, become
    columns `mean_0`, `variance_0` and so on. All others have an entry per point. Points of several axes are taken in C order.
    Files of `EnsemblePrediction.save` and `MeasureTable.save` are read too.

    Attributes:
        columns: an array for each column, (points,), or of draws, bars and quantiles (points, numbers).
        header: what a saved file says of its members.
        matrices: those of the arrays of members that have an axis of members.
        weights: of the members, if the file states some.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path):
            self.arrays = npz_arrays(path)
        self.header: dict[str, Any] = {}
        self.weights = self._take_header()
        lists = self._take_lists()
        named = self._parameters()
        self.matrices = [name for name in self.arrays if name in named and self.arrays[name].ndim > 1]
        self._check_shapes(next(iter(lists.values())).shape[:1] if lists else None)
        check_columns(path, len(self.arrays) + len(lists) + sum(len(self.arrays[name]) for name in self.matrices), MOST_IN_ARRAYS)
        flat = {name: array.reshape(-1) for name, array in self.arrays.items() if name not in self.matrices}
        for name in self.matrices:
            flat |= {f"{name}_{i}": row.reshape(-1) for i, row in enumerate(self.arrays[name])}
        for name, array in flat.items():
            if array.dtype.kind == "c" or array.dtype.char == "g":
                raise BadFileError(path, f"array {name!r} has type {array.dtype}, which no table holds; store it as float64")
        flat |= lists
        # Arrow takes numbers in the byte order of the machine only.
        self.columns = {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in flat.items()}

    def _take_header(self) -> tuple[float, ...] | None:
        """Check and remove what `save` adds; returns the weights."""
        try:
            header = parse_json(self.arrays["header"].tobytes(), self.path)  # a user may have an array called header
            kind = header["format"]
        except (KeyError, BadFileError):  # not a file of `save`
            return None
        if kind not in {FORMAT, MEASURES_FORMAT}:
            raise InvalidValueError(f"{self.path}: was written by {kind}, not by EnsemblePrediction.save")
        if kind == FORMAT:
            self.header = checked_header(header, self.path)
        del self.arrays["header"]
        weights = self.arrays.pop("member_weights", None)
        if "given_variance" in self.arrays:  # the scale beside it was computed from it
            self.arrays["variance"] = self.arrays.pop("given_variance")
            self.arrays.pop("scale", None)
        return None if weights is None else stated_weights(weights.tolist(), self.path)

    def _parameters(self) -> set[str]:
        """The names of the arrays that may be of members."""
        family = self.header.get("family")
        if family == "gaussian" or any(self.arrays[name].ndim > 1 for name in GAUSSIAN[:2] if name in self.arrays):
            return {*GAUSSIAN}
        kinds = [kind for name, kind in families.items() if name == family or family is None]
        return {name for kind in kinds if not kind.in_lists for name in kind.arguments()}

    def _in_lists(self) -> tuple[str, ...]:
        """The arrays of a saved ensemble that have an axis of their own."""
        family = self.header.get("family", "gaussian")
        if family != MIXTURE:
            return families.get(family).in_lists
        if WEIGHTS in self.arrays:
            self.arrays[SHARES] = self.arrays.pop(WEIGHTS)
        inner = self.header["options"].get("components", "gaussian")
        kind = families.get(inner)
        if kind.in_lists:
            raise no_columns(f"mixtures of {inner}")
        known = {*kind.arguments(), *GAUSSIAN, SHARES}
        return tuple(name for name in self.arrays if name in known)

    def _take_lists(self) -> dict[str, np.ndarray[Any, Any]]:
        """The columns of saved draws, bars, quantiles or mixtures, (points, numbers); what all share goes to the header."""
        family = families.get(self.header.get("family", "gaussian"))
        stored = {name: self.arrays.pop(name) for name in self._in_lists() if name in self.arrays}
        if not stored:
            return {}
        if len({x.ndim for x in stored.values()}) > 1 or any(x.ndim < 2 for x in stored.values()):
            shapes = ", ".join(f"{name} {x.shape}" for name, x in stored.items())
            raise BadFileError(
                self.path, f"arrays of {family.name} members must have axes (numbers, members, *points), got {shapes}"
            )
        shape = max((x.shape[1:] for x in stored.values()), key=np.prod)
        found: dict[str, np.ndarray[Any, Any]] = {}
        shared: dict[str, list[float]] = {}
        for name, x in stored.items():
            if np.prod(x.shape[1:]) == 1 < np.prod(shape) and family.name != MIXTURE:
                shared[name] = x.ravel().tolist()
                continue
            if any(own not in (1, whole) for own, whole in zip(x.shape[1:], shape, strict=True)):
                raise BadFileError(self.path, f"array {name!r} has shape {x.shape}, but members and points have {shape}")
            wide = np.broadcast_to(x, (len(x), *shape)).reshape(len(x), shape[0], -1)
            found |= {f"{name}_{i}": np.ascontiguousarray(wide[:, i].T) for i in range(shape[0])}
        self.header["shared"] = shared
        return found

    def _check_shapes(self, points: tuple[int, ...] | None) -> None:
        if len({self.arrays[name].shape for name in self.matrices}) > 1:
            raise self.no_members()
        shapes = [self.arrays[name].shape[1:] for name in self.matrices] + [array.shape for array in self.arrays.values()]
        shapes = shapes if points is None else [points, *shapes]
        n_points = int(np.prod(shapes[0])) if shapes else 0
        for name, array in self.arrays.items():
            if name not in self.matrices and array.shape not in (shapes[0], (n_points,)):
                raise InvalidValueError(
                    f"{self.path}: array {name!r} has shape {array.shape}, but there are {n_points} points; "
                    "arrays beside the members have one entry per point, leave others out"
                )

    def check_members(self) -> None:
        """Refuse a file with some, but not all, of the arrays of members."""
        if {*self.matrices} & {"mean", "variance"} and (len(self.matrices) != 2 or "mean" not in self.matrices):
            raise self.no_members()

    def no_members(self) -> NoMembersError:
        """The error of a file without members, with the arrays that it has."""
        found = ", ".join(f"{name} {array.shape}" for name, array in sorted(self.arrays.items())) or "none"
        return NoMembersError(
            f"{self.path}: needs arrays mean and variance or scale of one shape (members, points); its arrays are {found}"
        )


def stated_weights(stated: Any, path: Path) -> tuple[float, ...]:
    """The weights of the members that a file states."""
    if not isinstance(stated, list) or not all(isinstance(each, int | float) for each in stated):
        raise BadFileError(path, "the weights of its members must be a list of numbers")
    return tuple(map(float, stated))
