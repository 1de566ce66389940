"""The stacked trainer as a `fit`: one ensemble, or many on training sets of their own at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from uqprism.errors import ArgumentError
from uqprism.registry import unknown
from uqprism.training.deep_ensemble import DeepEnsemble
from uqprism.training.fit import train, train_many
from uqprism.training.settings import Settings

SEEDS = ("seed", "member_seeds")


class StackedFit:
    """What active learning trains with: `fit(inputs, targets)` is `train`, `fit.many(...)` is `train_many`.

    Args:
        settings: see `Settings`: `n_members`, `network`, `head`, `max_epochs`, ... Seeds are not among them: they come with
            each call.
    """

    def __init__(self, **settings: Unpack[Settings]) -> None:
        for name in settings:
            if name in SEEDS:
                raise ArgumentError(
                    f"{name} is no setting of StackedFit: whoever calls it, such as ActiveLearner, gives the seeds"
                )
            if name not in Settings.__annotations__:
                raise unknown("training setting", name, set(Settings.__annotations__) - set(SEEDS))
        self.settings = settings

    def __call__(self, inputs: Any, targets: Any, seed: int = 0) -> DeepEnsemble:
        """An ensemble trained on all rows."""
        return train(inputs, targets, seed=seed, **self.settings)  # type: ignore[misc]

    def many(self, inputs: Any, targets: Any, rows: Any, seeds: Sequence[int]) -> list[DeepEnsemble]:
        """An ensemble for each training set `rows` (experiments, n) with its own seed, all trained as one stack.

        Each equals what a call on its rows with its seed gives, up to rounding.
        """
        return train_many(inputs, targets, rows, seed=list(seeds), **self.settings)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"StackedFit({', '.join(f'{name}={value!r}' for name, value in self.settings.items())})"
