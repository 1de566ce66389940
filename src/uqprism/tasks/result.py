"""The result of a task: a number per measure, its spread, and which measures are as good as the best."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import unknown_measure
from uqprism.support.optional import require
from uqprism.support.reading import loading
from uqprism.support.storage import check_ending, write_npz, write_text
from uqprism.tasks.resampling import few_runs, not_worse
from uqprism.tasks.task import TASKS, Metric, metric_of

FORMAT = "uqprism.TaskResult"
SHOWN = 12  # measures that printing a result shows
MANY = 1_000  # draws of the noise between runs, where no part has resamples to go by


@dataclass(frozen=True, eq=False)
class TaskResult(Mapping[str, float]):
    """One value per measure, `result[name]`, with spreads, further metrics and curves.

    Attributes:
        task: the name of the task.
        metric: the name of the metric.
        higher_is_better: the direction of the metric.
        measured: the value of the metric by measure.
        replicates: the metric in resamples of the data, (resamples, measures), or None. All measures share the resample of a
            row, so that differences between columns are paired; NaN where a resample leaves the metric undefined.
        metrics: further metrics: name, measure, value.
        curves: the curves that figures show, by name.
        parts: results that this one is the mean of: data sets, or repeated runs.
        settings: of the task, as plain data.
        figure: the function of `uqprism.plots` that draws it.
        degrees: of freedom of the spread, where it was estimated from repeated runs: one less than their number.
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
    degrees: int | None = None

    def __post_init__(self) -> None:
        if not self.measured:
            raise InvalidValueError("a task result needs at least one measure")
        if self.replicates is not None and self.replicates.shape[1:] != (len(self.measured),):
            raise InvalidValueError(f"replicates must be (resamples, {len(self.measured)}), got {self.replicates.shape}")

    def __getitem__(self, measure: object) -> float:
        if str(measure) not in self.measured:
            raise unknown_measure("in this result", measure, self.measured)
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
        """The best measure in the direction of the metric."""
        return self.ranked()[0]

    def not_worse(self, level: float = 0.95, margin: float = 0.0) -> list[str]:
        """The measures that are not significantly worse than the best, the best first: see `tasks.resampling.not_worse`.

        Args:
            level: how often the truly best measure is among them.
            margin: leads up to this do not count, however certain.
        """
        values = np.array(list(self.measured.values()))
        how: dict[str, Any] = {"level": level, "margin": margin, "degrees": self.degrees}
        good = not_worse(values, self._replicates(), self.higher_is_better, **how)
        names = {name for name, stays in zip(self.measured, good, strict=True) if stays}
        return [name for name in self.ranked() if name in names]

    def spread(self) -> dict[str, float]:
        """The standard error of each value: the standard deviation over resamples."""
        return dict(zip(self.measured, self._replicates().std(axis=0, ddof=1).tolist(), strict=True))

    def interval(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """The range that holds this share of the resamples."""
        if not 0.0 < level < 1.0:
            raise InvalidValueError(f"level must be between 0 and 1, got {level}; 0.95 is usual")
        found = self._replicates()
        middle = found.mean(axis=0)
        # A spread estimated from a few runs is uncertain itself, so the interval widens as that of Student's t.
        wide = middle + few_runs(self.degrees, found.shape) * (found - middle)
        ends = np.quantile(wide, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
        return {name: (float(low), float(high)) for name, (low, high) in zip(self.measured, ends.T, strict=True)}

    def _replicates(self) -> np.ndarray:
        if self.replicates is None or not self.has_spread:
            raise ArgumentError("this result has no spread; run the task with resamples=500 or more")
        # A resample in which one measure is undefined is left out for all, so that comparisons stay paired.
        return self.replicates[~np.isnan(self.replicates).any(axis=1)]

    @property
    def has_spread(self) -> bool:
        """Whether there are resamples that give a spread."""
        # A standard deviation needs two resamples.
        return self.replicates is not None and int((~np.isnan(self.replicates).any(axis=1)).sum()) > 1

    @property
    def recommended(self) -> str | None:
        """The measure that `recommend` names for the task, or None."""
        advice = TASKS.get(self.task).advice if self.task in TASKS else None
        return None if advice is None else advice.measure

    def describe(self, metric: str | None = None) -> Metric:
        """The label, meaning, direction and value by chance of the metric, or of a further one."""
        if metric not in (None, self.metric):
            return metric_of(self.task, metric)
        known = metric_of(self.task, self.metric)
        # A metric of this name but with another direction is not the one that is registered.
        same = known.higher_is_better == self.higher_is_better
        return known if same else Metric(name=self.metric, higher_is_better=self.higher_is_better)

    def select(self, measures: Iterable[object]) -> TaskResult:
        """The result for these measures, in this order; curves are unchanged."""
        names = [str(measure) for measure in measures]
        measured = {name: self[name] for name in names}
        at = [list(self.measured).index(name) for name in names]
        return dataclasses.replace(
            self,
            measured=measured,
            replicates=None if self.replicates is None else self.replicates[:, at],
            metrics={metric: {name: values[name] for name in names} for metric, values in self.metrics.items()},
            parts={name: part.select(names) for name, part in self.parts.items()},
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row per measure, the best first, with every number known of it."""
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

    def summary(self) -> list[dict[str, Any]]:
        """The rows without further metrics."""
        return [{name: value for name, value in row.items() if name not in self.metrics} for row in self.rows()]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row per measure, the best first."""
        return require("pandas", extra="pandas").DataFrame(self.rows()).set_index("measure")

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The rows and the settings as JSON text; also written to a file if a path is given."""
        about = {"task": self.task, "metric": self.metric, "higher_is_better": self.higher_is_better}
        text = json.dumps({**about, "best": self.best(), "settings": dict(self.settings), "measures": self.rows()}, indent=2)
        if path is not None:
            check_ending(path, [".json"])
            write_text(path, text + "\n")
        return text

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the result, on these axes or on a new figure; returns the axes. Options as in `uqprism.plots`."""
        from uqprism import plots

        # By name, so that files can hold it and `plots` is loaded only to draw.
        return getattr(plots, self.figure)(self, ax=ax, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a .npz file, atomically; read it back with `load`."""
        header, arrays = _packed(self)
        write_npz(path, FORMAT, {"result": header}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TaskResult:
        """Read what `save` wrote."""
        with loading(path, FORMAT) as (header, arrays):
            return _unpacked(header["result"], arrays)

    def __str__(self) -> str:
        better = "higher" if self.higher_is_better else "lower"
        rows, names = self.rows(), ["spread", "not_worse"] if self.has_spread else []
        width = max(len(row["measure"]) for row in rows[:SHOWN])
        lines = [f"{self.task}: {self.metric} ({better} is better), {len(self)} measure{'s' if len(self) > 1 else ''}"]
        for row in rows[:SHOWN]:
            suffix = f" +- {row['spread']:.4f}{'  not worse than the best' if row['not_worse'] else ''}" if names else ""
            lines.append(f"  {row['measure']:<{width}}  {row[self.metric]:.4f}{suffix}")
        return "\n".join([*lines, f"  ... and {len(self) - SHOWN} more"] if len(self) > SHOWN else lines)

    def __repr__(self) -> str:
        return f"<TaskResult: {self.task}, {self.metric} of {len(self)} measures, best {self.best()}>"

    @classmethod
    def average(cls, parts: Mapping[str, TaskResult] | Sequence[TaskResult], *, seed: int | None = None) -> TaskResult:
        """The mean of results of the same measures and metric.

        Args:
            parts: data sets or repeated runs, by name or in a list.
            seed: for repeated runs: the spread then counts differences between runs and the noise of the points, and comparisons
                allow for how little a few runs tell (Student's t). Without a seed the parts are taken as all there are, and
                the spread is that of the points.
        """
        if not isinstance(parts, Mapping):
            parts = {f"run {i}": part for i, part in enumerate(parts)}
        results = list(parts.values())
        _check_alike(parts)
        first = results[0]
        metrics = {name: _mean([part.metrics[name] for part in results]) for name in first.metrics}
        shapes = [{name: curve.shape for name, curve in part.curves.items()} for part in results]
        alike = all(shape == shapes[0] for shape in shapes)  # curves of different lengths have no mean
        curves = {name: np.mean([part.curves[name] for part in results], axis=0) for name in first.curves} if alike else {}
        return dataclasses.replace(
            first,
            measured=_mean([part.measured for part in results]),
            replicates=_averaged_replicates(results, seed),
            metrics=metrics,
            curves=curves,
            settings={"parts": {name: dict(part.settings) for name, part in parts.items()}},
            parts=dict(parts),
            degrees=len(results) - 1 if seed is not None and len(results) > 1 else None,
        )


def with_references(references: Mapping[str, np.ndarray], curves: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Curves of measures with reference curves, whose names no measure may have."""
    taken = sorted(set(references) & set(curves))
    if taken:
        raise InvalidValueError(f"no measure can be named {taken[0]!r}: that is what a curve of the result is called; rename it")
    return {**references, **curves}


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
    """The mean in resamples of the points, the same row of each part; with a seed, as it may be with other runs."""
    n_runs = len(results)
    values = np.array([list(part.measured.values()) for part in results])
    known = [part.replicates for part in results if part.has_spread]
    if known and len(known) < n_runs:
        raise ArgumentError(
            f"parts must all have resamples or none, {len(known)} of {n_runs} have; run the others with resamples"
        )
    # Row by row: parts that share points, as OOD data sets share the known ones, share the resamples of those.
    points = np.mean(_cut(known), axis=0) if known else None
    if seed is None or n_runs < 2:
        return points
    resamples = MANY if points is None else len(points)
    drawn = np.random.default_rng(seed).normal(size=(resamples, n_runs))
    between = drawn @ (values - values.mean(axis=0)) / np.sqrt(n_runs * (n_runs - 1.0))  # the covariance of the mean
    return between + (values.mean(axis=0) if points is None else points)


def _cut(replicates: Sequence[Any]) -> list[np.ndarray]:
    """The same number of resamples from each."""
    shortest = min(map(len, replicates), default=0)  # parts may have different numbers of resamples
    return [each[:shortest] for each in replicates]


def _packed(result: TaskResult, prefix: str = "") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A result as plain data and named arrays; those of its parts behind a prefix."""
    plain = ("task", "metric", "higher_is_better", "measured", "metrics", "settings", "figure", "degrees")
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
    parts = {name: _unpacked(part, arrays, f"{prefix}parts/{name}/") for name, part in header["parts"].items()}
    if not isinstance(header["higher_is_better"], bool):  # any text would count as true
        raise InvalidValueError(f"higher_is_better must be true or false, got {header['higher_is_better']!r}")
    texts = {name: str(header[name]) for name in ("task", "metric", "figure")}
    return TaskResult(
        **texts,
        higher_is_better=header["higher_is_better"],
        measured=_floats(header["measured"]),
        replicates=arrays.get(f"{prefix}replicates"),
        metrics={name: _floats(column) for name, column in header["metrics"].items()},
        curves=curves,
        parts=parts,
        settings=dict(header["settings"]),
        degrees=None if header["degrees"] is None else int(header["degrees"]),
    )


def _floats(column: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in column.items()}
