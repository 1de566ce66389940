"""Where the subject of a report comes from: a file, an ensemble, a table of measures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UqprismError
from uqprism.evaluation import evaluate
from uqprism.files.options import matching
from uqprism.files.paths import named_by_stem
from uqprism.measures import MeasureTable, is_measure, select_measures
from uqprism.report.request import COLUMNS_THERE, ERRORS_THERE, PREDICTS, Request, check_names, refuse
from uqprism.report.subject import Split, Subject, Table, split_among, usual
from uqprism.rules import PAPER
from uqprism.tasks.prediction_error import prediction_error
from uqprism.tasks.scores import as_scores, errors_of, is_table, real_numbers

if TYPE_CHECKING:
    from uqprism.files.points import Points

MOST_MEASURES = 24  # of a scored file; of one with more, the usual ones
SHOWN_COLUMNS = 4


def subject_of(source: Any, request: Request) -> Subject:
    """The subject, whatever the source is."""
    if isinstance(source, EnsemblePrediction):
        refuse(request, "an ensemble", {"error_column": ERRORS_THERE, "show": COLUMNS_THERE, "prediction": PREDICTS})
        return _from_ensemble(source, request)
    if is_table(source):
        refuse(request, "a table of measures", {"error_column": ERRORS_THERE, "show": COLUMNS_THERE})
        return _from_table(source, request)
    if isinstance(source, str | os.PathLike) or (isinstance(source, Sequence) and source):
        check_names(request)
        return _from_files(source, request)
    raise ArgumentError(
        f"source must be a file, an EnsemblePrediction or a table of measures, got {type(source).__name__}; "
        "EnsemblePrediction.gaussian(mean=, variance=) makes an ensemble of arrays"
    )


# Files ----------------------------------------------------------------------------------------------------------------


def _from_files(source: Any, request: Request) -> Subject:
    from uqprism.files.points import Points

    points = Points.of(source, request.columns, request.on_bad)
    wanted, split = _wanted_of(points, request)
    measures, exactness = points.measured(wanted)
    n_given = len(next(iter(measures.values())))
    has_error = request.error_column is not None or (request.target is not None and n_given > 1)
    error = _error_of(points, request) if has_error else None
    given = {name: points.read([name])[name] for name in (request.target, request.prediction) if name is not None}
    shown = _shown_of(points, request)
    subject = Subject(
        title=request.title or points.paths[0].name,
        measures=measures,
        split=split,
        exactness=exactness,
        numbers=np.arange(n_given),
        n_given=n_given,
        target=given.get(request.target),
        prediction=given.get(request.prediction),
        error=error,
        error_words=request.error_words,
        target_name=request.target or "target",
        unit=request.unit,
        outside=_outside_files(request, wanted),
        others=lambda places: points.take(shown, places) if shown else {},
    )
    return _with_members(subject, points, request)


def _wanted_of(points: Points, request: Request) -> tuple[list[str], Split]:
    """Names and patterns of measures, with those of the split among them."""
    asked = [request.measures] if isinstance(request.measures, str) else list(request.measures or [])
    if not points.scored:
        split = Split.of(request.rule)
        select_measures([split.bayes])  # an unknown rule suggests the nearest
        return list(dict.fromkeys([*(asked or usual()), split.bayes, split.excess])), split
    split = split_among(points.scored, request.rule, points.title)
    few = points.scored if len(points.scored) <= MOST_MEASURES else [name for name in usual() if name in points.scored]
    return list(dict.fromkeys([*(asked or few), split.bayes, split.excess])), split


def _error_of(points: Points, request: Request) -> np.ndarray:
    return points.error(column=request.error_column, target=request.target, prediction=request.prediction, kind=request.error)


def _with_members(subject: Subject, points: Points, request: Request) -> Subject:
    """Without bad rows, and with the members where the file has them: a scored file need not."""
    try:
        points.layout  # noqa: B018 (asked for, to see whether there is one)
    except InvalidValueError:
        if not points.scored or request.columns != Columns():
            raise
        return subject.whole() if request.on_bad == "drop" else subject
    good, ensemble = points.good, points.ensemble()
    mean = np.full(subject.n_given, np.nan)
    mean[good] = to_numpy(ensemble.mixture.mean)
    if request.on_bad == "error":
        return replace(subject, ensemble=ensemble, prediction=mean if subject.prediction is None else subject.prediction)
    # Bad rows have no members; some distribution stands in until they are left out.
    places = np.maximum(np.cumsum(good) - 1, 0)
    marked = replace(
        subject,
        ensemble=ensemble[places] if len(ensemble) else None,
        prediction=mean if subject.prediction is None else np.where(good, subject.prediction, np.nan),
    )
    return marked.whole()


def _shown_of(points: Points, request: Request) -> list[str]:
    """Columns that tell rows apart: those asked for, or the first few that are neither members nor measures."""
    if request.show is not None:
        points.take(request.show, np.array([], dtype=np.intp))  # an unknown one is refused before any work
        return list(request.show)
    taken = {*points.scored, request.target, request.prediction, request.error_column}
    with suppress(InvalidValueError):  # a scored file need not have members
        taken |= {*points.layout.mean, *points.layout.spread}
    return [name for name in points.names if name not in taken][:SHOWN_COLUMNS]


def _outside_files(request: Request, wanted: Sequence[str]) -> dict[str, Table]:
    if request.ood is None or (not isinstance(request.ood, str | os.PathLike) and not len(request.ood)):
        return {}
    from uqprism.files.points import Points

    paths = named_by_stem([request.ood] if isinstance(request.ood, str | os.PathLike) else list(request.ood))
    found: dict[str, Table] = {
        name: Points.of(path, request.columns, request.on_bad).measures(wanted) for name, path in paths.items()
    }
    for path, table in zip(paths.values(), found.values(), strict=True):
        if np.any(np.isnan(list(table.values())), axis=0).all():
            raise InvalidValueError(f"{path}: must have a row that can be used, got none; leave it out, or repair its rows")
    return found


# Python ---------------------------------------------------------------------------------------------------------------


def _from_ensemble(ensemble: EnsemblePrediction, request: Request) -> Subject:
    flat = ensemble.flat()
    split = Split.of(request.rule)
    asked = list(dict.fromkeys([*_asked(request, flat), split.bayes, split.excess]))
    table = evaluate(flat, asked)
    measures = _flat(table)
    target = _each(request.target, "target", flat.n_points)
    return Subject(
        title=request.title or "an ensemble",
        measures=measures,
        split=split,
        exactness=table.exactness,
        numbers=np.arange(flat.n_points),
        n_given=flat.n_points,
        ensemble=flat,
        prediction=to_numpy(flat.mixture.mean).astype(np.float64),
        target=target,
        error=_ensemble_error(request, ensemble, measures),
        error_words=request.error_words,
        unit=request.unit,
        outside=_outside(
            request.ood, lambda other: _flat(evaluate(other, asked)) if isinstance(other, EnsemblePrediction) else None
        ),
    )


def _ensemble_error(request: Request, ensemble: EnsemblePrediction, measures: Table) -> np.ndarray | None:
    """As given, or made from the targets; of a single row there is nothing to make of it."""
    if not isinstance(request.error, str):
        return errors_of(request.error, as_scores(measures))
    if request.target is None or ensemble.n_points < 2:
        return None
    return prediction_error(ensemble, request.target, request.error)  # type: ignore[arg-type]


def _each(values: Any, argument: str, n_rows: int) -> np.ndarray | None:
    """A number for each row, if there are any."""
    if values is None:
        return None
    found = real_numbers(values, argument, finite=True, fewest=1)
    if len(found) != n_rows:
        raise ShapeError(f"{argument} must have one value for each of the {n_rows} rows, got {len(found)}")
    return found


def _asked(request: Request, ensemble: EnsemblePrediction) -> list[str]:
    """The measures asked for, or the usual ones of all rules that these members have: samples have no density, for one."""
    if request.measures is not None:
        return [measure.name for measure in select_measures(request.measures, default="usual")]
    return usual([rule for rule in PAPER if _has(rule, ensemble)])


def _has(rule: str, ensemble: EnsemblePrediction) -> bool:
    try:
        found = evaluate(ensemble[:1], usual([rule]))
    except UqprismError:
        return False
    return all(bool(np.isfinite(to_numpy(column)).all()) for column in found.values())


def _from_table(source: Any, request: Request) -> Subject:
    measures = dict(as_scores(source, "source", fewest=1).columns)
    split = split_among([name for name in measures if is_measure(name)], request.rule, "source")
    if request.measures is not None:
        names = _named(request.measures, list(measures))
        measures = {name: measures[name] for name in dict.fromkeys([*names, split.bayes, split.excess])}
    n_rows = len(measures[split.bayes])
    target, prediction = (_each(getattr(request, name), name, n_rows) for name in ("target", "prediction"))
    return Subject(
        title=request.title or "a table of measures",
        measures=measures,
        split=split,
        exactness=getattr(source, "exactness", {}),
        numbers=np.arange(n_rows),
        n_given=n_rows,
        target=target,
        prediction=prediction,
        error=_error(request, target, prediction, source),
        error_words=request.error_words,
        unit=request.unit,
        outside=_outside(request.ood, lambda other: dict(as_scores(other).columns) if is_table(other) else None),
    )


def _named(asked: str | Sequence[str], names: Sequence[str]) -> list[str]:
    """Names and patterns, with commas between if you like, as for a file; a name may have a comma of its own."""
    given = [str(text) for text in ([asked] if isinstance(asked, str) else asked)]
    parts = [part.strip() for text in given for part in ([text] if text in names else text.split(","))]
    return matching([part for part in parts if part], names, "source")


def _error(request: Request, target: Any, prediction: Any, source: Any) -> np.ndarray | None:
    if not isinstance(request.error, str):
        return errors_of(request.error, as_scores(source, "source"))
    if target is None or len(target) < 2:
        return None
    if prediction is None:
        raise ArgumentError("a table of measures has no predictions; give prediction= beside target=, or error= as an array")
    if request.error not in {"squared", "absolute"}:
        raise ArgumentError(f"error={request.error!r} needs the members; give an ensemble, or take 'squared' or 'absolute'")
    apart = np.abs(target - prediction)
    return apart**2 if request.error == "squared" else apart


def _outside(ood: Any, measured: Callable[[Any], Table | None]) -> dict[str, Table]:
    """Tables of rows from outside by name; one without a name is called so."""
    if ood is None:
        return {}
    found = {}
    for name, each in (ood if _several(ood) else {"outside": ood}).items():
        table = measured(each)
        if table is None:
            raise ArgumentError(f"ood must be of the kind of the source, or several such by name, got {type(each).__name__}")
        found[str(name)] = table
    return found


def _several(ood: Any) -> bool:
    return (
        isinstance(ood, Mapping)
        and not isinstance(ood, MeasureTable)
        and all(is_table(each) or isinstance(each, EnsemblePrediction) for each in ood.values())
    )


def _flat(table: MeasureTable) -> dict[str, np.ndarray]:
    return {name: to_numpy(column).reshape(-1).astype(np.float64, copy=False) for name, column in table.items()}
