"""Write shaped.json: measures of random ensembles of families with bounds, integrated from their definitions.

    python -m tests.oracles.shaped [seed [rounds [file]]]

As `oracles.families` does, of which these are further log densities; parameters are those of a standard distribution on z > 0 (or
0 < z < 1), times a scale. Panels go down to 1e-260 of the scale, since densities may be infinite at the bound.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mpmath as mp
import numpy as np

from tests.oracles import families as oracle
from tests.oracles.families import INF, L, exact, inside, measures, quiet

LOG_2PI = np.log(2 * exact(mp.pi))


def of_mp(function, *numbers: float) -> np.longdouble:
    with mp.workdps(30):
        return exact(function(*(mp.mpf(float(x)) for x in numbers)))


def lognormal(z, n):
    s = L(n[0])
    u = np.log(z)
    return inside(z, 0, INF, -(u * u) / (s * s) / 2 - u - np.log(s) - LOG_2PI / 2)


def gamma(z, n):
    return inside(z, 0, INF, (L(n[0]) - 1) * np.log(z) - z - of_mp(mp.loggamma, n[0]))


def weibull(z, n):
    k = L(n[0])
    return inside(z, 0, INF, np.log(k) + (k - 1) * np.log(z) - z**k)


def beta(z, n):
    a, b = L(n[0]), L(n[1])
    return inside(z, 0, 1, (a - 1) * np.log(z) + (b - 1) * np.log1p(-z) - of_mp(lambda a, b: mp.log(mp.beta(a, b)), *n))


HIGH = 4.0  # the upper bound of truncated Gaussians, in scales


def truncated_gaussian(z, n):
    m, s = L(n[0]), L(n[1])
    share = of_mp(lambda m, s: mp.log(s * (mp.ncdf((HIGH - m) / s) - mp.ncdf(-m / s))), *n)
    return inside(z, 0, HIGH, -(((z - m) / s) ** 2) / 2 - LOG_2PI / 2 - share)


def truncated_moment(n, power: int):
    def moment(m, s):
        def density(x):
            return mp.exp(-(((x - m) / s) ** 2) / 2)

        edges = mp.linspace(0, HIGH, 60)
        total = mp.quad(density, edges)
        mean = mp.quad(lambda x: x * density(x), edges) / total
        return mean if power == 1 else mp.quad(lambda x: (x - mean) ** 2 * density(x), edges) / total

    return of_mp(moment, *n)


MOMENTS = {
    "lognormal": lambda n: (np.exp(L(n[0]) ** 2 / 2), np.exp(L(n[0]) ** 2) * np.expm1(L(n[0]) ** 2)),
    "gamma": lambda n: (L(n[0]), L(n[0])),
    "weibull": lambda n: (
        of_mp(lambda k: mp.gamma(1 + 1 / k), n[0]),
        of_mp(lambda k: mp.gamma(1 + 2 / k) - mp.gamma(1 + 1 / k) ** 2, n[0]),
    ),
}
POLES = ("gamma", "weibull", "beta")
MOMENTS["beta"] = lambda n: (
    L(n[0]) / (L(n[0]) + L(n[1])),
    L(n[0]) * L(n[1]) / (L(n[0]) + L(n[1])) ** 2 / (L(n[0]) + L(n[1]) + 1),
)
REACH = {"lognormal": 12.0, "gamma": 2.5, "weibull": 10.0}  # decades above the scale
MOMENTS["truncated_gaussian"] = lambda n: (truncated_moment(n, 1), truncated_moment(n, 2))
FUNCTIONS = {"truncated_gaussian": truncated_gaussian, "lognormal": lognormal, "gamma": gamma, "weibull": weibull, "beta": beta}
oracle.LOG_DENSITY.update({name: quiet(f) for name, f in FUNCTIONS.items()})
oracle.BOUNDS.update(dict.fromkeys(MOMENTS, (0, INF)))
oracle.CORNERS |= {"beta": (0.0, 1.0), "truncated_gaussian": (0.0, HIGH)}
oracle.REACH.update({name: L(10) ** decades for name, decades in REACH.items()})


def ladder(family: str) -> np.ndarray:
    core = np.arange(1, 33, dtype=L) / 4
    top = REACH.get(family, 2.0)
    far = 8 * L(1.3) ** np.arange(1, int((top - 0.9) / 0.1139) + 2)
    fine = L(0.25) * L(0.5) ** np.arange(1, 860)
    return np.concatenate([fine[::-1] if family in MOMENTS else [], core, far])


def draw(rng: np.random.Generator, family: str, kind: str) -> dict[str, list]:
    count, gap = int(rng.integers(2, 5)), 0.0
    a, b = rng.normal(size=(2, count))
    base = {
        "lognormal": rng.uniform(0.2, 1.2),
        "gamma": 10.0 ** rng.uniform(-0.7, 1.0),
        "weibull": 10.0 ** rng.uniform(-0.3, 0.6),
        "beta": 10.0 ** rng.uniform(-0.6, 0.8),
        "truncated_gaussian": rng.uniform(-2.0, 3.0),
    }
    scale, shape = np.exp(0.5 * a), base[family] * np.exp(0.3 * b)
    if kind == "near":
        gap = 10.0 ** rng.uniform(-7.5, -2.0)
        scale, shape = 1.3 + gap * a, base[family] * (1.0 + gap * b)
    elif kind == "apart":
        scale = np.exp(2.5 * a)
    elif kind == "unit":
        scale = scale * 10.0 ** rng.integers(-30, 30)
    shape = shape[:, None]
    if family == "beta":  # of one scale: bounds are the same, or nearly all log risks were infinite
        second = rng.uniform(1.5, 6.0) * np.exp((gap if kind == "near" else 0.3) * rng.normal(size=count))
        shape, scale = np.column_stack([shape, second]), np.full(count, scale[0])
    if family == "truncated_gaussian":
        second = rng.uniform(0.5, 2.0) * np.exp((gap if kind == "near" else 0.3) * rng.normal(size=count))
        shape = base[family] + (gap if kind == "near" else 1.0) * b
        shape, scale = np.column_stack([shape, second]), np.full(count, scale[0])
    weights = np.full(count, 1.0 / count) if rng.random() < 0.6 else rng.dirichlet(np.ones(count))
    return {"location": [0.0] * count, "scale": list(scale), "shape": shape.tolist(), "weights": list(weights)}


KINDS = ("ordinary", "near", "apart", "unit")


def main() -> None:
    rng = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 17)
    known = oracle.moments
    oracle.ladder = ladder
    oracle.moments = lambda family, n: MOMENTS[family](n) if family in MOMENTS else known(family, n)
    cases = []
    for family in sys.argv[4].split(",") if len(sys.argv) > 4 else MOMENTS:
        for kind in KINDS * (int(sys.argv[2]) if len(sys.argv) > 2 else 1):
            case = draw(rng, family, kind)
            values = measures(family, *case.values())
            if family in POLES and np.min(case["shape"]) < 0.53:
                # The square of the density has no integral, or lies closer to the bound than any double.
                values = {name: value for name, value in values.items() if not name.startswith("quadratic")}
            cases.append({"family": family, "kind": kind, **case, "values": values})
    target = Path(sys.argv[3]) if len(sys.argv) > 3 else Path(__file__).with_suffix(".json")
    target.write_text(json.dumps(cases, indent=None).replace('{"family"', '\n{"family"') + "\n")


if __name__ == "__main__":
    main()
