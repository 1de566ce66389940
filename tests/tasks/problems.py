"""Data that tests of several tasks share."""

from __future__ import annotations

import numpy as np

import uqprism as up


def ensemble(n: int, *, shift: float = 0.0, seed: int = 0) -> tuple[up.EnsemblePrediction, np.ndarray]:
    """Ten members whose noise and disagreement vary from point to point, and targets."""
    rng = np.random.default_rng(seed)
    noise = np.exp(rng.normal(size=n))
    doubt = np.exp(rng.normal(size=n) - 1.0 + shift)
    mean = doubt * rng.normal(size=(10, n))
    scale = noise * np.exp(0.1 * rng.normal(size=(10, n)))
    target = doubt * rng.normal(size=n) + noise * rng.normal(size=n)
    return up.EnsemblePrediction.gaussian(mean=mean, scale=scale), target


def with_ties(rng: np.random.Generator, n: int, levels: int) -> np.ndarray:
    """Numbers of which many are equal."""
    return rng.integers(0, levels, n) / 7.0
