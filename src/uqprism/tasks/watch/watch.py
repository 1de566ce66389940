"""`Watch`: has the world changed since the reference, and in which way?"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import RuleLike, resolve_rule
from uqprism.registry import Registry
from uqprism.support.optional import require
from uqprism.support.parallel import threads
from uqprism.synonyms import named_arguments
from uqprism.tasks.recalibration import Recalibration
from uqprism.tasks.watch.naming import kind_of
from uqprism.tasks.watch.penalty import Correction, Estimate
from uqprism.tasks.watch.pool import Pool
from uqprism.tasks.watch.result import Alarm, Row, Update, power
from uqprism.tasks.watch.rows import Reader, Rows
from uqprism.tasks.watch.series import COLUMNS, Series
from uqprism.tasks.watch.sources import Sources
from uqprism.tasks.watch.track import Seen, Track

FEWEST = 20  # rows of the reference
MOST_GROUPS = 200
LONG = 10_000  # rows that are worth a thread for each test
MOST_ROWS = 10  # that an alarm names
TESTED, OUTCOMES, NAMING = ("excess", "bayes"), ("penalty", "calibration"), ("share",)

# What needs the floors above, which read files and write pages: a module of these packages registers it.
SOURCES: Registry[Callable[..., Any]] = Registry("source", "uqprism.files.watching")
PAGES: Registry[Callable[..., Any]] = Registry("page", "uqprism.report.watching")


@dataclass(frozen=True, eq=False)
class Windows:
    """Rows that are cut into windows.

    Attributes:
        rows: all of them.
        first: the number of the first.
        ends: where each window ends.
        numbers: of the windows.
    """

    rows: Rows
    first: int
    ends: Sequence[int]
    numbers: range


Found = tuple[dict[str, Any], list[Alarm]]  # the record of a window, and its new alarms


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
        self.level, self.window, self.seed = float(level), None if window is None else int(window), int(seed)
        own_groups, own_target = (None if isinstance(each, str) else each for each in (groups, target))
        self._reader = Reader(
            resolve_rule(rule),
            groups=groups if isinstance(groups, str) else None,
            target=target if isinstance(target, str) else None,
            recalibration=recalibration,
            columns=columns or Columns(),
        )
        if _is_path(reference):
            self._reader, rows = SOURCES.get("files")(reference, self._reader)
        else:
            self._reader = self._reader.with_groups(reference, own_groups)
            rows = self._reader.read(reference, own_target, own_groups, "reference")
        self._begin(rows)

    def _begin(self, rows: Rows) -> None:
        """Make the tests from the rows of the reference."""
        names = self._reader.names
        if len(names) > MOST_GROUPS:
            raise InvalidValueError(f"groups must be at most {MOST_GROUPS}, got {len(names):,}; join rare ones")
        count = int(rows.good.sum())
        if count < FEWEST:
            raise InvalidValueError(f"reference must have at least {FEWEST} rows with numbers, got {count}")
        self.correction = Correction.of(self._reader.expected(rows), rows.penalty)
        found: list[tuple[str, str | None, np.ndarray]] = []
        for place, group in [(None, None), *enumerate(names)]:
            own = rows if place is None else rows[rows.group == place]
            for quantity in (*TESTED, *OUTCOMES, *NAMING):
                values = self._values(quantity, own)
                values = values[~np.isnan(values)]
                if len(values) >= (1 if quantity not in OUTCOMES else FEWEST):
                    found.append((quantity, group, values))
        level = self.level / sum(quantity not in NAMING for quantity, _, _ in found)
        self._tracks = [
            Track(
                quantity, group, 0.0 if quantity in NAMING else level, Pool.of(values, np.random.default_rng([self.seed, 0, i]))
            )
            for i, (quantity, group, values) in enumerate(found)
        ]
        self._reference_rows = count
        self._seen_rows = self._windows = self._bad = self._unseen = 0
        self._waiting: list[Rows] = []
        self._alarms: list[Alarm] = []
        self._sources = Sources()
        self._series = Series((*COLUMNS, *(f"evidence.{track.name}" for track in self.tests)))

    # What is known ---------------------------------------------------------------------------------------------------

    @property
    def rule(self) -> str:
        """The name of the rule."""
        return self._reader.rule.name

    @property
    def tests(self) -> list[Track]:
        """What is tested."""
        return [track for track in self._tracks if track.level]

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms so far, the first first; at most one of each test."""
        return tuple(self._alarms)

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
        return self._seen_rows

    @property
    def windows(self) -> int:
        """How many windows there were."""
        return self._windows

    @property
    def waiting(self) -> int:
        """How many rows wait for their window to be full."""
        return sum(map(len, self._waiting))

    @property
    def reader(self) -> Reader:
        """How rows are read."""
        return self._reader

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the reference."""
        return self._reader.names

    @property
    def guarantee(self) -> str:
        """What is promised, in a sentence."""
        return (
            f"If the rows are as good as shuffled together with the {self._reference_rows:,} rows of the reference, the "
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
            return self.take(SOURCES.get("files")(batch, self._reader)[1], source or _name(batch))
        return self.take(self._reader.read(batch, target, groups), source)

    def outcomes(self, batch: Any, target: Any = None, *, groups: Any = None, source: str | None = None) -> Update:
        """Look at outcomes that have come late, of rows that were seen before: penalty and calibration alone are tested.

        Args:
            batch: the predictions for those rows, of the kind of the reference.
            target: their outcomes; by default the column that the reference has.
            groups: their groups; by default the column that the reference has.
            source: what alarms call these rows; by default `batch 0` and so on.
        """
        if not any(track.quantity in OUTCOMES for track in self._tracks):
            raise ArgumentError(f"outcomes need a reference with at least {FEWEST} outcomes; pass target= to Watch")
        if _is_path(batch):
            return self.take_outcomes(SOURCES.get("files")(batch, self._reader)[1], source or _name(batch))
        return self.take_outcomes(self._reader.read(batch, target, groups), source)

    def take_outcomes(self, rows: Rows, source: str | None) -> Update:
        """Look at late outcomes of rows that were read already."""
        if not np.isfinite(rows.penalty).any():
            raise ArgumentError("outcomes need a target with numbers; pass target=")
        first = self._sources.add(source, len(rows))
        return self._report(self._advance(rows, first, [len(rows)], OUTCOMES))

    def take(self, rows: Rows, source: str | None, first: int = 0) -> Update:
        """Look at rows that were read already; `first` is the place of the first one in its source."""
        self._sources.add(source, len(rows), first)
        if len(rows):
            self._waiting.append(rows)
        count = self.waiting
        size = count if self.window is None else self.window
        ends = list(range(size, count + 1, size)) if size else []
        if not ends:
            return self._report([])
        rows = Rows.joined(self._waiting)
        self._waiting = [rows[ends[-1] :]] if ends[-1] < count else []
        return self._report(self._advance(rows[: ends[-1]], self._sources.count - count, ends, None))

    def _advance(self, rows: Rows, first: int, ends: Sequence[int], only: Sequence[str] | None) -> list[Found]:
        """Test windows of rows that are numbered from `first`; with `only`, by these quantities."""
        windows = Windows(rows, first, ends, range(self._windows + 1, self._windows + len(ends) + 1))
        with ThreadPoolExecutor(min(threads(), len(self._tracks)) if len(rows) > LONG else 1) as pool:
            seen = list(pool.map(lambda i: self._look(i, windows, only), range(len(self._tracks))))
        found, start = [], 0
        for place, end in enumerate(ends):
            self._windows += 1
            for track, each in zip(self._tracks, seen, strict=True):
                if each[place].counts.any():
                    track.take(each[place])
            new = [self._alarm(track) for track in self.tests if self._is_new(track)]
            self._alarms += new
            found.append((self._record(rows[start:end], first + start, new), new))
            start = end
        self._seen_rows += len(rows)
        self._sources.forget(min((track.history[0].first for track in self._tracks if track.history), default=0))
        return found

    def _look(self, i: int, windows: Windows, only: Sequence[str] | None) -> list[Seen]:
        track = self._tracks[i]
        values = self._values(track.quantity, windows.rows)
        own = ~np.isnan(values)
        if track.group is not None:
            own &= windows.rows.group == self._reader.names.index(track.group)
        if only is not None and track.quantity not in only:
            own[:] = False
        before = np.concatenate([[0], np.cumsum(own)])[list(windows.ends)]
        return track.look(values[own], windows.first + np.flatnonzero(own), windows.numbers, before.tolist(), [self.seed, 1, i])

    def _values(self, quantity: str, rows: Rows) -> np.ndarray:
        return self._reader.share(rows) if quantity == "share" else getattr(rows, quantity)

    def _is_new(self, track: Track) -> bool:
        raised = any(alarm.test == track.name for alarm in self._alarms)
        return not raised and track.evidence.log >= track.threshold

    def _alarm(self, track: Track) -> Alarm:
        change = track.change()
        beside = {each.quantity: each for each in self._tracks if each.group == track.group}
        moved = {name: beside[name].moved(change.since) for name in (*TESTED, *NAMING) if name in beside}
        return Alarm(
            test=track.name,
            group=track.group,
            kind=kind_of(track.quantity, change.kind, moved),
            direction=change.kind,
            window=self._windows,
            since=change.since,
            began=self._row(min(int(seen.first) for seen in track.since(change.since))),
            earlier=change.earlier,
            evidence=power(track.evidence.log),
            level=track.level,
            rows=tuple(self._row(number) for number in track.extremes(change, MOST_ROWS)),
            moved=moved,
        )

    def _row(self, number: int) -> Row:
        return Row(*self._sources.place(number))

    def _record(self, rows: Rows, first: int, new: list[Alarm]) -> dict[str, Any]:
        good, labelled = rows[rows.good], np.isfinite(rows.penalty)
        estimate = self._estimate(good)
        record = {
            "window": self._windows,
            "rows": len(rows),
            "bad": len(rows) - len(good),
            "unseen": int((rows.group < 0).sum()) if self._reader.names else 0,
            "bayes": _mean(good.bayes),
            "excess": _mean(good.excess),
            "estimate": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "penalty": _mean(rows.penalty[labelled]),
            "labelled": int(labelled.sum()),
        }
        logs = {track.name: track.evidence.log / math.log(10.0) for track in self.tests}
        self._series.add({**record, **{f"evidence.{name}": log for name, log in logs.items()}}, keep=bool(new))
        return {**record, "from": str(self._row(first)), "evidence": logs, "alarms": [each.test for each in new]}

    def _estimate(self, good: Rows) -> Estimate:
        if not len(good):
            return Estimate(math.nan, math.nan, math.nan, False)
        return self.correction.estimate(self._reader.expected(good))

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
        latest = self._series.latest
        if latest is None:
            return None
        return Estimate(latest["estimate"], latest["low"], latest["high"], self.correction.rows > 0)

    # Results ---------------------------------------------------------------------------------------------------------

    @property
    def history(self) -> dict[str, np.ndarray]:
        """Columns of all windows, or of evenly spaced ones of a long stream.

        They are those of `Update.windows`, and for each test its evidence as a power of ten, such as `evidence.excess`.
        """
        return self._series.columns

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a .npz file, atomically; `load` reads it, and goes on as if there had been no pause."""
        from uqprism.tasks.watch.stored import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Watch:
        """Read what `save` wrote."""
        from uqprism.tasks.watch.stored import load

        return load(path)

    def __repr__(self) -> str:
        alarms = f"{len(self._alarms)} alarms" if self._alarms else "no alarm"
        return f"<Watch: {self.rule}, {len(self.tests)} tests, {self._windows:,} windows, {alarms}>"


def _is_path(given: Any) -> bool:
    """Whether this is a path, or several."""
    if isinstance(given, list | tuple):
        return bool(given) and all(isinstance(each, str | os.PathLike) for each in given)
    return isinstance(given, str | os.PathLike)


def _name(given: Any) -> str:
    return os.fspath(given[0] if isinstance(given, list | tuple) else given)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else math.nan
