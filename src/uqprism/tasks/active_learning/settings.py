"""The settings of a loop, checked once, and the random numbers that follow from them."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import Measure
from uqprism.registry import unknown
from uqprism.tasks.active_learning.models import described
from uqprism.tasks.active_learning.picking import (
    RANDOM,
    SCALINGS,
    Acquisition,
    Picking,
    Scaling,
    as_measure,
    diverse,
    gumbel_top_k,
    measure_description,
    scaled,
    softmax,
    top,
)
from uqprism.tasks.active_learning.pool import Features, digest

START, PICK, FIT = range(3)  # the uses of random numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopSettings:
    """The settings of a loop of active learning: where it starts, how many points it picks, and how.

    Attributes:
        initial: how many points to start from, drawn at random, or their indices.
        batch_size: points to pick in each round.
        rounds: how many; the last model is trained on initial + (rounds - 1) * batch_size points.
        acquisition: what to pick by: a measure's name or a `Measure`; `random`; or a function (ensemble) -> scores (points,),
            of which the highest are picked first.
        selection: `softmax` draws in proportion to exp(score / temperature); `top` takes the highest; `diverse` spreads the
            batch out among the highest, each time taking the point that is farthest from all labelled or picked ones.
        temperature: of softmax: high ones pick at random, low ones the highest scores.
        scores: what softmax sees of the scores: `standardised` over the pool, by `rank` alone, or `raw`, as in the paper.
        features: for diverse batches: a function (model, inputs) -> (points, d) of what distances are measured in; by default
            the inputs. Both are standardised.
        measures: further measures to keep in each state.
        random_state: an integer, the seed of everything random.
    """

    initial: Any
    batch_size: int
    rounds: int
    acquisition: Any = RANDOM
    selection: Picking = "softmax"
    temperature: float = 1.0
    scores: Scaling = "standardised"
    features: Features | None = None
    measures: Any = ()
    random_state: int = 0

    def __post_init__(self) -> None:
        more = self.measures
        checked: dict[str, Any] = {
            name: integer(name, getattr(self, name), least)
            for name, least in (("batch_size", 1), ("rounds", 1), ("random_state", 0))
        }
        checked["measures"] = tuple(map(as_measure, [more] if isinstance(more, str | Measure) else more))
        checked["acquisition"] = Acquisition.of(self.acquisition)
        checked["temperature"] = _positive("temperature", self.temperature)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_selection()

    def for_pool(self, n_points: int) -> LoopSettings:
        """The same, with `initial` checked for a pool of so many points."""
        found = replace(self, initial=_initial(self.initial, n_points))
        found._check_size(n_points)
        return found

    def _check_selection(self) -> None:
        for what, value, known in (
            ("selection", self.selection, get_args(Picking)),
            ("scaling of scores", self.scores, SCALINGS),
        ):
            if value not in known:
                raise unknown(what, value, known)
        usual = (self.temperature, self.scores) == (LoopSettings.temperature, LoopSettings.scores)
        if self.selection != "softmax" and not usual:
            raise ArgumentError(f"temperature and scores are for selection='softmax'; {self.selection!r} looks only at the order")
        if self.features is not None and self.selection != "diverse":
            raise ArgumentError(f"features is for selection='diverse', got {self.selection!r}; leave one of them out")
        if self.features is not None and not callable(self.features):
            raise ArgumentError(f"features must be a function (model, inputs) -> (points, d), got {type(self.features).__name__}")

    def _check_size(self, n_points: int) -> None:
        needed = self.n_initial + self.rounds * self.batch_size
        if needed > n_points:
            possible = (n_points - self.n_initial) // self.batch_size
            way_out = f"at most rounds={possible}" if possible > 0 else "a smaller initial or batch_size"
            raise InvalidValueError(
                f"initial + rounds * batch_size must not exceed the pool: {self.n_initial} + {self.rounds} * {self.batch_size} = "
                f"{needed} points of {n_points}; with this pool take {way_out}"
            )

    @property
    def n_initial(self) -> int:
        """How many points are labelled at the start."""
        return self.initial if isinstance(self.initial, int) else len(self.initial)

    def start(self, n_points: int) -> np.ndarray:
        """The indices that are labelled at the start."""
        if not isinstance(self.initial, int):
            return self.initial
        return self._random(START).choice(n_points, size=self.initial, replace=False)

    def fit_seed(self, round_number: int) -> int:
        """The seed of the model of a round; the same for all acquisitions."""
        # Shifted to 31 bits, so that signed 32-bit integers hold it.
        return int(np.random.SeedSequence(self.random_state, spawn_key=(FIT, round_number)).generate_state(1)[0] >> 1)

    def pick(
        self, round_number: int, scores: np.ndarray, candidates: np.ndarray | None, labelled: np.ndarray | None
    ) -> np.ndarray:
        """Positions of the batch of a round among scores (points,); features of both are for diverse batches alone."""
        rng = self._random(PICK, round_number)
        if self.acquisition.is_random:
            return gumbel_top_k(np.zeros(len(scores)), self.batch_size, rng)
        if candidates is not None and labelled is not None:
            return diverse(scores, self.batch_size, rng, candidates=candidates, labelled=labelled)
        if self.selection == "top":
            return top(scores, self.batch_size, rng)
        return softmax(scaled(scores, self.scores), self.batch_size, rng, self.temperature)

    @property
    def needs_features(self) -> bool:
        """Whether distances between points count."""
        return self.selection == "diverse" and not self.acquisition.is_random

    def _random(self, *purpose: int) -> np.random.Generator:
        """A generator that depends only on the seed, its use and the round, so that a resumed run draws the same numbers."""
        return np.random.default_rng(np.random.SeedSequence(self.random_state, spawn_key=purpose))

    def record(self) -> dict[str, Any]:
        """The settings that picks depend on, as plain data; not the number of rounds, so that more can follow."""
        return {
            "initial": self.initial if isinstance(self.initial, int) else f"{len(self.initial)} indices {digest(self.initial)}",
            "acquisition": self.acquisition.description,
            "batch_size": self.batch_size,
            "random_state": self.random_state,
            "selection": self.selection,
            "temperature": self.temperature,
            "scores": self.scores,
            "features": None if self.features is None else described(self.features),
            "measures": [measure_description(measure) for measure in self.measures],
        }


def integer(name: str, value: Any, least: int) -> int:
    """The value as an integer that is large enough."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):  # to Python, True is an integer
        raise ArgumentError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise InvalidValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def _positive(name: str, value: Any) -> float:
    number = float(value) if isinstance(value, numbers.Real) else math.nan
    if not 0.0 < number < math.inf:
        raise InvalidValueError(f"{name} must be a finite number greater than zero, got {value!r}")
    return number


def _initial(given: Any, n_points: int) -> int | np.ndarray:
    """How many points to draw, or the indices themselves."""
    if isinstance(given, numbers.Integral) or np.ndim(given) == 0:
        return integer("initial", given, 1)
    indices = np.asarray(given)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ArgumentError(
            f"initial must be a number of points or their indices, got an array of {indices.dtype} with shape {indices.shape}; "
            "of a mask, take np.flatnonzero"
        )
    indices = indices.astype(np.int64)
    if len(indices) == 0:
        raise InvalidValueError("initial must name at least one point to start from, got none")
    if indices.min() < 0 or indices.max() >= n_points:
        outside = indices[(indices < 0) | (indices >= n_points)]
        raise InvalidValueError(f"initial must be indices from 0 to {n_points - 1}, got {outside[0]}")
    values, counts = np.unique(indices, return_counts=True)
    if counts.max() > 1:
        raise InvalidValueError(f"initial must name each point once, got {values[counts.argmax()]} {counts.max()} times")
    return indices
