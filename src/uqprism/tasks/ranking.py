"""Points in the order of a score, where equal scores are one step: the one sort on which all tasks stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ranking:
    """Points from the lowest score to the highest.

    Attributes:
        order: the points, (points,); within a group of ties in no particular order.
        ends: how many points there are up to the end of each group of ties, (groups,).
    """

    order: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray) -> Ranking:
        """The ranking by these scores, (points,)."""
        order = np.argsort(scores)
        ranked = scores[order]
        last_of_ties = np.append(ranked[1:] != ranked[:-1], True)
        return cls(order, np.flatnonzero(last_of_ties) + 1)

    def cumulative(self, values: np.ndarray) -> np.ndarray:
        """Sums of values (resamples, points) over all points up to the end of each group: (resamples, groups + 1), from zero."""
        running = np.take(values, self.order, axis=1)
        np.cumsum(running, axis=1, out=running)
        if len(self.ends) < len(self.order):
            running = running[:, self.ends - 1]
        return np.concatenate([np.zeros((len(running), 1)), running], axis=1)
