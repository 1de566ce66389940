"""Worlds with five kinds of change, and ensembles that were trained before the change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import uqprism as up

TRAIN, REFERENCE, USUAL, CHANGED = 5_000, 2_000, 20_000, 10_000  # rows
MEMBERS = 5


@dataclass(frozen=True)
class Shift:
    """A kind of change.

    Attributes:
        kind: what an alarm should call it: `noise` or `unfamiliar`.
        words: what happens.
        change: the inputs after the change, given usual inputs, how strong it is (0 weak, 1 strong) and random numbers.
    """

    kind: str
    words: str
    change: Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def inputs(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Four sensors, the first two of which see nearly the same, a load from 0 to 1, and a kind of site, one in five noisy."""
    x = rng.normal(size=(rows, 6))
    x[:, 1] = 0.9 * x[:, 0] + 0.3 * x[:, 1]
    x[:, 4] = rng.uniform(size=rows)
    x[:, 5] = rng.random(rows) < 0.2
    return x


def mean(world: int, x: np.ndarray) -> np.ndarray:
    """What happens on average; worlds alternate between two functions."""
    if world % 2:
        return 2.0 * np.tanh(x[:, 0] * x[:, 2]) + x[:, 1] - 0.5 * x[:, 3] ** 2
    return np.sin(2.0 * x[:, 0]) + 0.7 * x[:, 1] + 0.5 * x[:, 2] ** 2 + 0.5 * x[:, 3]


def scale(x: np.ndarray) -> np.ndarray:
    """The noise, by load and kind of site."""
    return (0.1 + 0.4 * x[:, 4]) * np.where(x[:, 5] > 0.5, 2.5, 1.0)


def noisier(x: np.ndarray, strong: int, rng: np.random.Generator) -> np.ndarray:
    """Higher loads."""
    x[:, 4] = rng.beta((1.3, 3.0)[strong], 1.0, size=len(x))
    return x


def moved(x: np.ndarray, strong: int, _rng: np.random.Generator) -> np.ndarray:
    """One sensor is off by a constant."""
    x[:, 2] += (1.0, 2.0)[strong]
    return x


def region(x: np.ndarray, strong: int, rng: np.random.Generator) -> np.ndarray:
    """A part of the rows comes from where there was nothing before."""
    new = rng.random(len(x)) < (0.1, 0.3)[strong]
    x[new, :3] = rng.normal((2.5, -2.5, 2.5), 0.3, size=(int(new.sum()), 3))
    return x


def stuck(x: np.ndarray, strong: int, _rng: np.random.Generator) -> np.ndarray:
    """The second sensor says the same for all rows."""
    x[:, 1] = (1.0, 2.0)[strong]
    return x


def mixed(x: np.ndarray, strong: int, rng: np.random.Generator) -> np.ndarray:
    """There are more noisy sites."""
    x[:, 5] = rng.random(len(x)) < (0.3, 0.5)[strong]
    return x


SHIFTS = {
    "noise up": Shift("noise", "loads are higher, at which the noise is known to be", noisier),
    "location": Shift("unfamiliar", "a sensor is off by one or two of its standard deviations", moved),
    "new region": Shift("unfamiliar", "a tenth or three tenths of the rows come from an empty corner", region),
    "stuck sensor": Shift("unfamiliar", "a sensor says a high value for all rows, one or two standard deviations up", stuck),
    "changed mix": Shift("noise", "noisy sites are 30 % or 50 % of the rows, and not 20 %", mixed),
}


def trained(world: int, folder: Path) -> dict[str, up.EnsemblePrediction]:
    """The predictions of an ensemble: for the reference, for usual rows, and after each change; kept in the folder."""
    names = ["reference", "usual", *(f"{name} {strong}" for name in SHIFTS for strong in (0, 1))]
    paths = {name: folder / f"world-{world}-{name.replace(' ', '-')}.npz" for name in names}
    if not all(path.exists() for path in paths.values()):
        rng = np.random.default_rng([world, 1])
        x = inputs(rng, TRAIN)
        y = mean(world, x) + scale(x) * rng.normal(size=TRAIN)
        model = up.DeepEnsembleRegressor(n_members=MEMBERS, random_state=world).fit(x, y)
        rows = {"reference": inputs(rng, REFERENCE), "usual": inputs(rng, USUAL)}
        for name, shift in SHIFTS.items():
            rows |= {f"{name} {strong}": shift.change(inputs(rng, CHANGED), strong, rng) for strong in (0, 1)}
        for name, part in rows.items():
            model.predict_ensemble(part).save(paths[name])
    return {name: up.EnsemblePrediction.load(path) for name, path in paths.items()}
