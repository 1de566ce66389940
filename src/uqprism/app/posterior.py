"""The posterior explorer: members' means and variances moved and spread, and what every measure makes of it.

As in the paper's first figure the mean is uniform on one interval and the variance on another; nothing is drawn, see
`uqprism.paper.experiments.shifts`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uqprism.evaluation import evaluate
from uqprism.paper.experiments.shifts import POSTERIORS, Posterior, Quadrature, weighted
from uqprism.paper.experiments.shifts.claims import ORIGINAL

NODES = 16  # in mean and variance: exact to the digits shown wherever the sliders stand
SHOWN_NODES = 4  # whose densities are drawn
GRID = np.linspace(-9.0, 9.0, 241)


@dataclass(frozen=True)
class Shift:
    """How the posterior is changed: centres move by these, widths are multiplied by these."""

    mean_shift: float = 0.0
    mean_spread: float = 1.0
    variance_shift: float = 0.0
    variance_spread: float = 1.0

    def posterior(self) -> Posterior:
        """The posterior after the change."""
        start = POSTERIORS[ORIGINAL]
        return Posterior(
            _changed(start.mean, self.mean_shift, self.mean_spread),
            _changed(start.variance, self.variance_shift, self.variance_spread),
        )


# The four changes of the paper's figure, and none.
SHIFTS = {
    "no change": Shift(),
    "means move": Shift(mean_shift=2.0),
    "variances move": Shift(variance_shift=1.0),
    "means spread": Shift(mean_spread=2.0),
    "variances spread": Shift(variance_spread=2.0),
}


def _changed(interval: tuple[float, float], shift: float, spread: float) -> tuple[float, float]:
    centre, half = (interval[0] + interval[1]) / 2.0, (interval[1] - interval[0]) / 2.0
    return centre + shift - spread * half, centre + shift + spread * half


@dataclass(frozen=True)
class Answer:
    """A measure before and after the change."""

    before: float
    after: float

    @property
    def change(self) -> float:
        """Relative to what it was; NaN where that was nothing."""
        return (self.after - self.before) / abs(self.before) if self.before else float("nan")


def answers(shift: Shift) -> dict[str, Answer]:
    """Every measure of the paper before and after the change."""
    table = evaluate(weighted(Quadrature(NODES, (POSTERIORS[ORIGINAL], shift.posterior()))))
    return {name: Answer(*map(float, table[name])) for name in table}


@dataclass(frozen=True)
class Densities:
    """Curves over `GRID`: some members, (members, grid), and the average of all, after the change and before."""

    members: np.ndarray
    average: np.ndarray
    average_before: np.ndarray


def densities(shift: Shift) -> Densities:
    """What the members predict."""
    after, before = shift.posterior(), POSTERIORS[ORIGINAL]
    shown = weighted(Quadrature(SHOWN_NODES, (after,)))
    average, average_before = (np.exp(weighted(Quadrature(NODES, (each,))).mixture.log_density(GRID)) for each in (after, before))
    return Densities(np.exp(shown.members.log_density(GRID)), average, average_before)
