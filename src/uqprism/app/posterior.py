"""The posterior explorer: how every measure changes when the members' means and variances are moved or spread.

As in the paper's first figure, the mean is uniform on one interval and the variance on another. Integrals over them are computed
as in `uqprism.paper.experiments.shifts`, not sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uqprism.evaluation import evaluate
from uqprism.paper.experiments.shifts import POSTERIORS, Posterior, Quadrature, weighted
from uqprism.paper.experiments.shifts.claims import ORIGINAL

NODES = 16  # in mean and in variance: exact to the digits shown for every position of the sliders
SHOWN_NODES = 4  # in mean and in variance, for the densities that are drawn
GRID = np.linspace(-9.0, 9.0, 241)


@dataclass(frozen=True)
class Shift:
    """A change of the posterior: shifts are added to the centres of the intervals, their widths are multiplied by spreads."""

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
class Change:
    """A measure before and after the change."""

    before: float
    after: float

    @property
    def relative(self) -> float:
        """The change relative to `before`; NaN where that is zero."""
        return (self.after - self.before) / abs(self.before) if self.before else float("nan")


def changes(shift: Shift) -> dict[str, Change]:
    """Every measure of the paper before and after the change."""
    table = evaluate(weighted(Quadrature(NODES, (POSTERIORS[ORIGINAL], shift.posterior()))))
    return {name: Change(*map(float, table[name])) for name in table}


@dataclass(frozen=True)
class Densities:
    """Curves over `GRID`: some members, (members, grid), and the average of all, after the change and before."""

    members: np.ndarray
    average: np.ndarray
    average_before: np.ndarray


def densities(shift: Shift) -> Densities:
    """The densities that the members predict."""
    after, before = shift.posterior(), POSTERIORS[ORIGINAL]
    shown = weighted(Quadrature(SHOWN_NODES, (after,)))
    average, average_before = (np.exp(weighted(Quadrature(NODES, (each,))).mixture.log_density(GRID)) for each in (after, before))
    return Densities(np.exp(shown.members.log_density(GRID)), average, average_before)
