"""Reading what a report is about from a data frame, an ensemble or a table of measures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uqprism.adapters.table import from_frame, header_of
from uqprism.arrays import on_device, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.columns import Columns, NoMembersError, described
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UqprismError
from uqprism.evaluation import evaluate
from uqprism.families.quadrature import Exactness
from uqprism.files.options import matching
from uqprism.measures import Measure, MeasureTable, is_measure, select_measures
from uqprism.plots.words import UNNAMED
from uqprism.registry import unknown
from uqprism.report.naming import identifier
from uqprism.report.subject import MeasureColumns, MeasurePair, Rows, Subject
from uqprism.rules import PAPER
from uqprism.tasks.prediction_error import Kind, prediction_error
from uqprism.tasks.scores import Scores, as_scores, errors_of, is_table, real_numbers

MOST_MEASURES = 24  # of a scored file; from one with more the usual ones are taken
SHOWN_COLUMNS = 4
MISSING = {"None", "nan", "NaT", "<NA>"}  # what stands for no value, as text


@dataclass(frozen=True)
class _Held:
    """What an object in memory holds: members, measures, further columns, or some of these.

    Attributes:
        title: what it is called, with its article.
        ensemble: the members, over one axis of points.
        shape: of the points before they were put on one axis.
        index: of a pandas frame.
        scored: measures, (rows,), by name; empty if they have to be computed from the members.
        exactness: of the measures, where it is known.
        frame: the data frame that has further columns.
        columns: the names of all columns of the frame.
        taken: those of the members.
    """

    title: str
    ensemble: EnsemblePrediction | None = None
    shape: tuple[int, ...] = ()
    index: Any = None
    scored: MeasureColumns = field(default_factory=dict)
    exactness: Mapping[str, Exactness] = field(default_factory=dict)
    frame: Any = None
    columns: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()

    def measured(self, names: Sequence[str]) -> tuple[MeasureColumns, Mapping[str, Exactness]]:
        """These measures, read or computed, and how exact they are."""
        found, exactness = dict(self.scored), self.exactness
        found |= {name: real_numbers(self.frame[name], name, fewest=1) for name in names if name in self.columns}
        wanted = [name for name in names if name not in found]
        if wanted and self.ensemble is not None and not self.scored:
            table = evaluate(self.ensemble, wanted)
            found |= {name: to_numpy(column).astype(np.float64, copy=False) for name, column in table.items()}
            exactness = table.exactness
        return {name: found[name] for name in names if name in found}, exactness

    def errors(self, error: Any, measures: MeasureColumns) -> np.ndarray:
        """The errors themselves, one for each row of the measures."""
        return errors_of(error, Scores(measures, self.shape, self.index))

    def values(self, given: Any, argument: str, n_rows: int) -> np.ndarray | None:
        """One number per row: an array, or a column of the frame."""
        if given is None:
            return None
        if isinstance(given, str):
            given = self.column(given, argument)
        found = real_numbers(given, argument, finite=True, fewest=1)
        if len(found) != n_rows:
            raise ShapeError(f"{argument} must have one value for each of the {n_rows} rows, got {len(found)}")
        if self.shape and np.ndim(given) > 1 and np.shape(given) != self.shape:
            raise ShapeError(f"{argument} must have the shape of the points {self.shape}, got {np.shape(given)}")
        return found

    def column(self, name: str, argument: str) -> Any:
        """A column of the frame."""
        if self.frame is None:
            raise ArgumentError(f"{argument} must be an array for {self.title}, got the text {name!r}")
        if name not in self.columns:
            raise InvalidValueError(f"{self.title}: {unknown('column', name, self.columns)}")
        return self.frame[name]

    def identifiers(self, given: Any, taken: Collection[str], n_rows: int) -> tuple[str, Any]:
        """What rows are called by, and the values: given, the named index of a frame, or a column that is named like one."""
        index_name = getattr(self.index, "name", None)
        if isinstance(given, str):
            return given, self.index if given == index_name else self.column(given, "id")
        if given is not None:
            if np.shape(given) != (n_rows,):
                raise ShapeError(f"id must have one value for each of the {n_rows} rows, got the shape {np.shape(given)}")
            return str(getattr(given, "name", None) or "id"), given
        if isinstance(index_name, str) and self.index.is_unique:
            return index_name, self.index
        name = identifier([name for name in self.columns if name not in taken], lambda name: _is_unique(self.frame[name]))
        return name, self.frame[name] if name else ()


def _is_unique(column: Any) -> bool:
    values = set(map(str, _cells(column, np.arange(len(column)))))
    return len(values) == len(column) and not values & MISSING


def _held(source: Any, columns: Columns) -> _Held:
    """What the source holds."""
    if isinstance(source, EnsemblePrediction):
        return _Held("an ensemble", _plain(source.flat()), tuple(source.points_shape))
    if not is_table(source):
        raise ArgumentError(
            f"source must be a file, a data frame, an EnsemblePrediction or a table of measures, got {type(source).__name__}; "
            "EnsemblePrediction.gaussian(mean=, variance=) makes an ensemble of arrays"
        )
    names = [str(name) for name in getattr(source, "column_names", None) or getattr(source, "columns", source)]
    measures = [name for name in names if is_measure(name)]
    if isinstance(source, Mapping) and measures:  # every column is a measure, also those with a name of their own
        scores = as_scores(source, "source", fewest=1)
        exactness = getattr(source, "exactness", {})
        return _Held("a table of measures", shape=scores.shape, scored=scores.columns, exactness=exactness)
    return _held_frame(source, columns, names, measures)


def _plain(ensemble: EnsemblePrediction) -> EnsemblePrediction:
    """With NumPy arrays, which fused kernels take, in place of tensors and JAX arrays in main memory."""
    if on_device(ensemble.members.centre):
        return ensemble
    weights = None if ensemble.weights is None else to_numpy(ensemble.weights)
    return EnsemblePrediction(ensemble.members.map(to_numpy), weights, check=False).made_by(ensemble.origin)


def _held_frame(frame: Any, columns: Columns, names: Sequence[str], measures: Sequence[str]) -> _Held:
    """What a data frame holds: members, or measures with or without members."""
    ensemble, taken = None, frozenset[str]()
    try:
        ensemble = from_frame(
            frame,
            family=columns.family,
            mean_columns=columns.mean,
            variance_columns=columns.variance,
            scale_columns=columns.scale,
        )
        taken = frozenset(described(columns, names, "frame", header_of(frame)).names)
    except NoMembersError:
        if isinstance(frame, Mapping):
            MeasurePair.among([], "crps", "source")  # raises: a mapping without members is a table that lacks measures
        if not measures:
            raise
    scored = {name: real_numbers(frame[name], f"source[{name!r}]", fewest=1) for name in measures}
    index = frame.index if hasattr(frame, "reindex") else None  # errors must have the same
    return _Held("a data frame", ensemble, index=index, scored=scored, frame=frame, columns=tuple(names), taken=taken)


def from_memory(
    source: Any,
    columns: Columns,
    *,
    target: Any,
    prediction: Any,
    error: Any,
    ood: Any,
    asked: Any,
    rule: str,
    show: Any,
    id: Any,
) -> Subject:
    """The rows of an object in memory; `read_subject` describes the arguments."""
    held = _held(source, columns)
    _refuse_unused(held, prediction, show)
    names, pair = _chosen_in_memory(held, asked, rule)
    measures, exactness = held.measured(names)
    n_rows = len(measures[pair.bayes])
    y, predicted = held.values(target, "target", n_rows), held.values(prediction, "prediction", n_rows)
    used = {name for name in (target, prediction, None if target is not None else error) if isinstance(name, str)}
    taken = {*held.scored, *held.taken, *used}
    named_by, ids = held.identifiers(id, taken, n_rows)
    shown = shown_columns(held.columns, show, {*taken, named_by})
    cells = {name: held.column(name, "show") for name in shown}
    mean = None if held.ensemble is None else to_numpy(held.ensemble.mixture.mean).astype(np.float64)
    return Subject(
        title=held.title,
        measures=measures,
        pair=pair,
        exactness=exactness,
        numbers=np.arange(n_rows),
        n_given=n_rows,
        ensemble=held.ensemble,
        target=y,
        prediction=mean if predicted is None else predicted,
        error=_error_in_memory(held, error, y, predicted, measures),
        ood=_ood_in_memory(held, ood, names, pair, columns),
        columns_at=lambda places: {name: _cells(cells[name], places) for name in shown},
        id_name=named_by,
        ids_at=lambda places: _cells(ids, places),
    )


def _refuse_unused(held: _Held, prediction: Any, show: Any) -> None:
    """Refuse what this kind of source cannot use."""
    if held.frame is not None:
        return
    if show is not None:
        raise ArgumentError(f"show must be left out for {held.title}: only a file or a data frame has columns to show")
    if prediction is not None and held.ensemble is not None:
        raise ArgumentError("prediction must be left out for an ensemble, which predicts its mean; for another give error=")


def _chosen_in_memory(held: _Held, asked: Any, rule: str) -> tuple[list[str], MeasurePair]:
    """The names of the measures, and the pair among them."""
    if held.scored:
        pair = MeasurePair.among([name for name in held.scored if is_measure(name)], rule, "source")
        default = list(held.scored) if held.frame is None else few_measures(list(held.scored))
    else:
        assert held.ensemble is not None  # noqa: S101 (a source with neither members nor measures was refused)
        pair = MeasurePair.of(rule)
        select_measures(pair.bayes)  # an unknown rule suggests the nearest
        default = _computable(held.ensemble) if asked is None else []
    names = default if asked is None else _named(asked, held)
    return list(dict.fromkeys([*names, pair.bayes, pair.excess])), pair


def _named(asked: Any, held: _Held) -> list[str]:
    """The columns and measures of these names and patterns, also several with commas between; a name may have a comma too."""
    texts = [str(text) for text in ([asked] if isinstance(asked, str | Measure) else asked)]
    known = {*held.scored, *held.columns}
    parts = [part.strip() for text in texts for part in ([text] if text in known else text.split(",")) if part.strip()]
    own = [part for part in parts if part in known]
    others = [part for part in parts if part not in known]
    if held.scored or not others:
        return [*own, *matching(others, list(held.scored), "source")]
    return [*own, *(measure.name for measure in select_measures(others))]


def _computable(ensemble: EnsemblePrediction) -> list[str]:
    """The usual measures of those of the paper's rules that these members have; samples have no density."""

    def has(rule: str) -> bool:
        try:
            # One point shows which risks the family has.
            found = evaluate(ensemble[:1], [name for name in usual if name.startswith(f"{rule}.")])
        except UqprismError:
            return False
        return all(bool(np.isfinite(to_numpy(column)).all()) for column in found.values())

    usual = usual_measures()
    rules = [rule for rule in PAPER if has(rule)]
    return [name for name in usual if name.split(".")[0] in rules]


