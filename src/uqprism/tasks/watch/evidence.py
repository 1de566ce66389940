"""Evidence of a change: the money of a gambler who bets against uniform ranks, from an unknown window on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from uqprism.tasks.watch.bets import all_bets

HORIZON = 32.0  # windows until a third of the money is on bets


@dataclass(eq=False)
class Evidence:
    """The logarithm of the money that began as one, which no strategy can expect to grow as long as ranks are uniform.

    Part of the money stays in cash, and each window releases some of it to the bets, so that there are bets that begin with
    any window. The sum is a non-negative martingale under exchangeability, so by Ville's inequality it ever reaches 1 / level
    with a probability of at most the level.

    Attributes:
        money: logarithm of the money on each bet, (bets,).
        windows: how many windows there were.
    """

    money: np.ndarray = field(default_factory=lambda: np.full(len(all_bets().kinds), -np.inf))
    windows: int = 0

    @property
    def log(self) -> float:
        """The logarithm of all money, cash included."""
        logs = np.append(self.money, math.log(cash(self.windows)))
        return float(np.logaddexp.reduce(logs))

    def update(self, counts: np.ndarray) -> None:
        """Bet on one window, whose ranks fell so often into each cell."""
        bets = all_bets()
        released = cash(self.windows) - cash(self.windows + 1)
        self.money = np.logaddexp(self.money, np.log(bets.stakes * released)) + bets.logs @ counts
        self.windows += 1


def cash(windows: int) -> float:
    """The share that is still in cash after so many windows."""
    return 1.0 / math.sqrt(1.0 + windows / HORIZON)
