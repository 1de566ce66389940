"""`Watch`: has the world changed since the reference, and in which way?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import RuleLike, resolve_rule
from uqprism.registry import Registry
from uqprism.support.optional import require
from uqprism.synonyms import named_arguments
from uqprism.tasks.recalibration import Recalibration
from uqprism.tasks.watch.core import FEWEST, OUTCOMES, Core, Found
from uqprism.tasks.watch.penalty import Correction, Estimate
from uqprism.tasks.watch.result import Alarm, Update, power
from uqprism.tasks.watch.rows import Reader, Rows
from uqprism.tasks.watch.stored import load, save
from uqprism.tasks.watch.track import Track

# What needs the floors above, which read files and write pages: a module of these packages registers it.
SOURCES: Registry[Callable[..., Any]] = Registry("source", "uqprism.files.watching")
PAGES: Registry[Callable[..., Any]] = Registry("page", "uqprism.report.watching")


class Watch:
    """Watch a stream of predictions for changes, without outcomes; with an alarm that is false with a stated probability at most.

    The first argument is the reference: predictions for rows that are as usual, and that the models were not trained on. Each
    new row is ranked among the reference and all rows before it, by its disagreement and by its noise. As long as the rows are as
    good as shuffled, these ranks are independent and uniform exactly, and a gambler who bets against that cannot expect to win.
    The alarm is raised when one has multiplied the money by the number of tests over the level.

        watch = up.Watch(reference, level=0.05)
        for batch in stream:
            found = watch.update(batch)
            for alarm in found.new:
                print(alarm.sentence, alarm.advice)

    Args:
        reference: an `EnsemblePrediction`, a `MeasureTable`, a table with columns of members or of measures, or a file, a folder
            or a pattern of such.
        rule: the scoring rule, or its name, under which noise and disagreement are measured.
        level: the probability of any alarm, ever, if nothing changes. All tests share it equally.
        groups: also test each group of rows by itself: the name of a column, or for an ensemble one value per row.
        target: outcomes of the reference, the name of a column or one value per row, NaN where not known. With them the estimate
            of the penalty is corrected, and where new rows have outcomes, penalty and calibration are watched too.
        window: rows of a window; by default each update is one.
        recalibration: from `up.recalibrate`; applied to all predictions before they are measured.
        columns: which columns of files and tables hold the members, where they do not have the usual names.
        seed: of the random order of equal values.
    """

    @named_arguments()
    def __init__(
        self,
        reference: Any,
        rule: RuleLike = "crps",
        *,
        level: float = 0.05,
        groups: Any = None,
        target: Any = None,
        window: int | None = None,
        recalibration: Recalibration | None = None,
        columns: Columns | None = None,
        seed: int = 0,
    ) -> None:
        if not 0.0 < level < 1.0:
            raise InvalidValueError(f"level must be between 0 and 1, got {level}; 0.05 is usual")
        if window is not None and (window != int(window) or window < 1):
            raise InvalidValueError(f"window must be a whole number of rows, at least 1, got {window}")
        if recalibration is not None and not isinstance(recalibration, Recalibration):
            raise ArgumentError(f"recalibration must be from up.recalibrate, got {type(recalibration).__name__}")
        own_groups, own_target = (None if isinstance(each, str) else each for each in (groups, target))
        reader = Reader(
            resolve_rule(rule),
            groups=groups if isinstance(groups, str) else None,
            target=target if isinstance(target, str) else None,
            recalibration=recalibration,
            columns=columns or Columns(),
        )
        if _is_path(reference):
            reader, rows = SOURCES.get("files")(reference, reader)
        else:
            reader = reader.with_groups(reference, own_groups)
            rows = reader.read(reference, own_target, own_groups, "reference")
        self._core = Core(reader, rows, float(level), None if window is None else int(window), int(seed))

    # What is known ---------------------------------------------------------------------------------------------------

    @property
    def rule(self) -> str:
        """The name of the rule."""
        return self.reader.rule.name

    @property
    def level(self) -> float:
        """The probability of any alarm, ever, if nothing changes."""
        return self._core.level

    @property
    def tests(self) -> list[Track]:
        """What is tested."""
        return self._core.tests

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms so far, the first first; at most one of each test."""
        return tuple(self._core.alarms)

    @property
    def evidence(self) -> dict[str, float]:
        """By test, how many times the money of a gambler against "nothing has changed" has grown; below one it has shrunk."""
        return {track.name: power(track.evidence.log) for track in self.tests}

    @property
    def thresholds(self) -> dict[str, float]:
        """By test, the evidence that raises an alarm."""
        return {track.name: 1.0 / track.level for track in self.tests}

    @property
    def rows(self) -> int:
        """How many rows there were, without those that wait for their window to be full."""
        return self._core.rows

    @property
    def windows(self) -> int:
        """How many windows there were."""
        return self._core.windows

    @property
    def waiting(self) -> int:
        """How many rows wait for their window to be full."""
        return sum(map(len, self._core.waiting))

    @property
    def reader(self) -> Reader:
        """How rows are read."""
        return self._core.reader

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the reference."""
        return self.reader.names

    @property
    def guarantee(self) -> str:
        """What is promised, in a sentence."""
        return (
            f"If the rows are as good as shuffled together with the {self._core.reference:,} rows of the reference, the "
            f"probability of any alarm, ever, is at most {self.level:g}; each of the {len(self.tests)} tests has "
            f"{self.tests[0].level:.3g} of it."
        )

    # New rows --------------------------------------------------------------------------------------------------------

    def update(self, batch: Any, *, target: Any = None, groups: Any = None, source: str | None = None) -> Update:
        """Look at new rows, and report what has been found so far.

        Args:
            batch: new predictions, of the kind of the reference; also a file.
            target: their outcomes, NaN where not known yet; by default the column that the reference has.
            groups: their groups; by default the column that the reference has.
            source: what alarms call these rows, such as the name of a file; by default `batch 0` and so on.
        """
        if _is_path(batch):
            return self.take(SOURCES.get("files")(batch, self.reader)[1], source or _name(batch))
        return self.take(self.reader.read(batch, target, groups), source)

    def outcomes(self, batch: Any, target: Any = None, *, groups: Any = None, source: str | None = None) -> Update:
        """Look at outcomes that have come late, of rows that were seen before: penalty and calibration alone are tested.

        Args:
            batch: the predictions for those rows, of the kind of the reference.
            target: their outcomes; by default the column that the reference has.
            groups: their groups; by default the column that the reference has.
            source: what alarms call these rows; by default `batch 0` and so on.
        """
        if not any(track.quantity in OUTCOMES for track in self.tests):
            raise ArgumentError(f"outcomes need a reference with at least {FEWEST} outcomes; pass target= to Watch")
        if _is_path(batch):
            return self.take_outcomes(SOURCES.get("files")(batch, self.reader)[1], source or _name(batch))
        return self.take_outcomes(self.reader.read(batch, target, groups), source)

    def take(self, rows: Rows, source: str | None, first: int = 0) -> Update:
        """Look at rows that were read already; `first` is the place of the first one in its source."""
        return self._report(self._core.take(rows, source, first))

    def take_outcomes(self, rows: Rows, source: str | None) -> Update:
        """Look at late outcomes of rows that were read already."""
        if not np.isfinite(rows.penalty).any():
            raise ArgumentError("outcomes need a target with numbers; pass target=")
        return self._report(self._core.take_outcomes(rows, source))

    def _report(self, found: list[Found]) -> Update:
        return Update(
            windows=tuple(record for record, _ in found),
            alarms=self.alarms,
            new=tuple(alarm for _, new in found for alarm in new),
            evidence=self.evidence,
            thresholds=self.thresholds,
            estimate=self.estimate,
            waiting=self.waiting,
        )

    @property
    def estimate(self) -> Estimate | None:
        """The mean penalty in the latest window, or None before the first."""
        return self._core.estimate

    @property
    def correction(self) -> Correction:
        """What predictions cost in the reference, as a multiple of what the models expected; one without outcomes."""
        return self._core.correction

    # Results ---------------------------------------------------------------------------------------------------------

    @property
    def history(self) -> dict[str, np.ndarray]:
        """Columns of all windows, or of evenly spaced ones of a long stream.

        They are those of `Update.windows`, and for each test its evidence as a power of ten, such as `evidence.excess`.
        """
        return self._core.series.columns

    def to_pandas(self) -> Any:
        """The history as a `pandas.DataFrame` with a row per window."""
        return require("pandas", extra="pandas").DataFrame(self.history).set_index("window")

    def plot(self, ax: Any = None) -> Any:
        """Draw the evidence of each test against the threshold, by window; returns the axes."""
        from uqprism import plots

        return plots.evidence(self, ax=ax)

    def plot_penalty(self, ax: Any = None) -> Any:
        """Draw the estimate of the penalty with its interval, and the penalty where outcomes are known; returns the axes."""
        from uqprism import plots

        return plots.penalties(self, ax=ax)

    def report(self, path: str | os.PathLike[str] = "watch.html") -> Any:
        """Write a page with the alarms in plain sentences and the history; one file, no network."""
        return PAGES.get("watch")(self, path)

    def save(self, path: str | os.PathLike[str], *, beside: Mapping[str, Any] | None = None) -> None:
        """Write the state to a .npz file, atomically; `load` reads it, and goes on as if there had been no pause.

        Args:
            path: the file.
            beside: what else to keep in it, as JSON can hold it, for `resume`.
        """
        save(self._core, path, beside)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Watch:
        """Read what `save` wrote."""
        return cls.resume(path)[0]

    @classmethod
    def resume(cls, path: str | os.PathLike[str]) -> tuple[Watch, dict[str, Any]]:
        """Read what `save` wrote, and what was kept beside it."""
        made = cls.__new__(cls)
        made._core, beside = load(path)
        return made, beside

    def __repr__(self) -> str:
        alarms = f"{len(self.alarms)} alarms" if self.alarms else "no alarm"
        return f"<Watch: {self.rule}, {len(self.tests)} tests, {self.windows:,} windows, {alarms}>"


def _is_path(given: Any) -> bool:
    """Whether this is a path, or several."""
    if isinstance(given, list | tuple):
        return bool(given) and all(isinstance(each, str | os.PathLike) for each in given)
    return isinstance(given, str | os.PathLike)


def _name(given: Any) -> str:
    return os.fspath(given[0] if isinstance(given, list | tuple) else given)
