"""CRPS and squared error of draws by one sort, against double sums over pairs of draws in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from mpmath import erfc, exp, mp, mpf, pi, sqrt

import uqprism as up
from tests.conftest import as_array, run_python
from uqprism.arrays import normal_quantile

NAMES = [measure.name for measure in up.catalogue(["crps", "squared_error"])]


def gap(rule: str, p: list, q: list) -> Fraction:
    """E|X - Y|, or E(X - Y)^2, of weighted draws [(value, weight)]."""
    power = 1 if rule == "crps" else 2
    return sum((a * b * abs(x - y) ** power for x, a in p for y, b in q), Fraction(0))


def from_gaussian(x: mpf, scale: mpf) -> mpf:
    """E|x - Z| for a Gaussian about zero."""
    t = x / scale
    return scale * (2 * exp(-t * t / 2) / sqrt(2 * pi) + t * (erfc(-t / sqrt(2)) - 1))


def distance_to_gaussian(p: list, variance: mpf) -> mpf:
    """E|X - Z| for weighted draws and a Gaussian about zero."""
    scale = sqrt(variance)
    return sum(from_gaussian(mpf(x.numerator) / x.denominator, scale) * w.numerator / w.denominator for x, w in p)


def oracle(members: list, weights: list) -> dict[str, mpf]:
    """All measures of one point; members are lists [(value, weight)] of fractions."""
    mixture = [(x, w * a) for member, w in zip(members, weights, strict=True) for x, a in member]
    centre = sum(x * w for x, w in mixture)
    members, mixture = ([[(x - centre, w) for x, w in m] for m in members], [(x - centre, w) for x, w in mixture])
    roles = {"members": list(zip(members, weights, strict=True)), "mixture": [(mixture, Fraction(1))]}
    means = [sum(x * w for x, w in m) for m in members]
    pooled = sum(w * sum(a * (x - c) ** 2 for x, a in m) for m, c, w in zip(members, means, weights, strict=True))
    variances = {"matched": sum(w * x * x for x, w in mixture), "pooled": pooled}
    variances = {name: mpf(v.numerator) / v.denominator for name, v in variances.items()}

    def cross(rule: str, p: object, q: object) -> mpf:
        """E g(X, Y) of draws, or of a surrogate given by its name."""
        if isinstance(p, str) or isinstance(q, str):
            p, q = (p, q) if isinstance(q, str) else (q, p)
            own = variances[q] + (variances[p] if isinstance(p, str) else 0)
            if rule == "crps":
                return sqrt(2 * own / pi) if isinstance(p, str) else distance_to_gaussian(p, variances[q])
            second = 0 if isinstance(p, str) else gap(rule, p, [(Fraction(0), Fraction(1))])
            return own + (mpf(second.numerator) / second.denominator if second else 0)
        found = gap(rule, p, q)
        return mpf(found.numerator) / found.denominator

    def each(role: str) -> list:
        return [(role, mpf(1))] if role in variances else [(p, mpf(w.numerator) / w.denominator) for p, w in roles[role]]

    found = {}
    for measure in up.catalogue(["crps", "squared_error"]):
        if "pooled" in measure.name and not pooled:
            continue
        rule, truths = measure.rule, each(measure.truth)
        bayes = sum(w * cross(rule, q, q) / 2 for q, w in truths)
        if measure.risk == "bayes":
            found[measure.name] = bayes
            continue
        total = sum(v * w * (cross(rule, p, q) - cross(rule, p, p) / 2) for p, v in each(measure.prediction) for q, w in truths)
        found[measure.name] = total - bayes if measure.risk == "excess" else total
    return found


@cache
def truths(kind: str) -> list[dict[str, mpf]]:
    """The oracle at every point of a case."""
    return points_of(*CASES[kind])


def points_of(draws: np.ndarray, draw_weights: np.ndarray | None, weights: list[float] | None) -> list[dict[str, mpf]]:
    """The oracle at every point of draws (members, draws, points)."""
    count, drawn, points = draws.shape
    outer = [Fraction(float(w)) for w in ([1.0] * count if weights is None else weights)]
    outer = [w / sum(outer) for w in outer]
    found = []
    for point in range(points):
        members = []
        for i in range(count):
            own = [Fraction(1 if draw_weights is None else float(draw_weights[i, k, point])) for k in range(drawn)]
            members.append([(Fraction(float(draws[i, k, point])), own[k] / sum(own)) for k in range(drawn) if own[k]])
        with mp.workdps(80):
            found.append(oracle(members, outer))
    return found


def ensembles() -> dict[str, tuple[np.ndarray, np.ndarray | None, list[float] | None]]:
    """Draws (members, draws, points) and the weights of draws and of members."""
    rng = np.random.default_rng(5)
    normal = rng.normal(size=(3, 6, 3))
    shifted = normal + rng.normal(size=(3, 1, 3))
    of_draws = rng.dirichlet(np.ones(6), size=(3, 3)).swapaxes(1, 2)
    unequal = np.ones((3, 6, 3))
    unequal[0, 2:], unequal[2, 5:] = 0.0, 0.0
    near = normal[:1] + 1e-7 * rng.normal(size=(3, 6, 3))
    return {
        "ordinary": (shifted, None, None),
        "ties": (np.round(shifted), None, None),
        "member weights": (shifted, None, [0.2, 0.5, 0.3]),
        "draw weights": (shifted, of_draws, None),
        "both weights and ties": (np.round(2.0 * shifted) / 2.0, of_draws, [0.7, 0.1, 0.2]),
        "unequal numbers": (shifted, unequal / unequal.sum(axis=1, keepdims=True), [0.2, 0.5, 0.3]),
        "nearly agreeing": (near, None, None),
        "nearly agreeing with weights": (1e3 + near, of_draws[:1] + 0.0 * of_draws, [0.2, 0.5, 0.3]),
        "far offset": (1e12 + np.round(shifted * 2**10) / 2**10, None, None),
        "separated": (1e-6 * normal + np.array([-1.0, 0.0, 5.0])[:, None, None], of_draws, None),
        "tiny": (1e-150 * shifted, None, None),
        "huge": (1e150 * shifted, of_draws, None),
        "one draw each": (shifted[:, :1], None, None),
        "two members of two": (shifted[:2, :2], None, None),
        "one member": (shifted[:1], None, None),
        "a member without weight": (shifted, None, [0.0, 0.6, 0.4]),
        "zero and faint weights": (shifted, None, [1e-9, 1.0 - 1e-9, 0.0]),
    }


CASES = ensembles()


def build(kind: str, library: str = "numpy", dtype: str = "float64") -> up.EnsemblePrediction:
    draws, draw_weights, weights = CASES[kind]
    inner = as_array(library, draws.swapaxes(0, 1), dtype)
    own = None if draw_weights is None else as_array(library, draw_weights.swapaxes(0, 1), dtype)
    return up.EnsemblePrediction(up.Draws(inner, own), weights)


def check(table: up.MeasureTable, expected: list[dict[str, mpf]]) -> None:
    """Every value within its stated exactness; where the truth is zero, of the size of what is compared."""
    wrong = {}
    for name in table:
        tolerance, values = table.exactness[name].tolerance, np.asarray(table[name], dtype=np.float64)
        for point, truth in enumerate(expected):
            size, whole = abs(truth[name]), truth[f"{name.split('.', maxsplit=1)[0]}.bayes.mixture"]
            size = size if size > 1e-60 * whole else 1e-5 * whole
            error = float(abs(mpf(float(values[point])) - truth[name]) / size)
            if not error <= tolerance:
                wrong[name, point] = (error, float(values[point]), float(truth[name]))
    assert wrong == {}


def wanted(kind: str) -> list[str]:
    """A single draw has no variance, so that pooled is no distribution."""
    return [name for name in NAMES if kind != "one draw each" or "pooled" not in name]


@pytest.mark.parametrize("kind", CASES)
def test_double_sums(kind: str, library: str) -> None:
    check(up.evaluate(build(kind, library), wanted(kind), backend="reference"), truths(kind))


@pytest.mark.parametrize("kind", CASES)
def test_kernel(kind: str) -> None:
    pytest.importorskip("numba")
    check(up.evaluate(build(kind), wanted(kind), backend="fused"), truths(kind))


@pytest.mark.parametrize("kind", ["ordinary", "both weights and ties", "nearly agreeing", "unequal numbers"])
def test_single_precision(kind: str) -> None:
    """Computed in double precision and rounded: what is lost is lost in the draws."""
    ens = build(kind, dtype="float32")
    table = up.evaluate(ens, wanted(kind))
    assert table[NAMES[0]].dtype == np.float32
    check(table, points_of(ens.members.draws.swapaxes(0, 1), ens.members.weights.swapaxes(0, 1), ens.weights))


def fair(draws: np.ndarray, draw_weights: np.ndarray | None, weights: list[float] | None, point: int) -> dict[str, float]:
    """Means over pairs of different members and of different draws, as double sums."""
    members = [draws[i, :, point] for i in range(len(draws))]
    inner = [np.full(len(x), 1.0 / len(x)) if draw_weights is None else draw_weights[i, :, point] for i, x in enumerate(members)]
    outer = np.full(len(members), 1.0 / len(members)) if weights is None else np.array(weights) / np.sum(weights)
    found = {}
    for rule, power in (("crps", 1), ("squared_error", 2)):
        own, bayes, excess = [], 0.0, 0.0
        for x, a in zip(members, inner, strict=True):
            pairs = np.outer(a, a) * (1.0 - np.eye(len(a)))
            own.append((pairs * np.abs(x[:, None] - x) ** power).sum() / pairs.sum())
        for i, j in np.ndindex(len(members), len(members)):
            bayes += outer[i] * own[i] / 2.0 / len(members)
            if i != j:
                across = (np.outer(inner[i], inner[j]) * np.abs(members[i][:, None] - members[j]) ** power).sum()
                excess += outer[i] * outer[j] * (across - own[i] / 2.0 - own[j] / 2.0) / (1.0 - (outer**2).sum())
        found |= {f"{rule}.bayes": bayes, f"{rule}.excess": excess, f"{rule}.total": bayes + excess}
    return found


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("kind", ["ordinary", "ties", "draw weights", "both weights and ties", "two members of two"])
def test_unbiased_over_members_and_draws(kind: str, backend: str) -> None:
    names = [f"{rule}.{risk}" for rule in ("crps", "squared_error") for risk in ("bayes.members", "excess.members.members")]
    names += [f"{rule}.total.members.members" for rule in ("crps", "squared_error")]
    table = up.evaluate(build(kind), names, estimator="unbiased", backend=backend)
    for point in range(3):
        expected = fair(*CASES[kind], point)
        for name in names:
            rule, risk, *_ = name.split(".")
            np.testing.assert_allclose(table[name][point], expected[f"{rule}.{risk}"], rtol=1e-10, atol=1e-13, err_msg=name)


def test_unbiased_draws_of_one_distribution(rng: np.random.Generator) -> None:
    """On average members that draw from one distribution do not disagree, and their noise is that distribution's."""
    ens = up.EnsemblePrediction.samples(rng.normal(size=(5, 4, 20_000)))
    for rule, noise in (("crps", 1.0 / np.sqrt(np.pi)), ("squared_error", 1.0)):
        unbiased, plugin = (up.decompose(ens, rule, estimator=e) for e in ("unbiased", "plugin"))
        spread = unbiased.excess.std() / np.sqrt(20_000)
        assert abs(unbiased.excess.mean()) < 4.0 * spread
        assert abs(unbiased.bayes.mean() - noise) < 4.0 * unbiased.bayes.std() / np.sqrt(20_000)
        assert plugin.excess.mean() > 20.0 * spread


