"""Points in the order of a score, where equal scores are one step: the one sort on which all tasks stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ranking:
    """Points from the lowest score to the highest, in steps.

    Attributes:
        steps: which step each point is on, (points,); equal scores are on one step.
        n_steps: how many there are.
    """

    steps: np.ndarray
    n_steps: int

    @classmethod
    def of(cls, scores: np.ndarray, most: int | None = None) -> Ranking:
        """The ranking by these scores, (points,); with more than `most` steps, neighbouring ones are put together."""
        order = np.argsort(scores)
        ranked = scores[order]
        begins = np.concatenate([[False], ranked[1:] != ranked[:-1]])
        along = np.cumsum(begins)
        if most is not None and along[-1] >= most:
            starts = np.concatenate([[0], np.flatnonzero(begins)])
            along = np.unique(starts[along] * most // len(scores), return_inverse=True)[1]
        steps = np.empty(len(scores), dtype=np.intp)
        steps[order] = along
        return cls(steps, int(along[-1]) + 1)

    def part(self, points: slice) -> Ranking:
        """Some of the points, on the same steps."""
        return Ranking(self.steps[points], self.n_steps)

    def cumulative(self, values: np.ndarray) -> np.ndarray:
        """Sums of values (resamples, points) over all points up to each step: (resamples, steps + 1), from zero."""
        found = np.zeros((len(values), self.n_steps + 1))
        for total, row in zip(found, values, strict=True):
            total[1:] = np.bincount(self.steps, row, self.n_steps)
        return np.cumsum(found, axis=1, out=found)
