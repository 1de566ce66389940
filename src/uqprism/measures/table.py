"""Tables of measures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqprism.arrays import Array, to_numpy
from uqprism.errors import InvalidValueError
from uqprism.families.quadrature import Exactness
from uqprism.measures.meaning import unknown_measure
from uqprism.measures.measure import Measure
from uqprism.support.optional import require
from uqprism.support.reading import loading
from uqprism.support.storage import write_npz
from uqprism.support.tables import data_frame
from uqprism.synonyms import no_attribute

FORMAT = "uqprism.MeasureTable"
HINTS = {  # what is tried on a table, and the line to type
    **dict.fromkeys(("aleatoric", "noise", "bayes"), "table['crps.bayes.members'], or up.decompose(ensemble).aleatoric"),
    **dict.fromkeys(
        ("epistemic", "disagreement", "excess"), "table['crps.excess.members.members'], or up.decompose(ensemble).epistemic"
    ),
    **dict.fromkeys(("total", "uncertainty"), "table['crps.total.members.members'], or up.decompose(ensemble).total"),
    "columns": "list(table), which are the names of the measures",
    "shape": "len(table) measures, and the shape of any of them",
    "to_csv": "table.to_pandas().to_csv(path)",
    "plot": "up.write_report(table, 'report.html')",
}


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
            raise unknown_measure("in this table", name, self._values)
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

    if not TYPE_CHECKING:  # a type checker would take every attribute for known

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, HINTS)

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
