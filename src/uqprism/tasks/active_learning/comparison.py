"""Compare acquisitions: many loops advance round by round together, so that models can be trained together and shared."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import Measure
from uqprism.registry import unknown
from uqprism.support.progress import ProgressBar, progress_bar
from uqprism.tasks.active_learning.learner import METRICS, Examined, Keep, Loop
from uqprism.tasks.active_learning.models import Fit
from uqprism.tasks.active_learning.picking import Acquisition, AcquisitionLike
from uqprism.tasks.active_learning.pool import Pool
from uqprism.tasks.active_learning.records import LearningState, Stacks
from uqprism.tasks.active_learning.settings import LoopSettings, integer
from uqprism.tasks.resampling import average_ranks
from uqprism.tasks.result import TaskResult

LABELLED = "labelled"  # among the curves: how many points each round was trained on


def compare_acquisitions(
    fit: Any,
    pool: Pool,
    acquisitions: Sequence[AcquisitionLike] | Mapping[str, AcquisitionLike],
    settings: LoopSettings,
    *,
    seeds: int | Sequence[int],
    metric: str = "nll",
    folder: str | os.PathLike[str] | None = None,
    keep: Keep = "all",
    progress: bool | None = None,
) -> TaskResult:
    """Run an active-learning loop for each acquisition and seed, and compare how fast the acquisitions learn.

    All loops advance together, round by round; each gives what an `ActiveLearner` of its own would give. Loops of one seed
    start from the same points, with models of the same seed. Loops that are trained on the same points share a model, as all of
    one seed do in the first round. Where `fit` has a method `many(inputs, targets, rows, seeds) -> models`, it is called once
    in each round with the training sets of all loops, (experiments, n): `uqprism.training.StackedFit` trains them as one stack.

    Args:
        fit: as in `ActiveLearner`.
        pool: `Pool.of(inputs, targets, test)`, with a test set.
        acquisitions: measures, `random`, functions; a mapping gives them names of your own.
        settings: of all loops; `acquisition` and `random_state` are replaced by those of each loop.
        seeds: how many, or the seeds themselves: the `random_state` of the loops.
        metric: the one that counts, `nll`, `rmse` or `crps`; the others are in `result.metrics`.
        folder: where finished rounds are kept, a subfolder for each seed and acquisition; rounds found there are read.
            If a comparison was stopped, the same call gives the numbers of one that was not, to the bit.
        keep: what of a round: `all` that `ActiveLearner` keeps, or only its `picks` and metrics, without a score for each point
            of the pool: for many loops over a large pool those are gigabytes.
        progress: whether to show a bar on standard error; by default on a terminal.

    Returns:
        The mean of the metric over rounds, averaged over seeds, for each acquisition; lower is better. `metrics` has the same
        of the other metrics and the mean `rank` among the acquisitions; `curves` the metric in each round, averaged over
        seeds, with the standard deviation over seeds as `NAME spread`, and how many points were `labelled`; `parts` the
        results of each seed. Spreads are over seeds, paired between acquisitions.
    """
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    if keep not in get_args(Keep):
        raise unknown("choice of what to keep", keep, get_args(Keep))
    for name, given, kind in (("pool", pool, Pool), ("settings", settings, LoopSettings)):
        if not isinstance(given, kind):
            raise ArgumentError(f"{name} must be a {kind.__name__}, got {type(given).__name__}")
    if pool.test_targets is None:
        raise ArgumentError("pool must have a test set, on which acquisitions are compared; use Pool.of(inputs, targets, test)")
    named = _acquisitions(acquisitions)
    maker, common = Fit.of(fit), settings.for_pool(len(pool))
    runs = []
    for seed in _seeds(seeds):
        for name, acquisition in named.items():
            own = dataclasses.replace(common, acquisition=acquisition, random_state=seed)
            where = None if folder is None else Path(folder) / _place(seed, name)
            runs.append(_Entry(seed, name, Loop.of(maker, pool, own, where, keep)))
    stacks = None if folder is None else Stacks(Path(folder), tuple(run.place for run in runs))
    with progress_bar("rounds", len(runs) * common.rounds, shown=progress) as bar:
        _advance_all(runs, maker, stacks, metric, bar)
    return _result(runs, metric, common)


@dataclass(eq=False)
class _Entry:
    """One acquisition with one seed, as far as it has come."""

    seed: int
    name: str
    loop: Loop
    labelled: np.ndarray = field(init=False)
    metrics: list[Mapping[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.labelled = self.loop.settings.start(len(self.loop.pool))

    @property
    def place(self) -> str:
        """Where its rounds are, in the folder of the comparison."""
        return _place(self.seed, self.name)

    def advance(self, state: LearningState) -> None:
        self.labelled = state.all_labelled
        self.metrics.append(state.metrics)


def _advance_all(runs: Sequence[_Entry], fit: Fit, stacks: Stacks | None, metric: str, bar: ProgressBar) -> None:
    for run in runs:
        run.loop.open()  # all folders, before anything is trained
    for number in range(runs[0].loop.settings.rounds):
        starts = {run: run.labelled for run in runs}  # a replayed loop has moved on, but may be in the stack of one that waits
        waiting = [run for run in runs if not _replayed(run, number)]
        bar.update(advance=len(runs) - len(waiting))
        for stack in _stacks(runs, waiting, fit, stacks, number):
            groups = _sharing(stack, starts, number)
            rows = [starts[group[0]] for group in groups.values()]
            models = fit.many(runs[0].loop.pool, rows, [seed for seed, _ in groups])
            for model, labelled, group in zip(models, rows, groups.values(), strict=True):
                unfinished = [run for run in group if run in waiting]
                if not unfinished:
                    continue
                seen = Examined.of(model, group[0].loop.pool, labelled)
                for run in unfinished:
                    run.advance(run.loop.conclude(number, seen))
                    bar.update(advance=1)
        if metric not in runs[0].metrics[0]:  # before more is trained
            known = ", ".join(runs[0].metrics[0])
            raise ArgumentError(f"metric {metric!r} is not there for these predictions; take one of {known}")


def _stacks(
    runs: Sequence[_Entry], waiting: Sequence[_Entry], fit: Fit, stacks: Stacks | None, number: int
) -> list[Sequence[_Entry]]:
    """The loops to train together in this round: also finished ones where they were in the stack of one that is not."""
    if stacks is None or not fit.together:
        return [waiting]
    by_place = {run.place: run for run in runs}
    return [[by_place[place] for place in stack] for stack in stacks.of(number, {run.place for run in waiting})]


def _replayed(run: _Entry, number: int) -> bool:
    state = run.loop.replay(number, run.labelled)
    if state is not None:
        run.advance(state)
    return state is not None


def _sharing(runs: Iterable[_Entry], starts: Mapping[_Entry, np.ndarray], number: int) -> dict[tuple[int, bytes], list[_Entry]]:
    """Runs whose models of this round are the same one: trained on the same points in the same order with the same seed."""
    groups: dict[tuple[int, bytes], list[_Entry]] = {}
    for run in runs:
        groups.setdefault((run.loop.settings.fit_seed(number), starts[run].tobytes()), []).append(run)
    return groups


def _result(runs: Sequence[_Entry], metric: str, settings: LoopSettings) -> TaskResult:
    known = runs[0].metrics[0]
    parts = {}
    for seed in dict.fromkeys(run.seed for run in runs):
        own = {run.name: run for run in runs if run.seed == seed}
        means = {m: {name: float(np.mean([each[m] for each in run.metrics])) for name, run in own.items()} for m in known}
        curves = {name: np.array([each[metric] for each in run.metrics]) for name, run in own.items()}
        counts = settings.n_initial + settings.batch_size * np.arange(settings.rounds)
        parts[f"seed {seed}"] = TaskResult(
            task="active_learning",
            metric=metric,
            higher_is_better=False,
            measured=means.pop(metric),
            metrics={**means, "rank": average_ranks({name: curve.mean() for name, curve in curves.items()}).mean},
            curves={LABELLED: counts.astype(np.float64), **curves},
            settings={"seed": seed},
            figure="learning_curves",
        )
    names = ("initial", "batch_size", "selection", "temperature", "scores", "features")
    about = {"seeds": [part.settings["seed"] for part in parts.values()], "rounds": settings.rounds}
    about |= {name: value for name, value in settings.record().items() if name in names}
    result = TaskResult.average(parts, seed=0)  # with a seed: parts are repeated runs, whose differences are the spread
    return dataclasses.replace(result, settings=about, curves={**result.curves, **_spreads(parts)})


def _spreads(parts: Mapping[str, TaskResult]) -> dict[str, np.ndarray]:
    """How much the curves of one acquisition differ between seeds: their standard deviation in each round."""
    names = next(iter(parts.values())).measured if len(parts) > 1 else ()
    return {f"{name} spread": np.std([part.curves[name] for part in parts.values()], axis=0, ddof=1) for name in names}


# Checks of arguments -------------------------------------------------------------------------------------------------------


def _acquisitions(given: Sequence[AcquisitionLike] | Mapping[str, AcquisitionLike]) -> dict[str, Acquisition]:
    """Acquisitions by name, each name once."""
    if isinstance(given, str | Measure) or callable(given):
        raise ArgumentError(f"acquisitions must be a list or a mapping of them, got {given!r}; for one, use ActiveLearner")
    if isinstance(given, Mapping):
        found = [Acquisition.of(each, name=str(name)) for name, each in given.items()]
    else:
        found = [Acquisition.of(each) for each in given]
    if not found:
        raise ArgumentError("acquisitions must hold at least one, got none")
    names = [each.name for each in found]
    for name in names:
        if name == LABELLED:
            raise ArgumentError(f"no acquisition can be named {LABELLED!r}: that is what a curve of the result is called")
        # Compared as names of folders, in which special characters are replaced: two names may become one.
        if sum(_file_name(name) == _file_name(other) for other in names) > 1:
            raise ArgumentError(
                f"acquisitions must have names of their own, {name!r} is there twice; give a mapping from names to acquisitions"
            )
    return dict(zip(names, found, strict=True))


def _seeds(given: int | Sequence[int]) -> list[int]:
    if np.ndim(given) == 0:
        return list(range(integer("seeds", given, 1)))
    found = [integer("seeds", seed, 0) for seed in given]  # type: ignore[union-attr]
    if not found or len(set(found)) != len(found):
        raise InvalidValueError(f"seeds must be at least one, each once, got {list(given)}")  # type: ignore[arg-type]
    return found


def _place(seed: int, name: str) -> str:
    return f"seed_{seed}/{_file_name(name)}"


def _file_name(name: str) -> str:
    """The name with what no folder may have in its name replaced."""
    return re.sub(r"[^\w.+-]", "_", name).strip(".") or "_"