def _error_in_memory(
    held: _Held, error: Any, target: np.ndarray | None, prediction: np.ndarray | None, measures: MeasureColumns
) -> np.ndarray | None:
    """The error of each row: given, a column, or made from target and prediction; None for a single row with a target."""
    if error is not None and not isinstance(error, str):
        return held.errors(error, measures)
    if target is None:
        return None if error is None else held.errors(held.column(error, "error"), measures)
    if len(target) < 2:
        return None
    kind: Kind = error or "squared"  # type: ignore[assignment]  # checked by prediction_error
    if prediction is None:
        if held.ensemble is None:
            raise ArgumentError(
                f"{held.title} has no predictions; give prediction= beside target=, or the errors themselves as error="
            )
        return prediction_error(held.ensemble, target, kind)
    if kind not in {"squared", "absolute"}:
        raise ArgumentError(f"error={kind!r} needs the members, not a prediction; take 'squared' or 'absolute'")
    difference = np.abs(target - prediction)
    return difference**2 if kind == "squared" else difference


def _ood_in_memory(held: _Held, ood: Any, names: Sequence[str], pair: MeasurePair, columns: Columns) -> dict[str, Rows]:
    """Rows with unfamiliar inputs, by name; a single data set needs no name."""
    if ood is None:
        return {}
    found = {}
    for name, each in (ood if _is_several(ood) else {UNNAMED: ood}).items():
        other = _held(each, columns) if is_table(each) or isinstance(each, EnsemblePrediction) else None
        if other is None or bool(other.scored) != bool(held.scored):  # members and measures cannot be compared
            raise ArgumentError(f"ood must be of the kind of the source, or several such by name, got {type(each).__name__}")
        found[str(name)] = Rows.of(other.measured(names)[0], pair)
    return found


def _is_several(ood: Any) -> bool:
    return (
        isinstance(ood, Mapping)
        and not isinstance(ood, MeasureTable)
        and all(is_table(each) or isinstance(each, EnsemblePrediction) for each in ood.values())
    )


def _cells(column: Any, places: np.ndarray) -> list[Any]:
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    return list(values[places].tolist())  # plain numbers, which `str` shows without their type


def usual_measures() -> list[str]:
    """The names of the usual twelve measures."""
    return [measure.name for measure in select_measures("usual")]


def few_measures(scored: Sequence[str]) -> list[str]:
    """All measures of a scored table, or the usual ones of a table with many."""
    return [name for name in usual_measures() if name in scored] if len(scored) > MOST_MEASURES else list(scored)


def shown_columns(names: Sequence[str], asked: Sequence[str] | None, taken: Collection[str | None]) -> list[str]:
    """The columns that tell rows apart: those asked for, or the first few that are nothing else."""
    return list(asked) if asked is not None else [name for name in names if name not in taken][:SHOWN_COLUMNS]
