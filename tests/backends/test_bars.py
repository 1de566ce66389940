"""The kernel for bars and quantiles against 50-digit sums (`tests/oracles/bars.py`), the reference, and theory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import uqprism as up
from tests.backends.test_conformance import disagreement

pytest.importorskip("numba")

CASES = json.loads((Path(__file__).parents[1] / "oracles" / "bars.json").read_text())
MEMBERS = ["crps.bayes.members", "crps.excess.members.members", "log.bayes.members", "log.excess.members.members"]
LEVELS = np.linspace(0.05, 0.95, 10)
HALF = scipy.stats.halfnorm.ppf(0.5)
OWN = {None, "members", "mixture"}


def ensemble(case: dict, dtype: str = "float64") -> up.EnsemblePrediction:
    """The case at one point."""
    given = case["given"]
    if case["family"] == "quantiles":
        values = np.array(given["values"], dtype)[..., None]
        return up.EnsemblePrediction.quantiles(**{**given, "values": values}, weights=case["weights"])
    edges, mass = (np.array(given[name], dtype) for name in ("edges", "probabilities"))
    edges = edges if edges.ndim == 1 else edges[..., None]
    arrays = {"edges": edges, "probabilities": mass[..., None], "outer": given["outer"]}
    return up.EnsemblePrediction.histogram(**arrays, weights=case["weights"])


def errors(table: up.MeasureTable, values: dict[str, str]) -> dict[str, float]:
    """Relative errors; of totals that cross zero relative to what they are made of."""
    found = {}
    for name, text in values.items():
        truth, value = float(text), float(table[name][0])
        size = max(abs(truth), 1.0) if name.startswith("log.") and ".excess." not in name else abs(truth)
        if name.startswith("quadratic.total"):
            size = max(size, abs(float(values[f"quadratic.bayes.{name.rsplit('.', maxsplit=1)[-1]}"])))
        found[name] = 0.0 if value == truth or abs(truth) < 1e-30 > abs(value) else abs(value - truth) / size
    return found


def identifier(case: dict) -> str:
    kind = case["given"].get("outer", case["given"].get("tails"))
    return f"{case['family']} {kind} {case['kind']}"


@pytest.mark.parametrize("case", CASES, ids=identifier)
def test_all_measures_are_the_sums_with_fifty_digits(case: dict) -> None:
    found = errors(up.evaluate(ensemble(case), backend="fused"), case["values"])
    assert {name: error for name, error in found.items() if not error <= 1e-10} == {}


def converging(kind: str, count: int, mean: np.ndarray, scale: np.ndarray) -> up.EnsemblePrediction:
    """Gaussian members by so many bars, or by quantiles at so many levels."""
    if kind == "bars":
        edges = np.linspace(-14.0, 14.0, count + 1)
        below = scipy.stats.norm.cdf((edges[:, None, None] - mean) / scale)
        above = scipy.stats.norm.sf((edges[:, None, None] - mean) / scale)
        mass = np.where(below[1:] < 0.5, np.diff(below, axis=0), -np.diff(above, axis=0)).swapaxes(0, 1)
        return up.EnsemblePrediction.histogram(edges=edges, probabilities=mass / mass.sum(axis=1, keepdims=True))
    levels = scipy.stats.norm.cdf(np.linspace(-7.5, 7.5, count)) if kind == "scales" else (np.arange(count) + 0.5) / count
    values = mean + scale * scipy.stats.norm.ppf(levels)[:, None, None]
    return up.EnsemblePrediction.quantiles(levels=levels, values=values.swapaxes(0, 1), tails="gaussian")


@pytest.mark.parametrize(("kind", "order"), [("bars", 2.0), ("scales", 2.0), ("probability", 1.0)])
def test_bars_and_quantiles_of_gaussians_converge_to_the_gaussian_numbers(kind: str, order: float) -> None:
    """With the square of the length of a cell; where the outermost levels have a probability of 1/n, as that does."""
    rng = np.random.default_rng(1)
    mean, scale = rng.normal(size=(4, 30)), np.exp(0.3 * rng.normal(size=(4, 30)))
    names = [m.name for m in up.catalogue() if not m.name.startswith("squared_error.excess") and {m.prediction, m.truth} <= OWN]
    if order == 1.0:
        names = ["crps.bayes.members", "crps.total.members.members", "log.bayes.members", "squared_error.bayes.members"]
    truth = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale), names)
    tables = [up.evaluate(converging(kind, count, mean, scale), names, backend="fused") for count in (400, 800)]
    coarse, fine = ({name: float(np.mean(np.abs(t[name] - truth[name]))) for name in names} for t in tables)
    # Risks that are zero for both have no order.
    slopes = {name: np.log2(coarse[name] / fine[name]) for name in names if fine[name] > 1e-13}
    assert len(slopes) > len(names) / 2
    assert {name: slope for name, slope in slopes.items() if abs(slope - order) > 0.12} == {}


@pytest.mark.parametrize("tails", ["exponential", "none"])
def test_quantiles_are_the_histogram_of_the_same_distribution_function(tails: str) -> None:
    rng = np.random.default_rng(2)
    values = np.sort(rng.normal(size=(3, 10, 40)), axis=1)
    quantiles = up.EnsemblePrediction.quantiles(levels=LEVELS, values=values, tails=tails)
    mass = np.diff([0.0, *LEVELS, 1.0])
    names = [m.name for m in (up.catalogue(["crps", "squared_error"]) if tails == "none" else up.catalogue())]
    if tails == "none":  # nearly: bars of no width are none
        edges = np.concatenate([values[:, :1] - 1e-13, values, values[:, -1:] + 1e-13], axis=1)
    else:
        widths = [np.log(2.0) * m / n for m, n in ((mass[0], mass[1]), (mass[-1], mass[-2]))]
        low, high = (w * (values[:, 1] - values[:, 0] if w is widths[0] else values[:, -1] - values[:, -2]) for w in widths)
        edges = np.concatenate([values[:, :1] - low[:, None], values, values[:, -1:] + high[:, None]], axis=1)
    bars = up.EnsemblePrediction.histogram(
        edges=edges,
        probabilities=np.broadcast_to(mass[None, :, None], (3, 11, 40)),
        outer=None if tails == "none" else "exponential",
    )
    found = disagreement(up.evaluate(bars, names, backend="fused"), up.evaluate(quantiles, names, backend="fused"))
    assert {name: error for name, error in found.items() if not error <= (1e-10 if tails != "none" else 1e-9)} == {}


def test_the_default_call_takes_the_kernel_and_any_layout_of_memory() -> None:
    rng = np.random.default_rng(3)
    mass = rng.dirichlet(np.ones(40), size=(3, 200))  # (members, points, bars)
    edges = np.sort(rng.normal(size=41))
    usual = up.EnsemblePrediction.histogram(edges=edges, probabilities=np.ascontiguousarray(mass.transpose(0, 2, 1)))
    wanted = up.evaluate(usual, backend="fused")
    for ens in (
        usual,
        up.EnsemblePrediction.histogram(edges=edges, probabilities=mass, bar_axis=2),
        up.EnsemblePrediction.histogram(edges=np.repeat(edges[:, None], 200, axis=1), probabilities=mass, bar_axis=2),
        up.EnsemblePrediction.histogram(edges=np.broadcast_to(edges, (3, 200, 41)), probabilities=mass, bar_axis=2),
    ):
        table = up.evaluate(ens)
        for name in table:
            assert_allclose(table[name], wanted[name], rtol=1e-12, atol=1e-13)
    narrow = up.EnsemblePrediction.histogram(edges=edges.astype("float32"), probabilities=mass.astype("float32"), bar_axis=2)
    single = up.evaluate(narrow)
    assert single["crps.bayes.members"].dtype == np.float32
    assert_allclose(single["crps.bayes.members"], wanted["crps.bayes.members"], rtol=2e-6)


def test_torch_tensors_without_gradients_take_the_kernel() -> None:
    torch = pytest.importorskip("torch")
    values = np.sort(np.random.default_rng(4).normal(size=(3, 10, 50)), axis=1)
    wanted = up.evaluate(up.EnsemblePrediction.quantiles(levels=LEVELS, values=values), "usual", backend="fused")
    tensor = torch.tensor(values)
    table = up.evaluate(up.EnsemblePrediction.quantiles(levels=LEVELS, values=tensor), "usual", backend="fused")
    for name in table:
        assert_allclose(table[name].numpy(), wanted[name], rtol=1e-13)
    asked = up.EnsemblePrediction.quantiles(levels=LEVELS, values=tensor.requires_grad_())
    with pytest.raises(up.UqprismError, match="and these need gradients"):
        up.evaluate(asked, "usual", backend="fused")


def test_members_that_nearly_agree_keep_their_digits_with_edges_of_their_own() -> None:
    rng = np.random.default_rng(5)
    base = np.sort(rng.normal(size=(1, 10, 30)), axis=1)
    values = base + 1e-7 * rng.normal(size=(3, 10, 30))
    ens = up.EnsemblePrediction.quantiles(levels=LEVELS, values=values)
    names = ["crps.excess.members.members", "log.excess.mixture.members", "quadratic.excess.members.members"]
    fused, reference = (up.evaluate(ens, names, backend=backend) for backend in ("fused", "reference"))
    for name in names:
        assert_allclose(fused[name], reference[name], rtol=1e-7)
    same = up.EnsemblePrediction.quantiles(levels=LEVELS, values=np.repeat(base, 3, axis=0))
    table = up.evaluate(same, names, backend="fused")
    assert all((np.asarray(table[name]) == 0.0).all() for name in names)


@pytest.mark.parametrize("tails", ["exponential", "gaussian"])
def test_a_narrow_tail_between_bars_of_others_counts(tails: str) -> None:
    """The way from an edge to such a tail is many times its length; once it was passed over. Members also coincide there."""
    rng = np.random.default_rng(1)
    values = np.sort(rng.normal(size=(3, 5, 60)), axis=1)
    values[2, 0] = values[2, 1] - np.repeat([1e-1, 1e-3, 1e-5], 20)
    ens = up.EnsemblePrediction.quantiles(levels=[0.1, 0.3, 0.5, 0.7, 0.9], values=values, tails=tails)
    found, wanted = (up.evaluate(ens, MEMBERS, backend=backend) for backend in ("fused", "reference"))
    for name in MEMBERS:
        assert_allclose(found[name], wanted[name], rtol=1e-7, atol=1e-9)
    if tails == "exponential":
        levels, steps = np.array([0.1, 0.3, 0.5, 0.7, 0.9]), values[:, 1:] - values[:, :-1]
        inside = np.diff(levels**2 / 2 - levels**3 / 3) / np.diff(levels)  # of F (1 - F) over a step of one
        outside = 0.5 * (0.1 - 0.005)  # the scale of a tail is half the step next to it
        exact = np.einsum("mkn,k->mn", steps, inside) + outside * (steps[:, 0] + steps[:, -1])
        assert_allclose(found["crps.bayes.members"], exact.mean(axis=0), rtol=1e-12)


def log_mixture(edges: np.ndarray, mass: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of members (members, edges) with half-normal outer bars: the log density of their mixture, and which of them leads."""
    levels = np.empty((len(edges), *y.shape))
    for i, (e, p) in enumerate(zip(edges, mass, strict=True)):
        low, high = (e[1] - e[0]) / HALF, (e[-1] - e[-2]) / HALF
        bars = np.log(p / np.diff(e))[np.clip(np.searchsorted(e, y, side="right") - 1, 0, len(p) - 1)]
        below = np.log(2.0 * p[0]) + scipy.stats.norm.logpdf(y, e[1], low)
        above = np.log(2.0 * p[-1]) + scipy.stats.norm.logpdf(y, e[-2], high)
        levels[i] = np.where(y < e[1], below, np.where(y >= e[-2], above, bars)) - np.log(len(edges))
    return np.logaddexp.reduce(levels, axis=0), levels.argmax(axis=0)


