"""The audit: is what the models call removable removed by more data?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError
from uqprism.measures import MeasuresLike
from uqprism.support.progress import progress_bar
from uqprism.tasks.active_learning.models import Fit
from uqprism.tasks.active_learning.pool import Pool
from uqprism.tasks.audit.measuring import Measured, excesses
from uqprism.tasks.audit.plan import Plan
from uqprism.tasks.audit.promise import Correction
from uqprism.tasks.audit.result import ARRAYS, Audit, Promise
from uqprism.tasks.audit.running import Predict, Run
from uqprism.tasks.resampling import RESAMPLES
from uqprism.tasks.task import Task, register

__all__ = ["Audit", "Correction", "Promise", "audit"]


def audit(
    fit: Any,
    X: Any,
    y: Any,
    *,
    test: tuple[Any, Any] | None = None,
    measures: MeasuresLike = None,
    parts: int = 8,
    repeats: int = 4,
    test_share: float = 0.25,
    predict: Predict | None = None,
    n_jobs: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: bool | None = None,
) -> Audit:
    """Train on more and more of the data, and compare what the models said more data would remove with what it removed.

    The rows are divided into `parts` parts, which train an ensemble each, then into half as many of twice the size, and so on
    up to all of them. Rows that are held out tell what predictions cost. The result has, for each excess risk and size, what the
    models said could go and what twice and four times the rows removed, what they called noise and what was left of it, the
    parts of the disagreement that come from seeds and from other rows, and a factor with its interval that corrects the promise.

        result = up.audit(up.DeepEnsembleRegressor(n_members=5), X, y)
        print(result)  # one sentence
        result.first.after(4)  # four times the rows remove this share of the disagreement, with its interval
        result.plot()

    Args:
        fit: a scikit-learn regressor, `uqprism.training.StackedFit`, one of this package's estimators, or a function
            (inputs, targets) -> model, with `seed=` if it takes one. Networks of this package are trained in one stack per size.
        X: inputs: an array, a tensor, a data frame, a sparse matrix.
        y: a finite number for each row.
        test: (inputs, targets) to judge by; by default each repeat holds out `test_share` of the rows, other ones each time.
        measures: excess risks by name or pattern, the one that counts first; by default those between members under CRPS, log,
            quadratic score and squared error, as far as the members have them.
        parts: into how many parts the rows are divided at first, a power of two; the smallest training set has that share.
        repeats: how often rows are divided anew.
        test_share: of the rows, where no test set is given.
        predict: (model, inputs) -> `EnsemblePrediction`, where `up.from_model(model, inputs)` is not what is wanted.
        n_jobs: how many processes train, through joblib; networks of this package share a stack instead.
        folder: where finished parts are kept; the same call goes on from there.
        resamples: of repeats and test rows, for the intervals; 0 for none.
        seed: of the division, the models and the resamples.
        progress: whether to show a bar; by default on a terminal.
    """
    pool = Pool.of(X, y, test)
    plan = Plan.of(len(pool), has_test=test is not None, parts=parts, repeats=repeats, test_share=test_share, seed=seed)
    if resamples < 0 or resamples == 1:
        raise InvalidValueError(f"resamples must be 0, for no intervals, or 2 and more; got {resamples}")
    excesses(measures)  # an unknown name is refused before any training
    run = Run(Fit.of(fit), pool, plan, measures, predict, int(seed), n_jobs, None if folder is None else Path(folder))
    with progress_bar("trainings", len(plan.sizes) * plan.repeats, shown=progress) as bar:
        chosen, found = run.run(bar)
    means: dict[str, Any] = {name: _means(found, name) for name in ARRAYS}
    return Audit(
        measures=tuple(each.name for each in chosen),
        sizes=tuple(plan.sizes),
        **means,
        replicates=_replicates(found, resamples, int(seed), shared=test is not None) if resamples else None,
        settings={"parts": plan.parts, "repeats": plan.repeats, "seed": int(seed), "test_rows": _test_rows(found)}
        | run.fit.record,
    )


def _test_rows(found: Sequence[Sequence[Measured]]) -> int:
    return int(found[0][0].excess.shape[-1])


def _means(found: Sequence[Sequence[Measured]], name: str) -> np.ndarray:
    """Means over repeats and rows, (measures, sizes)."""
    values = np.array([[getattr(each, name) for each in level] for level in found])
    return np.asarray(values.reshape(*values.shape[:3], -1).mean(axis=(1, 3)).T)


def _replicates(found: Sequence[Sequence[Measured]], resamples: int, seed: int, *, shared: bool) -> np.ndarray:
    """Excess, noise and penalty in resamples of the repeats, and of the rows of each: (3, resamples, measures, sizes)."""
    rng = np.random.default_rng([seed, 2])
    n_repeats, n_rows = len(found[0]), _test_rows(found)
    rows: np.ndarray | None = None
    means = []
    for repeat in range(n_repeats):
        values = np.array([[getattr(level[repeat], name) for level in found] for name in ("excess", "noise", "penalty")])
        if rows is None or not shared:  # a test set that repeats share is drawn once for all of them
            rows = rng.multinomial(n_rows, np.full(n_rows, 1.0 / n_rows), size=resamples) / n_rows
        means.append(np.einsum("kslr,br->kbls", values.reshape(3, len(found), -1, n_rows), rows))
    drawn = rng.multinomial(n_repeats, np.full(n_repeats, 1.0 / n_repeats), size=resamples) / n_repeats
    return np.asarray(np.einsum("rkbls,br->kbls", np.array(means), drawn))


register(
    Task(
        name="audit",
        command="audit",
        function=audit,
        title="Audit of what more data removes",
        summary="Is what the models call removable removed?",
        page="audit.md",
        place=85,
    )
)
