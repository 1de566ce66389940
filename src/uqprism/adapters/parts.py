"""The models inside a model of another library that predicts with all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uqprism.adapters.base import adapters
from uqprism.adapters.quantiles import PredictsQuantiles
from uqprism.arrays import Array


class Part:
    """One model inside another.

    Attributes:
        levels: of the quantiles that it predicts; None if it predicts numbers.
    """

    def __init__(self, together: Callable[[Any], Sequence[Array]], place: int, levels: tuple[float, ...] | None) -> None:
        self._together, self._place, self.levels = together, place, levels

    def predict(self, X: Any) -> Array:
        """What it predicts."""
        return np.asarray(self._together(X)[self._place])


def parts(predict: Callable[[Any], Sequence[Array]], count: int, levels: tuple[float, ...] | None = None) -> list[Part]:
    """So many models inside another, of which `predict` gives the predictions of each."""
    last: list[Any] = [None, None]

    def together(rows: Any) -> Sequence[Array]:
        if last[0] is not rows:  # asked once for each part
            last[:] = rows, predict(rows)
        return last[1]

    return [Part(together, place, levels) for place in range(count)]


@adapters.register("part")
class PartQuantiles(PredictsQuantiles):
    """Parts that predict quantiles."""

    supports = "models inside AutoGluon's and pytabkit's that predict quantiles"

    def levels(self, model: Any) -> tuple[float, ...] | None:
        """Those that it says."""
        return model.levels if isinstance(model, Part) else None
