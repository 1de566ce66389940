"""Time members with bounds, counts and mixtures, by the processor's time: all measures that each kind has, beside Gaussians."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import uqprism as up

MEMBERS, POINTS = 10, 4_000
ALL = [measure.name for measure in up.catalogue()]
# Surrogates have densities, which probabilities cannot be compared with.
OF_COUNTS = [
    name for name in ALL if name.startswith(("crps", "squared_error")) or not any(role in name for role in ("matched", "pooled"))
]
OF_CENSORED = [name for name in OF_COUNTS if not name.startswith("quadratic")]


def ensembles() -> dict[str, tuple[up.EnsemblePrediction, list[str]]]:
    """Members of each kind and their measures."""
    rng, make = np.random.default_rng(0), up.EnsemblePrediction
    z = rng.normal(size=(2, MEMBERS, POINTS))
    scale, shape = np.exp(0.3 * z[1]), np.exp(0.3 * z)
    found = {
        "Gaussian": (make.gaussian(mean=z[0], scale=scale), ALL),
        "gamma, shapes about 4": (make.gamma(shape=4.0 * shape[0], scale=scale), ALL),
        "beta, shapes about 3 and 5": (make.beta(a=3.0 * shape[0], b=5.0 * shape[1]), ALL),
        "beta with poles, shapes about 0.3 and 0.7": (make.beta(a=0.3 * shape[0], b=0.7 * shape[1]), ALL),
        "beta with bounds of their own, shapes about 3 and 5": (
            make.beta(a=3.0 * shape[0], b=5.0 * shape[1], low=0.1 * z[0], high=1.0 + 0.1 * z[1]),
            ALL,
        ),
        "truncated Gaussian": (make.truncated_gaussian(location=z[0], scale=scale, low=-1.0, high=3.0), ALL),
        "censored Gaussian": (make.censored_gaussian(location=z[0], scale=scale, low=-1.0, high=3.0), OF_CENSORED),
    }
    for rate in (1.0, 10.0, 1e3, 1e6):
        found[f"Poisson, rates about {rate:,.0f}"] = (make.poisson(rate=rate * shape[0]), OF_COUNTS)
    for rate in (10.0, 1e3):
        made = make.negative_binomial(rate=rate * shape[0], size=3.0 * shape[1])
        found[f"negative binomial, rates about {rate:,.0f}"] = (made, OF_COUNTS)
    for components in (2, 5, 10):
        mean, width, share = rng.normal(size=(3, MEMBERS, components, POINTS))
        shares = np.exp(share) / np.exp(share).sum(axis=1, keepdims=True)
        mixed = make.gaussian_mixture(mean=2.0 * mean, scale=np.exp(0.3 * width), shares=shares)
        found[f"mixtures of {components} Gaussians"] = (mixed, ALL)
        many = rng.normal(size=(2, MEMBERS * components, POINTS))
        found[f"{MEMBERS * components} Gaussians"] = (make.gaussian(mean=many[0], scale=np.exp(0.3 * many[1])), ALL)
    return found


def processor_seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """The least time of all cores together, of a few runs after one that warms up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def report() -> list[str]:
    """The section on these members."""
    lines = [
        "## Bounds, counts and mixtures",
        "",
        f"{POINTS:,} points x {MEMBERS} members, all measures that they have, microseconds a point of the processor: of all",
        "cores together, best of 3 after one to warm up; of the reference, for 2 points.",
        "",
        "| members | measures | us a point | times Gaussians | reference, us |",
        "|---|---|---|---|---|",
    ]
    first = 0.0
    for name, (ours, measures) in ensembles().items():
        taken = processor_seconds(lambda e=ours, m=measures: up.evaluate(e, m, backend="fused")) / POINTS
        first = first or taken
        slow = processor_seconds(lambda e=ours[:2], m=measures: up.evaluate(e, m, backend="reference"), 1) / 2
        lines.append(f"| {name} | {len(measures)} | {1e6 * taken:.3g} | {taken / first:.3g} | {1e6 * slow:.3g} |")
    return lines
