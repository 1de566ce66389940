"""The points of a file, or of a folder of parts, for the tasks: measures, members, targets and errors by column."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble import FORMAT, EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.evaluation import evaluate
from uqprism.measures import RISKS
from uqprism.registry import unknown
from uqprism.rules import rules
from uqprism.scale.inputs import find
from uqprism.scale.options import Columns, Layout, resolve
from uqprism.scale.rows import numbers
from uqprism.scale.sources import arrow_csv, naming, pa, pq, stored_weights
from uqprism.tasks.prediction_error import prediction_error


@dataclass(frozen=True)
class Points:
    """Columns of one file or of several with the same columns, read when they are asked for.

    Attributes:
        paths: the files.
        columns: which of their columns hold members.
    """

    paths: tuple[Path, ...]
    columns: Columns

    @classmethod
    def of(cls, inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], columns: Columns | None = None) -> Points:
        """The points of a Parquet, CSV or NPZ file, a folder of them, or a pattern."""
        return cls(tuple(span.path for span in find(inputs)), columns or Columns())

    @property
    def title(self) -> str:
        """The file, for errors."""
        return str(self.paths[0]) if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more"

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the first file."""
        with naming(self.paths[0], "read"):
            return pq.read_schema(self.paths[0]) if _is_parquet(self.paths[0]) else _whole(self.paths[0]).schema

    @property
    def names(self) -> list[str]:
        """All columns."""
        return self.schema.names

    @property
    def numeric_names(self) -> list[str]:
        """The columns that hold numbers."""
        tests = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_boolean)
        return [each.name for each in self.schema if any(test(each.type) for test in tests)]

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """These columns as numbers, nulls as NaN."""
        wanted = list(names)
        for name in wanted:
            if name not in self.names:
                raise InvalidValueError(f"{self.title}: {unknown('column', name, self.names)}")
        tables = []
        for path in self.paths:
            with naming(path, "read"):
                table = pq.read_table(path, columns=wanted, partitioning=None) if _is_parquet(path) else _whole(path)
                tables.append(table.select(wanted))
        return {name: self._numbers(name, [table.column(name) for table in tables]) for name in wanted}

    def _numbers(self, name: str, chunks: Sequence[Any]) -> np.ndarray:
        try:
            return np.concatenate([numbers(chunk).astype(np.float64, copy=False) for chunk in chunks])
        except (pa.ArrowException, ValueError, TypeError):
            raise InvalidValueError(f"{self.title}: column {name!r} must hold numbers, its type is {chunks[0].type}") from None

    def measures(self, wanted: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Columns that are measures; where there are none, all measures of the members.

        Args:
            wanted: names or patterns such as `crps.*`, with commas between if you like; also of columns that are no measures.
        """
        patterns = [part.strip() for text in wanted or [] for part in text.split(",") if part.strip()]
        scored = [name for name in self.names if is_measure(name)]
        if not scored and not set(patterns) & set(self.names):
            table = evaluate(self.ensemble())
            return {name: np.asarray(table[name]) for name in _matching(patterns or ["*"], list(table), self.title)}
        chosen = _matching(patterns, self.names, self.title) if patterns else scored
        return self.read(chosen)

    @cached_property
    def layout(self) -> Layout:
        """The columns of the members."""
        try:
            return resolve(self.columns, self.names, self.title)
        except InvalidValueError as error:
            hint = "score the file first (uqprism score), keep its members (--keep-members), or name columns with --measures"
            raise InvalidValueError(f"{error}; or {hint}") from None

    def ensemble(self) -> EnsemblePrediction:
        """What the members predict."""
        layout = self.layout
        found = self.read([*layout.mean, *layout.spread])
        arrays: dict[str, Any] = {
            "mean": np.stack([found[name] for name in layout.mean]),
            layout.kind: np.stack([found[name] for name in layout.spread]),
        }
        return EnsemblePrediction.gaussian(**arrays, weights=stored_weights(self.schema))

    def error(self, *, column: str | None, target: str | None, prediction: str | None, kind: str = "squared") -> np.ndarray:
        """The error of each point: a column of its own, or made from a target and a prediction or the members."""
        if column is not None:
            if target is not None or prediction is not None:
                raise ArgumentError("give --error-column, or --target (with --prediction), not both")
            return self.read([column])[column]
        if target is None:
            raise ArgumentError("the error of each point is missing; name its column with --error-column, or --target")
        y = self.read([target])[target]
        if prediction is None:
            return prediction_error(self.ensemble(), y, kind)  # type: ignore[arg-type]
        if kind not in {"squared", "absolute"}:
            raise ArgumentError(f"--error {kind} needs the members, not --prediction; leave it out, or take squared or absolute")
        apart = np.abs(self.read([prediction])[prediction] - y)
        return apart**2 if kind == "squared" else apart


def is_measure(name: str) -> bool:
    """Whether a column has the name of a measure, of a rule that is known."""
    rule, risk, *roles = [*name.split("."), "", ""]
    return rule in rules and risk in RISKS and len([role for role in roles if role]) == (1 if risk == "bayes" else 2)


def _matching(patterns: Sequence[str], names: Sequence[str], where: str) -> list[str]:
    found: dict[str, None] = {}
    for pattern in patterns:
        matches = [name for name in names if fnmatchcase(name, pattern)] or (names if pattern == "all" else [])
        if not matches:
            raise InvalidValueError(f"{where}: {unknown('measure or column', pattern, names)}")
        found |= dict.fromkeys(matches)
    return list(found)


def _is_parquet(path: Path) -> bool:
    return path.suffix in {".parquet", ".pq"}


def _whole(path: Path) -> Any:
    """A CSV or NPZ file as an Arrow table."""
    if path.suffix == ".csv":
        return arrow_csv.read_csv(path)
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if name != "header"}
    weights = arrays.pop("member_weights", None)
    columns = {name: array for name, array in arrays.items() if array.ndim == 1}
    for name, array in arrays.items():
        if array.ndim == 2:  # members first
            columns |= {f"{name}_{i}": row for i, row in enumerate(array)}
    about = {FORMAT: json.dumps({"weights": None if weights is None else weights.tolist()})}
    return pa.table(columns, metadata=about)
