"""What a task found: a number per measure, how sure it is, and which measures are as good as the best."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.registry import unknown
from uqprism.storage import read_npz, require, write_npz, write_text
from uqprism.tasks.comparison import not_worse

FORMAT = "uqprism.TaskResult"
SHOWN = 12


@dataclass(frozen=True, eq=False)
class TaskResult(Mapping[str, float]):
    """One value per measure, `result[name]`, and what is known about it.

    Attributes:
        task: which task it was.
        metric: what the values are.
        higher_is_better: the direction of the metric.
        measured: the value of the metric by measure.
        replicates: the metric in resamples of the data, (resamples, measures), or None. A row is one resample, seen by all
            measures alike, so that differences between columns are paired.
        metrics: further metrics: name, measure, value.
        curves: what the figures show, by name.
        parts: results that this one is the mean of: data sets, or repeated runs.
        settings: how it was made, as plain data.
        figure: the function of `uqprism.report.figures` that draws it.
    """

    task: str
    metric: str
    higher_is_better: bool
    measured: Mapping[str, float]
    replicates: np.ndarray | None = None
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    curves: Mapping[str, np.ndarray] = field(default_factory=dict)
    parts: Mapping[str, TaskResult] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    figure: str = "intervals"

    def __post_init__(self) -> None:
        if not self.measured:
            raise InvalidValueError("a task result needs at least one measure")
        if self.replicates is not None and self.replicates.shape[1:] != (len(self.measured),):
            raise InvalidValueError(f"replicates must be (resamples, {len(self.measured)}), got {self.replicates.shape}")

    def __getitem__(self, measure: object) -> float:
        if str(measure) not in self.measured:
            raise unknown("measure in this result", measure, self.measured)
        return self.measured[str(measure)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.measured)

    def __len__(self) -> int:
        return len(self.measured)

    def ranked(self) -> list[str]:
        """All measures, the best first; equal values in the order of the table."""
        sign = -1.0 if self.higher_is_better else 1.0
        return sorted(self.measured, key=lambda name: sign * self.measured[name])

    def best(self) -> str:
        """The best measure; the metric knows its direction."""
        return self.ranked()[0]

    def not_worse(self, level: float = 0.95) -> list[str]:
        """The measures that are not significantly worse than the best, the best first: `comparison.not_worse`."""
        good = not_worse(np.array(list(self.measured.values())), self._replicates(), self.higher_is_better, level)
        names = {name for name, stays in zip(self.measured, good, strict=True) if stays}
        return [name for name in self.ranked() if name in names]

    def spread(self) -> dict[str, float]:
        """The standard error of each value: the standard deviation over resamples."""
        return dict(zip(self.measured, self._replicates().std(axis=0, ddof=1).tolist(), strict=True))

    def interval(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """The range that holds this share of the resamples."""
        ends = np.quantile(self._replicates(), [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
        return {name: (float(low), float(high)) for name, (low, high) in zip(self.measured, ends.T, strict=True)}

    def _replicates(self) -> np.ndarray:
        if self.replicates is None or len(self.replicates) < 2:
            raise ArgumentError("this result has no spread; run the task with resamples=200 or more")
        return self.replicates

    @property
    def has_spread(self) -> bool:
        """Whether there are resamples to tell a spread from."""
        return self.replicates is not None and len(self.replicates) > 1

    def rows(self) -> list[dict[str, Any]]:
        """One row per measure, the best first: all there is to say about it, by column."""
        columns: dict[str, Mapping[str, Any]] = {self.metric: self.measured}
        if self.has_spread:
            intervals, good = self.interval(), set(self.not_worse())
            columns["spread"] = self.spread()
            columns["low"] = {name: low for name, (low, _) in intervals.items()}
            columns["high"] = {name: high for name, (_, high) in intervals.items()}
            columns["not_worse"] = {name: name in good for name in self.measured}
        columns |= self.metrics
        columns |= {f"{self.metric}.{name}": part.measured for name, part in self.parts.items()}
        return [{"measure": name, **{title: column[name] for title, column in columns.items()}} for name in self.ranked()]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row per measure, the best first."""
        return require("pandas", extra="pandas").DataFrame(self.rows()).set_index("measure")

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The rows and how they came about, as JSON text; also into a file if a path is given."""
        about = {"task": self.task, "metric": self.metric, "higher_is_better": self.higher_is_better}
        text = json.dumps({**about, "best": self.best(), "settings": dict(self.settings), "measures": self.rows()}, indent=2)
        if path is not None:
            write_text(path, text + "\n")
        return text

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw it, on these axes or on a figure of its own; returns the axes. Options as in `uqprism.report.figures`."""
        from uqprism.report import figures

        return getattr(figures, self.figure)(self, ax=ax, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to a .npz file, whole or not at all; read it back with `load`."""
        header, arrays = _packed(self)
        write_npz(path, FORMAT, {"result": header}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TaskResult:
        """Read what `save` wrote."""
        header, arrays = read_npz(path, FORMAT)
        return _unpacked(header["result"], arrays)

    def __str__(self) -> str:
        better = "higher" if self.higher_is_better else "lower"
        rows, names = self.rows(), ["spread", "not_worse"] if self.has_spread else []
        width = max(len(row["measure"]) for row in rows[:SHOWN])
        lines = [f"{self.task}: {self.metric} ({better} is better), {len(self)} measures"]
        for row in rows[:SHOWN]:
            told = f" +- {row['spread']:.4f}{'  not worse than the best' if row['not_worse'] else ''}" if names else ""
            lines.append(f"  {row['measure']:<{width}}  {row[self.metric]:.4f}{told}")
        return "\n".join([*lines, f"  ... and {len(self) - SHOWN} more"] if len(self) > SHOWN else lines)

    def __repr__(self) -> str:
        return f"<TaskResult: {self.task}, {self.metric} of {len(self)} measures, best {self.best()}>"

    @classmethod
    def average(cls, parts: Mapping[str, TaskResult], *, seed: int | None = None) -> TaskResult:
        """The mean of results of the same measures and metric.

        Args:
            parts: by name: data sets, or repeated runs.
            seed: for repeated runs: the spread then counts also how runs differ, by drawing runs with replacement as well as
                points (what a pigeonhole bootstrap does; a little too wide rather than too narrow). Without a seed the parts
                are taken as all there are, and the spread is that of the points.
        """
        results = list(parts.values())
        _check_alike(parts)
        first = results[0]
        metrics = {name: _mean([part.metrics[name] for part in results]) for name in first.metrics}
        shapes = [{name: curve.shape for name, curve in part.curves.items()} for part in results]
        alike = all(shape == shapes[0] for shape in shapes)
        curves = {name: np.mean([part.curves[name] for part in results], axis=0) for name in first.curves} if alike else {}
        return dataclasses.replace(
            first,
            measured=_mean([part.measured for part in results]),
            replicates=_averaged_replicates(results, seed),
            metrics=metrics,
            curves=curves,
            parts=dict(parts),
        )


def _mean(columns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([column[name] for column in columns])) for name in columns[0]}


def _check_alike(parts: Mapping[str, TaskResult]) -> None:
    if not parts:
        raise ArgumentError("parts must hold at least one result to average")
    kinds = {name: (part.task, part.metric, tuple(part.measured), tuple(part.metrics)) for name, part in parts.items()}
    first = next(iter(kinds))
    for name, kind in kinds.items():
        if kind != kinds[first]:
            raise ArgumentError(f"parts must be of one task and metric and the same measures; {name!r} and {first!r} differ")


def _averaged_replicates(results: Sequence[TaskResult], seed: int | None) -> np.ndarray | None:
    """Resamples of the mean: of points, with the same row of each part; of parts too if there is a seed."""
    n_parts = len(results)
    values = np.array([list(part.measured.values()) for part in results])
    known = [part.replicates for part in results if part.has_spread]
    if seed is None or n_parts < 2:
        return np.mean(_cut(known), axis=0) if len(known) == n_parts else None
    noise = np.array(_cut(known)) - values[:, None] if len(known) == n_parts else np.zeros((n_parts, 1000, values.shape[1]))
    resamples = noise.shape[1]
    drawn = np.random.default_rng(seed).integers(0, n_parts, (resamples, n_parts))
    few = np.sqrt(n_parts / (n_parts - 1.0))  # a handful of draws from a handful of runs is narrower than the runs are
    between = few * (values[drawn].mean(axis=1) - values.mean(axis=0))
    within = noise[drawn, np.arange(resamples)[:, None]].mean(axis=1)
    return values.mean(axis=0) + between + within


def _cut(replicates: Sequence[Any]) -> list[np.ndarray]:
    """The same number of resamples from each: a few points may have lost a degenerate one."""
    shortest = min(map(len, replicates), default=0)
    return [each[:shortest] for each in replicates]


def _packed(result: TaskResult, prefix: str = "") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A result as plain data and named arrays; those of its parts behind a prefix."""
    plain = ("task", "metric", "higher_is_better", "measured", "metrics", "settings", "figure")
    header: dict[str, Any] = {name: getattr(result, name) for name in plain}
    arrays = {f"{prefix}curves/{name}": curve for name, curve in result.curves.items()}
    if result.replicates is not None:
        arrays[f"{prefix}replicates"] = result.replicates
    header["parts"] = {}
    for name, part in result.parts.items():
        header["parts"][name], more = _packed(part, f"{prefix}parts/{name}/")
        arrays |= more
    return header, arrays


def _unpacked(header: dict[str, Any], arrays: Mapping[str, np.ndarray], prefix: str = "") -> TaskResult:
    marked = f"{prefix}curves/"
    curves = {name.removeprefix(marked): curve for name, curve in arrays.items() if name.startswith(marked)}
    parts = {name: _unpacked(part, arrays, f"{prefix}parts/{name}/") for name, part in header.pop("parts").items()}
    return TaskResult(**header, replicates=arrays.get(f"{prefix}replicates"), curves=curves, parts=parts)