def gaussian_against(edges: np.ndarray, mass: np.ndarray, mean: float, scale: float) -> float:
    """The integral of g log(g/p) of a Gaussian over panels that shrink towards every change of the leading member."""
    low, high = mean - 12.0 * scale, mean + 12.0 * scale
    grid = np.union1d(np.linspace(low, high, 10_001), edges[:, 1:-1].clip(low, high))
    lead, around = log_mixture(edges, mass, grid)[1], scale * 0.6 ** np.arange(45)
    corners = [np.linspace(low, high, 301), edges[:, 1:-1].ravel()]
    for at in np.flatnonzero(np.diff(lead)):
        a, b = grid[at], grid[at + 1]
        for _ in range(50):
            middle = 0.5 * (a + b)
            a, b = (middle, b) if log_mixture(edges, mass, np.array([middle]))[1][0] == lead[at] else (a, middle)
        corners += [a - around, [a], a + around]
    ends = np.unique(np.concatenate(corners).clip(low, high))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    width = np.diff(ends)[:, None]
    y = ends[:-1, None] + 0.5 * width * (nodes + 1.0)
    level = scipy.stats.norm.logpdf(y, mean, scale)
    return float((0.5 * width * weights * np.exp(level) * (level - log_mixture(edges, mass, y)[0])).sum())


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_the_log_density_bends_between_half_normal_tails_far_apart(backend: str) -> None:
    """Stretches once ended right before a bend, began right behind one at an edge, or passed over two."""
    rng = np.random.default_rng(0)
    for members, bars in ((3, 8), (2, 3), (3, 6), (6, 5), (6, 3)):
        for case in range(3):
            scale = np.exp(rng.uniform(-2.5, 1.5, size=members))
            at = np.cumsum(rng.uniform(5.0, 30.0, size=members))
            if members == 3 and case == 0:
                scale, at = np.array([1.27, 0.086, 3.05]), np.array([0.0, 24.5, 49.1])
            edges = at[:, None] + scale[:, None] * np.linspace(-2.5, 2.5, bars + 1)
            mass = np.diff(scipy.stats.norm.cdf(np.linspace(-2.5, 2.5, bars + 1)))[None] * rng.uniform(0.7, 1.3, (members, bars))
            mass /= mass.sum(axis=1, keepdims=True)
            ens = up.EnsemblePrediction.histogram(edges=edges[..., None], probabilities=mass[..., None], outer="half_normal")
            names = ["log.excess.mixture.matched", "log.excess.mixture.pooled"]
            table, pooled = up.evaluate(ens, names, backend=backend), float(np.mean(ens.members.variance))
            mean = float(np.mean(ens.members.mean))
            for name, variance in zip(names, (pooled + float(np.var(ens.members.mean)), pooled), strict=True):
                wanted = gaussian_against(edges, mass, mean, variance**0.5)
                assert_allclose(table[name][0], wanted, rtol=table.exactness[name].tolerance)


def test_quantiles_that_coincide_have_a_crps_in_the_reference_too() -> None:
    """Also far from zero, where a tail is narrower than the spacing of doubles: no stretch of it would move on."""
    values = np.array(
        [[[1.0, 1e8], [2.0, 1e8 + 1.0], [2.0, 1e8 + 1.0 + 1.5e-8]], [[1.0, 1e8], [2.0, 1e8 + 2.0], [4.0, 1e8 + 4.0]]]
    )
    ens = up.EnsemblePrediction.quantiles(levels=[0.1, 0.5, 0.9], values=values)
    names = ["crps.*", "squared_error.*"]
    found, wanted = (up.evaluate(ens, names, backend=backend) for backend in ("reference", "fused"))
    for name in found:
        assert_allclose(found[name], wanted[name], rtol=1e-7, atol=1e-12)
