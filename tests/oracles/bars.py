"""Write bars.json: all measures of ensembles of histograms and quantiles, from the definitions and with 50 digits.

    python -m tests.oracles.bars [file]

Nothing of the package is used. Every divergence is taken between two distributions at a time, members by pairs, over composite
Gauss-Legendre rules that are split at every edge, and in tails at every half scale.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

mp.mp.dps = 50
ORDER, DEEPEST = 24, 75  # nodes of a piece; scales to which an exponential tail counts
APPROXIMATIONS = ("members", "mixture", "matched", "pooled")
Number = Any


class Values(NamedTuple):
    """A distribution at all nodes: distribution function, density and log density."""

    cdf: list[Number]
    density: list[Number]
    log: list[Number]


class Bars:
    """One member: bars between edges, and perhaps tails beyond them."""

    def __init__(self, edges: list[Number], mass: list[Number], tails: tuple[Any, Any] | None) -> None:
        self.edges, self.mass, self.tails = edges, mass, tails
        low = tails[0].share if tails else mp.mpf(0)
        self.below = [low + sum(mass[:k]) for k in range(len(edges))]

    def at(self, y: Number) -> tuple[Number, Number, Number]:
        if y < self.edges[0]:
            return self.tails[0].at(self.edges[0] - y, below=True) if self.tails else (mp.mpf(0), mp.mpf(0), -mp.inf)
        if y > self.edges[-1]:
            return self.tails[1].at(y - self.edges[-1], below=False) if self.tails else (mp.mpf(1), mp.mpf(0), -mp.inf)
        k = next(k for k in range(len(self.mass)) if y < self.edges[k + 1])
        p = self.mass[k] / (self.edges[k + 1] - self.edges[k])
        return self.below[k] + p * (y - self.edges[k]), p, mp.log(p) if p else -mp.inf

    def pieces(self) -> list[Number]:
        found = list(self.edges)
        for tail, end, sign in zip(self.tails or (), (self.edges[0], self.edges[-1]), (-1, 1), strict=False):
            found += [end + sign * tail.scale * k / 2 for k in range(1, 2 * tail.reach + 1)]
        return found


class Exponential:
    reach = DEEPEST

    def __init__(self, share: Number, scale: Number) -> None:
        self.share, self.scale = share, scale

    def at(self, x: Number, *, below: bool) -> tuple[Number, Number, Number]:
        outside = self.share * mp.exp(-x / self.scale)
        level = mp.log(self.share / self.scale) - x / self.scale
        return outside if below else 1 - outside, outside / self.scale, level


class Normal:
    """A Gaussian cut off `start` scales from its centre."""

    reach = 16

    def __init__(self, share: Number, scale: Number, start: Number = 0) -> None:
        self.share, self.scale, self.start = share, scale, mp.mpf(start)
        self.above = mp.ncdf(-self.start)

    def at(self, x: Number, *, below: bool) -> tuple[Number, Number, Number]:
        z = self.start + x / self.scale
        outside = self.share * mp.ncdf(-z) / self.above
        level = mp.log(self.share / self.scale / self.above) - z * z / 2 - mp.log(2 * mp.pi) / 2
        return outside if below else 1 - outside, mp.exp(level), level


def half(kind: str) -> Number:
    """The distance in scales within which half of a tail lies."""
    return mp.log(2) if kind == "exponential" else quantile(mp.mpf(3) / 4)


def quantile(level: Number) -> Number:
    return mp.sqrt(2) * mp.erfinv(2 * level - 1)


def histogram(edges: list[float], mass: list[float], outer: str | None) -> Bars:
    edges, mass = [mp.mpf(x) for x in edges], [mp.mpf(x) for x in mass]
    mass = [x / sum(mass) for x in mass]
    if outer is None:
        return Bars(edges, mass, None)
    make = Exponential if outer == "exponential" else Normal
    scales = [(edges[1] - edges[0]) / half(outer), (edges[-1] - edges[-2]) / half(outer)]
    return Bars(edges[1:-1], mass[1:-1], (make(mass[0], scales[0]), make(mass[-1], scales[1])))


def quantiles(levels: list[float], values: list[float], tails: str) -> Bars:
    levels, values = [mp.mpf(x) for x in levels], [mp.mpf(x) for x in values]
    mass = [b - a for a, b in itertools.pairwise(levels)]
    low, high = levels[0], 1 - levels[-1]
    if tails == "exponential":
        scales = low * (values[1] - values[0]) / mass[0], high * (values[-1] - values[-2]) / mass[-1]
        return Bars(values, mass, (Exponential(low, scales[0]), Exponential(high, scales[1])))
    z = [quantile(x) for x in (*levels[:2], *levels[-2:])]
    scales = (values[1] - values[0]) / (z[1] - z[0]), (values[-1] - values[-2]) / (z[3] - z[2])
    return Bars(values, mass, (Normal(low, scales[0], -z[0]), Normal(high, scales[1], z[3])))


def rule() -> list[tuple[Number, Number]]:
    """Nodes and weights on (0, 1)."""
    found = []
    for guess in np.polynomial.legendre.leggauss(ORDER)[0]:
        x = mp.mpf(guess)
        for _ in range(6):
            p, q = mp.legendre(ORDER, x), mp.legendre(ORDER - 1, x)
            x -= p * (1 - x * x) / (ORDER * (q - x * p))
        slope = ORDER * mp.legendre(ORDER - 1, x) / (1 - x * x)
        found.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return found


def measures(members: list[Bars], weights: list[Number]) -> Iterator[tuple[str, str]]:
    """All 144 by name."""
    places = sorted({y for member in members for y in member.pieces()})
    places = sorted({*places, *gaussian_places(members, weights, places)})
    nodes = [(a + (b - a) * t, (b - a) * w) for a, b in itertools.pairwise(places) for t, w in rule()]
    weight = [w for _, w in nodes]
    values = [Values(*map(list, zip(*(member.at(y) for y, _ in nodes), strict=True))) for member in members]

    def integral(terms: Any) -> Number:
        return mp.fsum(w * x for w, x in zip(weight, terms, strict=True))

    means = [integral(y * p for (y, _), p in zip(nodes, v.density, strict=True)) for v in values]
    variances = [
        integral((y - m) ** 2 * p for (y, _), p in zip(nodes, v.density, strict=True)) for v, m in zip(values, means, strict=True)
    ]
    mean = mp.fsum(w * m for w, m in zip(weights, means, strict=True))
    pooled = mp.fsum(w * v for w, v in zip(weights, variances, strict=True))
    matched = pooled + mp.fsum(w * (m - mean) ** 2 for w, m in zip(weights, means, strict=True))

    def mixed(rows: list[list[Number]]) -> list[Number]:
        return [mp.fsum(w * x for w, x in zip(weights, column, strict=True)) for column in zip(*rows, strict=True)]

    density = mixed([v.density for v in values])
    mixture = Values(mixed([v.cdf for v in values]), density, [mp.log(p) if p else -mp.inf for p in density])

    def gaussian(variance: Number) -> Values:
        scale = mp.sqrt(variance)
        z = [(y - mean) / scale for y, _ in nodes]
        level = [-x * x / 2 - mp.log(2 * mp.pi * variance) / 2 for x in z]
        return Values([mp.ncdf(x) for x in z], [mp.exp(x) for x in level], level)

    one = mp.mpf(1)
    known: dict[str, list[tuple[Number, Values, Number, Number]]] = {
        "members": list(zip(weights, values, means, variances, strict=True)),
        "mixture": [(one, mixture, mean, matched)],
        "matched": [(one, gaussian(matched), mean, matched)],
        "pooled": [(one, gaussian(pooled), mean, pooled)],
    }

    def relative(p: Values, q: Values) -> Number:
        """KL(p || q)."""
        if any(x > 0 and y == -mp.inf for x, y in zip(p.density, q.log, strict=True)):
            return mp.inf
        return integral(x * (a - b) if x else mp.mpf(0) for x, a, b in zip(p.density, p.log, q.log, strict=True))

    entropies: dict[str, Callable[[Values, Number], Number]] = {
        "crps": lambda p, _: integral(f * (1 - f) for f in p.cdf),
        "quadratic": lambda p, _: -integral(x * x for x in p.density),
        "log": lambda p, _: -integral(x * a if x else mp.mpf(0) for x, a in zip(p.density, p.log, strict=True)),
        "squared_error": lambda _, variance: variance,
    }
    divergences: dict[str, Callable[..., Number]] = {
        "crps": lambda p, q, *_: integral((f - g) ** 2 for f, g in zip(p.cdf, q.cdf, strict=True)),
        "quadratic": lambda p, q, *_: integral((f - g) ** 2 for f, g in zip(p.density, q.density, strict=True)),
        "log": lambda prediction, truth, *_: relative(truth, prediction),
        "squared_error": lambda _p, _q, m, n: (m - n) ** 2,
    }
    for name, entropy in entropies.items():
        for truth in APPROXIMATIONS:
            bayes = mp.fsum(w * entropy(p, v) for w, p, _, v in known[truth])
            yield f"{name}.bayes.{truth}", text(bayes)
            for prediction in APPROXIMATIONS:
                pairs = itertools.product(known[prediction], known[truth])
                excess = sum((v * w * divergences[name](p, q, m, n) for (v, p, m, _), (w, q, n, _) in pairs), start=mp.mpf(0))
                yield f"{name}.excess.{prediction}.{truth}", text(excess)
                yield f"{name}.total.{prediction}.{truth}", text(bayes + excess)


def gaussian_places(members: list[Bars], weights: list[Number], places: list[Number]) -> list[Number]:
    """Places around the middle of all, for Gaussians that are about as wide as what the edges span."""
    ends = [y for member in members for y in member.edges]
    middle, span = (max(ends) + min(ends)) / 2, max(ends) - min(ends)
    return [middle + span * mp.mpf(k) / 8 for k in range(-8 * 16, 8 * 16 + 1)]


def text(x: Number) -> str:
    return "inf" if x == mp.inf else mp.nstr(x, 25)


def cases() -> Iterator[dict[str, Any]]:
    """What the package is given, in doubles."""
    rng = np.random.default_rng(20261119)

    def edges(*shape: int) -> np.ndarray:
        return np.cumsum(rng.uniform(0.2, 1.0, size=(*shape, 7)), axis=-1) - 2.0

    mass = rng.dirichlet(np.ones(6), size=3)
    empty = np.where(np.arange(6) == 2, 0.0, mass)
    empty[0, 4] = 0.0
    weights = [0.5, 0.2, 0.3]
    near = mass[:1] + 1e-7 * mass[:1] * rng.normal(size=(3, 6))
    for outer in (None, "half_normal", "exponential"):
        shared, own = edges(), edges(3) + 0.5 * rng.normal(size=(3, 1))
        for kind, mine, bars in (
            ("shared", shared, mass),
            ("own", own, mass),
            ("nearly agreeing", shared, near),
            *((("empty bars", shared, empty / empty.sum(axis=-1, keepdims=True)),) if outer is None else ()),
        ):
            given = {"edges": mine.tolist(), "probabilities": bars.tolist(), "outer": outer}
            yield {"family": "histogram", "kind": kind, "weights": weights, "given": given}
    apart = edges(3) + np.array([[0.0], [5.0], [10.0]])
    yield {
        "family": "histogram",
        "kind": "apart",
        "weights": weights,
        "given": {"edges": apart.tolist(), "probabilities": mass.tolist(), "outer": "half_normal"},
    }
    levels = [0.05, 0.2, 0.5, 0.7, 0.95]
    for tails in ("exponential", "gaussian"):
        values = np.sort(rng.normal(size=(3, 5)), axis=-1) + 0.3 * rng.normal(size=(3, 1))
        for kind, mine in (("ordinary", values), ("far offset", 2.0**20 + np.round(values * 2**20) / 2**20)):
            given = {"levels": levels, "values": mine.tolist(), "tails": tails}
            yield {"family": "quantiles", "kind": kind, "weights": weights, "given": given}


def members_of(case: dict[str, Any]) -> list[Bars]:
    given = case["given"]
    if case["family"] == "quantiles":
        return [quantiles(given["levels"], values, given["tails"]) for values in given["values"]]
    edges = given["edges"]
    rows = edges if isinstance(edges[0], list) else [edges] * len(given["probabilities"])
    return [histogram(e, mass, given["outer"]) for e, mass in zip(rows, given["probabilities"], strict=True)]


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".json")
    found = []
    for case in cases():
        total = mp.fsum(mp.mpf(w) for w in case["weights"])
        case["values"] = dict(sorted(measures(members_of(case), [mp.mpf(w) / total for w in case["weights"]])))
        found.append(case)
    target.write_text(json.dumps(found, indent=1) + "\n")
