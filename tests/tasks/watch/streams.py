"""Predictions and scored rows for the tests of the watch."""

from __future__ import annotations

import numpy as np

import uqprism as up

NOISE, DISAGREEMENT = "crps.bayes.members", "crps.excess.members.members"


def scored(rng: np.random.Generator, rows: int, *, noise: float = 1.0, disagreement: float = 1.0) -> dict[str, np.ndarray]:
    """Rows that were scored, with both risks multiplied."""
    bayes = noise * np.exp(0.3 * rng.normal(size=rows))
    return {NOISE: bayes, DISAGREEMENT: 0.1 * disagreement * bayes * rng.gamma(4.0, size=rows)}


def ensemble(rng: np.random.Generator, rows: int, *, noise: float = 1.0, spread: float = 0.2) -> up.EnsemblePrediction:
    """Five Gaussian members, as far apart as the noise times the spread."""
    scale = noise * (0.5 + rng.uniform(size=rows)) * np.exp(0.05 * rng.normal(size=(5, rows)))
    return up.EnsemblePrediction.gaussian(mean=spread * scale.mean(0) * rng.normal(size=(5, rows)), scale=scale)


def outcomes(rng: np.random.Generator, ens: up.EnsemblePrediction, *, stretch: float = 1.0) -> np.ndarray:
    """What one member, another for each row, says; with `stretch` further from the middle than it says."""
    chosen = rng.integers(ens.n_members, size=ens.n_points)
    mean, scale = (np.take_along_axis(x, chosen[None], axis=0)[0] for x in (ens.members.mean, ens.members.scale))
    return mean + stretch * scale * rng.normal(size=ens.n_points)
