"""Reading what a report is about, from a file or from an object in memory."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.ensemble.columns import Columns
from uqprism.ensemble.origin import KINDS
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.files.paths import named_by_stem
from uqprism.measures import MeasuresLike, select_measures
from uqprism.plots.words import ErrorWords
from uqprism.registry import unknown
from uqprism.report.memory import few_measures, from_memory, shown_columns, usual_measures
from uqprism.report.naming import identifier, split_unit
from uqprism.report.subject import LONGEST_NAME, MeasurePair, Rows, Subject, cut
from uqprism.tasks.audit.result import check as checked_audit

if TYPE_CHECKING:
    from uqprism.files.points import Points


def read_subject(
    source: Any,
    *,
    target: Any = None,
    prediction: Any = None,
    error: Any = None,
    ood: Any = None,
    columns: Columns | None = None,
    measures: MeasuresLike = None,
    rule: str = "crps",
    unit: str | None = None,
    title: str | None = None,
    show: Sequence[str] | None = None,
    id: Any = None,
    audit: Any = None,
    models: str | None = None,
) -> Subject:
    """Read everything that a report says about its rows; `write_report` describes the arguments."""
    if models is not None and models not in KINDS:
        raise ArgumentError(str(unknown("kind of models (models, --models)", models, KINDS)))
    read = _from_file if _is_file(source) else from_memory
    subject = read(
        source,
        columns or Columns(),
        target=target,
        prediction=prediction,
        error=error,
        ood=ood,
        asked=measures,
        rule=rule,
        show=show,
        id=id,
    )
    name, unit = _target_words(target, unit)
    found = None if audit is None else checked_audit(audit)
    if found is not None and subject.pair.excess not in found:
        raise ArgumentError(
            f"audit must hold {subject.pair.excess}, by which this page splits; it holds {', '.join(found)}: audit that measure "
            "too, or take another rule"
        )
    return replace(
        subject,
        title=title or subject.title,
        audit=found,
        models=models,
        unit=unit,
        target_name=cut(name, LONGEST_NAME),
        error_words=_error_words(error, has_target=target is not None, unit=unit),
    )


def _target_words(target: Any, unit: str | None) -> tuple[str, str]:
    """What the target is called, and its unit: the one given, or else the one in the name of the column."""
    name = target if isinstance(target, str) else getattr(target, "name", None)  # a pandas series has a name
    if not isinstance(name, str):
        return "", unit or ""
    short, found = split_unit(name)
    return (short, found) if unit in {None, found} else (name, unit or "")


def _error_words(error: Any, *, has_target: bool, unit: str) -> ErrorWords:
    """What to call the error; a column of errors may have the name of a kind of error that it is not."""
    if error is None or isinstance(error, str):
        return ErrorWords.of(error or "squared", unit) if has_target else ErrorWords.named(error or "error")
    return ErrorWords.named("error")


def _is_file(source: Any) -> bool:
    # `Points` is known by an attribute, because its module imports pyarrow.
    if isinstance(source, str | os.PathLike) or hasattr(source, "paths"):
        return True
    return isinstance(source, list | tuple) and bool(source) and all(isinstance(each, str | os.PathLike) for each in source)


def _from_file(
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
    from uqprism.files.points import Points

    for name, value in {"target": target, "prediction": prediction, "error": error, "id": id}.items():
        if value is not None and not isinstance(value, str):
            raise ArgumentError(f"{name} must be the name of a column for a file, got {type(value).__name__}")
    points = source if isinstance(source, Points) else Points.of(source, columns)
    names, pair = _chosen_of_file(points, asked, rule)
    measures, exactness = points.measured(names)
    n_given = len(next(iter(measures.values())))
    # What the page shows anyway is no further column.
    taken = {*points.scored, *_member_columns(points), target, prediction, None if target else error}
    named_by = id or _identifier(points, taken)
    shown = shown_columns(points.names, show, {*taken, named_by})
    points.take([*shown, *([named_by] if named_by else [])], np.array([], dtype=np.intp))  # refuses an unknown column early
    subject = Subject(
        title=points.paths[0].name,
        measures=measures,
        pair=pair,
        exactness=exactness,
        numbers=np.arange(n_given),
        n_given=n_given,
        target=None if target is None else points.read([target])[target],
        prediction=None if prediction is None else points.read([prediction])[prediction],
        # One error cannot be ranked.
        error=_error_of_file(points, target, prediction, error) if n_given > 1 or target is None else None,
        ood=_ood_of_file(points, ood, names, pair),
        columns_at=lambda places: points.take(shown, places) if shown else {},
        id_name=named_by,
        ids_at=lambda places: points.take([named_by], places)[named_by],
    )
    return _with_members(subject, points)


def _identifier(points: Points, taken: Collection[str | None]) -> str:
    """The column that identifies the rows: the named index of a frame that was saved, or one that is named like an identifier."""
    try:
        index = (getattr(points.schema, "pandas_metadata", None) or {}).get("index_columns", [])
    except (ValueError, AttributeError):  # metadata that pandas did not write
        index = []
    saved = [name for name in index if isinstance(name, str) and not name.startswith("__index_level_")]
    others = [name for name in points.names if name not in taken]

    def is_unique(name: str) -> bool:
        column = points.column(name)
        return bool(column.null_count == 0 and len(column) == len(column.unique()))

    return next((name for name in saved if name in others and is_unique(name)), "") or identifier(others, is_unique)


def _chosen_of_file(points: Points, asked: Any, rule: str) -> tuple[list[str], MeasurePair]:
    """The names or patterns of the measures to read, and the pair among them."""
    wanted = [asked] if isinstance(asked, str) else [str(each) for each in asked or []]
    if not points.scored:
        pair = MeasurePair.of(rule)
        select_measures(pair.bayes)  # an unknown rule suggests the nearest
        return list(dict.fromkeys([*(wanted or usual_measures()), pair.bayes, pair.excess])), pair
    pair = MeasurePair.among(points.scored, rule, points.title)
    return list(dict.fromkeys([*(wanted or few_measures(points.scored)), pair.bayes, pair.excess])), pair


def _error_of_file(points: Points, target: str | None, prediction: str | None, error: str | None) -> np.ndarray | None:
    if target is None:
        return None if error is None else points.error(column=error, target=None, prediction=prediction)
    return points.error(column=None, target=target, prediction=prediction, kind=error or "squared")


def _with_members(subject: Subject, points: Points) -> Subject:
    """The subject without bad rows, and with the members where the file has them; a scored file need not."""
    try:
        points.layout  # noqa: B018 (raises where there is none)
    except InvalidValueError:
        if not points.scored or points.columns != Columns():
            raise
        return subject.without_missing() if points.on_bad == "drop" else subject
    good, ensemble = points.good, points.ensemble()
    # Bad rows keep their places until all arrays lose them together.
    mean = np.full(subject.n_given, np.nan)
    mean[good] = to_numpy(ensemble.mixture.mean)
    if points.on_bad == "error":
        return replace(subject, ensemble=ensemble, prediction=mean if subject.prediction is None else subject.prediction)
    # Bad rows have no members; those of another row fill their places until they are left out.
    places = np.maximum(np.cumsum(good) - 1, 0)
    prediction = mean if subject.prediction is None else np.where(good, subject.prediction, np.nan)
    return replace(subject, ensemble=ensemble[places] if len(ensemble) else None, prediction=prediction).without_missing()


def _member_columns(points: Points) -> set[str]:
    with suppress(InvalidValueError):  # a scored file need not have members
        return {*points.layout.names}
    return set()


def _ood_of_file(points: Points, ood: Any, names: Sequence[str], pair: MeasurePair) -> dict[str, Rows]:
    from uqprism.files.points import Points

    paths = [] if ood is None else [ood] if isinstance(ood, str | os.PathLike) else list(ood)
    found = {}
    for title, path in named_by_stem(paths).items():
        rows = Rows.of(Points.of(path, points.columns, points.on_bad).measures(names), pair)
        if not rows.complete.any():
            raise InvalidValueError(f"{path}: must have a row that can be used, got none; leave it out, or repair its rows")
        found[title] = rows.without_missing() if points.on_bad == "drop" else rows
    return found
