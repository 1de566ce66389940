"""Train at every size and measure, in one stack per size where the models can be trained together; resumable."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError
from uqprism.measures import Measure, MeasuresLike
from uqprism.support.optional import require
from uqprism.support.progress import ProgressBar
from uqprism.support.reading import loading, read_json
from uqprism.support.storage import make_folder, write_npz, write_text
from uqprism.tasks.active_learning.models import Fit
from uqprism.tasks.active_learning.models import predict as predict_with
from uqprism.tasks.active_learning.pool import Pool
from uqprism.tasks.audit.measuring import Measured, computable, excesses
from uqprism.tasks.audit.plan import Plan

FORMAT = "uqprism.AuditPart"
RECORD = "audit.json"
Predict = Callable[[Any, Any], EnsemblePrediction]


@dataclass(frozen=True, eq=False)
class Run:
    """One audit: what is trained on what, and where finished parts are kept.

    Attributes:
        fit: trains.
        pool: all rows, and the test set if one was given.
        plan: which rows train and which judge.
        wanted: the measures asked for.
        predict: what a model predicts for rows.
        seed: of the models.
        n_jobs: processes of joblib.
        folder: where finished parts are kept, or None.
    """

    fit: Fit
    pool: Pool
    plan: Plan
    wanted: MeasuresLike
    predict: Predict | None
    seed: int
    n_jobs: int | None
    folder: Path | None

    def run(self, bar: ProgressBar) -> tuple[list[Measure], list[list[Measured]]]:
        """The measures, and what was measured by size and repeat."""
        self._open()
        measures: list[Measure] = []
        found = []
        for level, size in enumerate(self.plan.sizes):
            bar.update(text=f"{self.plan.counts[level]} x {size:,} rows")
            known = [self._read(level, repeat) for repeat in range(self.plan.repeats)]
            missing = [repeat for repeat, each in enumerate(known) if each is None]
            if self.fit.together and missing:
                missing = list(range(self.plan.repeats))  # the last digits depend on the stack
            bar.update(advance=self.plan.repeats - len(missing))
            for repeat, (names, measured) in zip(missing, self._measured(level, missing), strict=True):
                self._keep(level, repeat, names, measured)
                known[repeat] = names, measured
                bar.update(advance=1)
            done = [each for each in known if each is not None]
            measures = [each for each in measures or done[0][0] if all(each in names for names, _ in done)]
            found.append(done)
        return measures, [[_chosen(names, each, measures) for names, each in level] for level in found]

    def _measured(self, level: int, repeats: Sequence[int]) -> Iterator[tuple[list[Measure], Measured]]:
        """What the ensembles of a size are worth, repeat by repeat."""
        count = self.plan.counts[level]
        if self.fit.together:
            rows = [each for repeat in repeats for each in self.plan.rows(level, repeat)]
            seeds = [each for repeat in repeats for each in Plan.seeds(self.seed, level, repeat, count)]
            models = self.fit.many(self.pool, rows, seeds)
            for repeat in repeats:
                yield self._judge(repeat, [next(models) for _ in range(count)])
            return
        if self.n_jobs in {None, 1}:
            yield from (self._alone(level, repeat) for repeat in repeats)
            return
        joblib = require("joblib", extra="sklearn")
        yield from joblib.Parallel(self.n_jobs, return_as="generator")(
            joblib.delayed(self._alone)(level, repeat) for repeat in repeats
        )

    def _alone(self, level: int, repeat: int) -> tuple[list[Measure], Measured]:
        """Train the parts of one repeat one after the other, and judge them."""
        rows = self.plan.rows(level, repeat)
        seeds = Plan.seeds(self.seed, level, repeat, len(rows))
        return self._judge(repeat, [self.fit(self.pool, each, seed) for each, seed in zip(rows, seeds, strict=True)])

    def _judge(self, repeat: int, models: Sequence[Any]) -> tuple[list[Measure], Measured]:
        inputs, targets = self._test(repeat)
        predict = self.predict or predict_with
        ensembles = [_checked(predict(model, inputs), len(targets)) for model in models]
        measures = computable(ensembles[0], excesses(self.wanted), targets)
        return measures, Measured.of(ensembles, targets, measures)

    def _test(self, repeat: int) -> tuple[Any, np.ndarray]:
        if self.plan.test is None:
            assert self.pool.test_targets is not None  # noqa: S101 (the plan has a test set otherwise)
            return self.pool.test_inputs, self.pool.test_targets
        inputs, targets = self.pool.rows(self.plan.test[repeat])
        return inputs, to_numpy(targets).astype(np.float64)

    # Files ------------------------------------------------------------------------------------------------------------

    def _about(self) -> dict[str, Any]:
        """What determines the result, to compare when an audit goes on."""
        wanted = [each.name for each in excesses(self.wanted)]
        shape = {"parts": self.plan.parts, "repeats": self.plan.repeats, "rows": self.plan.training.shape[1], "seed": self.seed}
        return json.loads(json.dumps({**self.fit.record, **self.pool.fingerprint, **shape, "measures": wanted}, default=str))

    def _open(self) -> None:
        if self.folder is None:
            return
        path, about = self.folder / RECORD, self._about()
        if path.exists():
            there = read_json(path)
            differ = [name for name in {**there, **about} if there.get(name) != about.get(name)]
            if differ:
                raise ArgumentError(
                    f"folder {self.folder} holds another audit: {', '.join(differ)} differ; name another folder, or delete it"
                )
            return
        make_folder(self.folder)
        write_text(path, json.dumps(about, indent=2) + "\n")

    def _path(self, level: int, repeat: int) -> Path:
        assert self.folder is not None  # noqa: S101 (callers have asked)
        return self.folder / f"rows_{self.plan.sizes[level]}_repeat_{repeat}.npz"

    def _keep(self, level: int, repeat: int, measures: Sequence[Measure], measured: Measured) -> None:
        if self.folder is not None:
            header = {"measures": [each.name for each in measures]}
            write_npz(self._path(level, repeat), FORMAT, header, measured.arrays())

    def _read(self, level: int, repeat: int) -> tuple[list[Measure], Measured] | None:
        if self.folder is None or not os.path.exists(self._path(level, repeat)):
            return None
        with loading(self._path(level, repeat), FORMAT) as (header, arrays):
            return [Measure.parse(name) for name in header["measures"]], Measured(**arrays)


def _chosen(names: Sequence[Measure], measured: Measured, measures: Sequence[Measure]) -> Measured:
    """What was measured, for these measures alone."""
    at = [names.index(each) for each in measures]
    return Measured(**{name: array[at] for name, array in measured.arrays().items()})


def _checked(prediction: Any, rows: int) -> EnsemblePrediction:
    if not isinstance(prediction, EnsemblePrediction):
        raise ArgumentError(f"predict must return an EnsemblePrediction, got {type(prediction).__name__}; build one first")
    if prediction.points_shape != (rows,):
        raise ArgumentError(f"predict must return one point for each of {rows} rows, got {prediction.points_shape}")
    return prediction
