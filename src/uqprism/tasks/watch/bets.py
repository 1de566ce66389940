"""Bets against uniform ranks: densities on [0, 1] that pay where ranks would gather after a change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

CELLS = 64  # equal parts of [0, 1] on which every density is constant
KEPT = 0.02  # of the stake that a bet leaves on every cell, so that no single row can ruin it
POWERS = (1.06, 1.12, 1.25, 1.6, 2.2, 3.5, 7.0, 20.0)
TAILS = ((1, 0.05), (1, 0.3), (4, 0.05), (4, 0.15), (4, 0.5), (16, 0.1), (16, 0.3))  # cells at the end, and what more is on them
BUMP = 4  # cells of a bump
STAKES = {"higher": 0.4, "lower": 0.25, "spread": 0.12, "narrowed": 0.12, "gathered": 0.11}


@dataclass(frozen=True)
class Bets:
    """A family of bets.

    Attributes:
        kinds: of each bet: `higher`, `lower`, `spread`, `narrowed` or `gathered`.
        logs: the logarithm of its density on each cell, (bets, CELLS); each density integrates to one.
        stakes: the share of the money that each begins with, (bets,), with sum one.
    """

    kinds: tuple[str, ...]
    logs: np.ndarray
    stakes: np.ndarray


@cache
def all_bets() -> Bets:
    """The bets of every test: powers and tails, to both sides, for spread and narrowed ranks, and bumps in 16 places."""
    from scipy.special import betainc

    edges = np.linspace(0.0, 1.0, CELLS + 1)
    found: list[tuple[str, np.ndarray]] = []
    for mass in [*(np.diff(edges**power) for power in POWERS), *(_tail(cells, more) for cells, more in TAILS)]:
        found += [("higher", mass), ("lower", mass[::-1])]
    for shape in (0.8, 0.6, 0.4):
        found.append(("spread", np.diff(betainc(shape, shape, edges))))
    found += [("spread", (mass + mass[::-1]) / 2.0) for mass in (_tail(1, 0.1), _tail(4, 0.3))]
    for shape in (1.3, 2.0, 4.0, 12.0):
        found.append(("narrowed", np.diff(betainc(shape, shape, edges))))
    for more in (0.2, 0.7):
        found += [("gathered", np.roll(_tail(BUMP, more), BUMP * (i + 1))) for i in range(CELLS // BUMP)]
    kinds = tuple(kind for kind, _ in found)
    density = CELLS * (KEPT / CELLS + (1.0 - KEPT) * np.array([mass for _, mass in found]))
    stakes = np.array([STAKES[kind] / kinds.count(kind) for kind in kinds])
    return Bets(kinds, np.log(density), stakes / stakes.sum())


def _tail(cells: int, more: float) -> np.ndarray:
    """Uniform, with so much moved to the last cells."""
    mass = np.full(CELLS, (1.0 - more) / CELLS)
    mass[-cells:] += more / cells
    return mass
