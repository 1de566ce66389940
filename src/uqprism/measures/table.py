"""Tables of measures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from uqprism.arrays import Array, to_numpy
from uqprism.errors import InvalidValueError
from uqprism.families.quadrature import Exactness
from uqprism.measures.measure import RISKS, Measure
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.support.reading import loading
from uqprism.support.storage import write_npz
from uqprism.support.tables import data_frame

FORMAT = "uqprism.MeasureTable"


class MeasureTable(Mapping[str, Array]):
    """Measures by name, each an array (*points), with how exact each is.

    Attributes:
        exactness: `Exactness(method, tolerance)` by measure name.
        measures: the `Measure`s in this table, with the rules they were computed by.
    """

    def __init__(
        self, values: Mapping[str, Array], exactness: Mapping[str, Exactness], measures: Sequence[Measure] | None = None
    ) -> None:
        shapes = {tuple(x.shape) for x in values.values()}
        if len(shapes) > 1:
            raise InvalidValueError(f"measures must have one shape, got {sorted(shapes)}")
        self._values, self.exactness = dict(values), dict(exactness)
        self.measures = [_named(name) for name in values] if measures is None else list(measures)

    def __getitem__(self, measure: str | Measure) -> Array:
        name = str(measure)
        if name not in self._values:
            raise unknown("measure in this table", name, _near(name, list(self._values)))
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, measure: object) -> bool:
        return str(measure) in self._values

    def to_pandas(self, index: Any = None) -> Any:
        """A `pandas.DataFrame` with a column per measure and a row per point, with this index if there is one."""
        return data_frame(self._values, index)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with a column per measure and a row per point."""
        pyarrow = require("pyarrow", extra="cli")
        return pyarrow.table({name: to_numpy(x).reshape(-1) for name, x in self._values.items()})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with a JSON header, whole or not at all; read it back with `load`."""
        header = {name: list(exactness) for name, exactness in self.exactness.items()}
        write_npz(path, FORMAT, {"exactness": header}, {name: to_numpy(x) for name, x in self._values.items()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MeasureTable:
        """Read what `save` wrote, as NumPy arrays."""
        with loading(path, FORMAT) as (header, arrays):
            return cls(_numbers(arrays), restored_exactness(header["exactness"], arrays))

    def __repr__(self) -> str:
        shape = next((tuple(x.shape) for x in self._values.values()), ())
        return f"<MeasureTable: {len(self)} measures, points {shape}>"


def _numbers(arrays: dict[str, Any]) -> dict[str, Any]:
    for name, array in arrays.items():
        if array.dtype.kind != "f":
            raise InvalidValueError(f"measure {name!r} must be an array of floating numbers, got {array.dtype}")
    return arrays


def restored_exactness(stored: Mapping[str, Sequence[Any]], measures: Iterable[str]) -> dict[str, Exactness]:
    """The exactness of these measures from what JSON holds of it."""
    found = {name: Exactness(method, float(tolerance)) for name, (method, tolerance) in stored.items()}
    if lacking := found.keys() ^ set(measures):
        raise InvalidValueError(f"the measures and their exactness differ, first in {min(lacking)!r}")
    return found


def _named(name: str) -> Measure:
    rule, risk, *roles = name.split(".")
    # Not `Measure.parse`: a loaded table may hold measures of rules that are not registered here.
    return Measure(rule, risk, None if risk == "bayes" else roles[0], roles[-1])


def _near(name: str, known: list[str]) -> list[str]:
    """The known names that may be meant: those of the same rule and risk if there are any, otherwise all."""
    rule, _, rest = name.lower().partition(".")
    risk, *roles = rest.split(".")
    if risk in RISKS:
        # A single role of a total or excess is taken for both; more than two are cut off.
        meant = ".".join([rule, risk, *roles[-1:]] if risk == "bayes" else [rule, risk, *roles, *roles][:4])
        same = [each for each in known if each.startswith(f"{rule}.{risk}.")]
        return [meant] if meant in known else same or known
    return known