def test_unbiased_needs_two_draws() -> None:
    with pytest.raises(up.UqprismError, match="two draws"):
        up.decompose(build("one draw each"), estimator="unbiased")


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("shape", [(150, 50, 10), (70, 700, 3), (65, 5, 200), (1, 2, 1)])
def test_kernel_is_reference(
    shape: tuple[int, int, int], threads: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More points than lanes, slices of several threads, and other axes than the first, with weights and without."""
    pytest.importorskip("numba")
    monkeypatch.setenv("UQPRISM_THREADS", threads)
    draws = rng.normal(size=shape) + rng.normal(size=(shape[0], 1, shape[2]))
    of_draws = rng.dirichlet(np.ones(shape[1]), size=shape[::2])
    plain = up.EnsemblePrediction.samples(draws, member_axis=2, draw_axis=1)
    weighed = up.Draws(draws.transpose(1, 2, 0), of_draws.transpose(2, 1, 0))
    for ens in (plain, up.EnsemblePrediction(weighed, rng.dirichlet(np.ones(shape[2])))):
        fused, reference = (up.evaluate(ens, NAMES, backend=backend) for backend in ("fused", "reference"))
        assert fused.exactness == reference.exactness
        for name in NAMES:
            error = np.abs(fused[name] - reference[name])
            size = reference[name] + 1e-5 * reference[f"{name.split('.', maxsplit=1)[0]}.bayes.mixture"]
            assert (error <= fused.exactness[name].tolerance * size).all(), name


def test_draws_at_the_quantiles_of_a_gaussian() -> None:
    """The distance from the surrogate is less than a millionth of the scale, and keeps its digits."""
    draws = normal_quantile((np.arange(1000) + 0.5) / 1000.0)
    ens = up.EnsemblePrediction.samples(np.random.default_rng(0).permutation(draws).reshape(10, 100, 1))
    with mp.workdps(40):
        x = [mpf(float(v)) for v in draws]
        x = [v - sum(x) / len(x) for v in x]
        own = sum((b - a) * k * (len(x) - k) for k, (a, b) in enumerate(pairwise(x), 1)) / len(x) ** 2
        variance = sum(v * v for v in x) / len(x)
        truth = sum(from_gaussian(v, sqrt(variance)) for v in x) / len(x) - own - sqrt(variance / pi)
    for backend in ("reference", "fused"):
        found = up.evaluate(ens, "crps.excess.matched.mixture", backend=backend)["crps.excess.matched.mixture"]
        assert abs(float(found[0]) / truth - 1) < 1e-9


def test_gradients(rng: np.random.Generator) -> None:
    """Of every measure, by draws and members' weights, against finite differences; between both sides where draws are equal."""
    torch = pytest.importorskip("torch")
    draws = torch.tensor(rng.normal(size=(3, 4, 2)), requires_grad=True)
    raw = torch.tensor(rng.normal(size=3), requires_grad=True)

    def values(draws: object, raw: object) -> object:
        table = up.evaluate(up.EnsemblePrediction.samples(draws, weights=torch.softmax(raw, 0), check=False), NAMES)
        return torch.stack([table[name] for name in NAMES])

    assert torch.autograd.gradcheck(values, (draws, raw), eps=1e-6, atol=1e-6, fast_mode=True)
    tied = torch.zeros((2, 1, 1), dtype=torch.float64, requires_grad=True)
    up.decompose(up.EnsemblePrediction.samples(tied)).excess.sum().backward()
    assert (tied.grad == 0.0).all()


MEMORY = """
import numpy as np, uqprism as up

def status(field):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(field))

draws = np.random.default_rng(0).normal(size=(20, 1000, 500))
up.evaluate(up.EnsemblePrediction.samples(draws[..., :9]), "crps.*", backend="fused")
before = status("VmRSS:")
up.evaluate(up.EnsemblePrediction.samples(draws), ["crps.*", "squared_error.*"], backend="fused")
print((status("VmHWM:") - before) / 2**20)
"""


def test_memory() -> None:
    """Beside draws of 76 MB less than 32 MB are held, with all checks."""
    pytest.importorskip("numba")
    assert float(run_python(MEMORY, UQPRISM_THREADS="2")) < 32.0
