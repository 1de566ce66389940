"""A cheap model with members that disagree away from the data, and small pools to learn from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import uqprism as up
from uqprism.tasks.active_learning import ActiveLearner, LearningState

EXCESS = "log.excess.members.members"


@dataclass(frozen=True)
class Cubics:
    """Cubic polynomials in the first feature, one for each bootstrap sample of the rows."""

    coefficients: np.ndarray  # (members, 4)
    noise: np.ndarray  # (members,)

    def predict_ensemble(self, inputs: Any) -> up.EnsemblePrediction:
        powers = np.vander(np.asarray(inputs)[:, 0], 4)
        return up.EnsemblePrediction.gaussian(
            mean=self.coefficients @ powers.T, variance=np.tile(self.noise[:, None], (1, len(powers)))
        )


def cubics(inputs: Any, targets: Any, seed: int = 0) -> Cubics:
    x, y = np.asarray(inputs)[:, 0], np.asarray(targets)
    rng = np.random.default_rng([seed, len(y)])
    found, noise = [], []
    for _ in range(5):
        at = rng.integers(0, len(y), len(y))
        powers = np.vander(x[at], 4)
        beta = np.linalg.solve(powers.T @ powers + 1e-3 * np.eye(4), powers.T @ y[at])
        found.append(beta)
        noise.append(0.01 + np.mean((powers @ beta - y[at]) ** 2))
    return Cubics(np.array(found), np.array(noise))


def data(n: int = 200, seed: int = 0, features: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """A curve along the first feature, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, features))
    return x, np.sin(2.0 * x[:, 0]) + 0.2 * rng.normal(size=n)


@dataclass
class Counted:
    """`cubics`, counting its calls; raises `error` in call number `fail_at`."""

    fail_at: int | None = None
    error: type[BaseException] = RuntimeError
    calls: list[tuple[Any, Any]] = field(default_factory=list)

    def __call__(self, inputs: Any, targets: Any, seed: int = 0) -> Cubics:
        if len(self.calls) == self.fail_at:
            raise self.error("the power went out")
        self.calls.append((inputs, targets))
        return cubics(inputs, targets, seed)

    def __repr__(self) -> str:
        return "Counted()"  # what it counts is no setting


def settings(**changed: Any) -> dict[str, Any]:
    """Arguments of a small learner."""
    return {"initial": 12, "acquisition": EXCESS, "batch_size": 6, "rounds": 4, "test": data(60, seed=1), **changed}


X, Y = data()


def loop(fit: Any = cubics, x: Any = X, y: Any = Y, **changed: Any) -> ActiveLearner:
    """A small learner on `data`, with other settings where they are given."""
    return ActiveLearner(fit, x, y, **settings(**changed))


def picks(states: Iterable[LearningState]) -> list[list[int]]:
    """What was picked, round by round."""
    return [state.picked.tolist() for state in states]
