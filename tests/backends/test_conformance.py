"""The fused kernels against the reference path, which defines the truth, and against 50-digit values."""

from __future__ import annotations

import numpy as np
import pytest

import uqprism as up
from tests.conftest import ORACLE, error_of, is_hard

pytest.importorskip("numba")

NAMES = [measure.name for measure in up.catalogue()]


def disagreement(fused: up.MeasureTable, reference: up.MeasureTable) -> dict[str, float]:
    """The largest relative difference of each measure; of totals that cross zero relative to what they are made of."""
    found = {}
    for name in reference:
        x, y = np.asarray(fused[name], dtype=np.float64), np.asarray(reference[name], dtype=np.float64)
        size = np.abs(y)
        if name.startswith("log.") and ".excess." not in name:
            size = np.maximum(size, 1.0)
        if name.startswith("quadratic.total"):
            size = np.maximum(size, np.abs(reference[f"quadratic.bayes.{name.rsplit('.', maxsplit=1)[-1]}"]))
        with np.errstate(invalid="ignore", divide="ignore"):
            found[name] = float(np.max(np.where(x == y, 0.0, np.abs(x - y) / size)))
    return found


def agree(ensemble: up.EnsemblePrediction, *, tolerance: float = 1e-10, **options: object) -> None:
    """All measures agree, and so does what is said about their exactness."""
    fused, reference = (up.evaluate(ensemble, backend=backend, **options) for backend in ("fused", "reference"))
    assert {n: e for n, e in disagreement(fused, reference).items() if not e <= tolerance} == {}
    assert fused.exactness == reference.exactness


def ensembles(rng: np.random.Generator, members: int, points: int = 70) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Means and scales from ordinary to extreme; more points than lanes, and not a multiple of them."""
    normal = rng.normal(size=(4, members, points))
    gap = 10.0 ** rng.uniform(-9, 0, points)
    return {
        "ordinary": (normal[0], np.exp(0.3 * normal[1])),
        "nearly agreeing": (5.0 + gap * normal[0], 1.0 + 0.1 * gap * np.tanh(normal[1])),
        "one outlier": (np.where(np.arange(members)[:, None] == 0, 3.0 * gap, 1e-9 * normal[0]), 1.0 + 1e-9 * normal[1]),
        "same mean": (np.zeros((members, points)), np.exp(gap * normal[1])),
        "far offset": (1e12 + np.round(normal[0] * 2**10), np.exp(0.1 * normal[1]) * 2.0**8),
        "separated": (normal[0] * 30.0, np.exp(0.3 * normal[1])),
        "unlike scales": (normal[0], 10.0 ** rng.uniform(-3, 3, (members, points))),
        "huge and tiny": (normal[0], np.exp(0.3 * normal[1])) if members == 1 else _rescaled(normal, rng, points),
        "identical": (np.full((members, points), 0.25), np.full((members, points), 1.5)),
    }


def _rescaled(normal: np.ndarray, rng: np.random.Generator, points: int) -> tuple[np.ndarray, np.ndarray]:
    unit = 2.0 ** rng.integers(-480, 480, points)  # the largest and smallest are declined
    return normal[0] * unit, np.exp(0.3 * normal[1]) * unit


KINDS = list(ensembles(np.random.default_rng(0), 2, 2))


@pytest.mark.parametrize("case", ORACLE, ids=lambda case: case["name"])
def test_fifty_digits(case: dict) -> None:
    """Ten digits of closed forms and eight of the rest, on every reference case, like the reference path."""
    ensemble = up.EnsemblePrediction.gaussian(mean=np.array(case["mu"]), scale=np.array(case["sigma"]))
    table = up.evaluate(ensemble, backend="fused")
    errors = {name: error_of(name, table[name], truth) for name, truth in case["values"].items()}
    assert {n: e for n, e in errors.items() if e > (1e-8 if is_hard(n) else 1e-10)} == {}


SPREADS = {"scale": lambda scale: {"scale": scale}, "variance": lambda scale: {"variance": scale * scale}}
WEIGHTS = {"weights": [0.1, 0.4, 0.0, 0.3, 0.2]}  # members may weigh nothing


@pytest.mark.parametrize(
    ("kind", "members", "spread", "weights"),
    [
        *((kind, members, "scale", {}) for kind in KINDS for members in (2, 10)),
        *((kind, 5, "variance", {}) for kind in KINDS if kind != "huge and tiny"),
        ("ordinary", 1, "scale", {}),
        *((kind, 5, "scale", WEIGHTS) for kind in ("ordinary", "nearly agreeing", "unlike scales")),
    ],
)
def test_fused_is_reference(kind: str, members: int, spread: str, weights: dict, rng: np.random.Generator) -> None:
    mean, scale = ensembles(rng, members)[kind]
    agree(up.EnsemblePrediction.gaussian(mean=mean, **SPREADS[spread](scale), **weights))


def test_unbiased(rng: np.random.Generator) -> None:
    mean, scale = ensembles(rng, 5)["ordinary"]
    agree(up.EnsemblePrediction.gaussian(mean=mean, scale=scale, weights=[0.1, 0.4, 0.1, 0.2, 0.2]), estimator="unbiased")


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_members_without_weight_do_not_count(backend: str, rng: np.random.Generator) -> None:
    """Not even where they lie: a far one costs no digit."""
    mean, scale = ensembles(rng, 4)["ordinary"]
    expected = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean[1:], scale=scale[1:]), backend=backend)
    mean[0] = 1e30
    ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=scale, weights=[0.0, 1 / 3, 1 / 3, 1 / 3])
    found = disagreement(up.evaluate(ensemble, backend=backend), expected)
    assert {n: e for n, e in found.items() if not e <= 1e-10} == {}


def test_single_precision(rng: np.random.Generator) -> None:
    """Single precision is computed in double and rounded, as on the reference path."""
    mean, scale = (x.astype(np.float32) for x in ensembles(rng, 5)["ordinary"])
    ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=scale)
    assert up.evaluate(ensemble, backend="fused")["crps.bayes.members"].dtype == np.float32
    agree(ensemble, tolerance=2e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch(dtype: str, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    mean, scale = (torch.tensor(x, dtype=getattr(torch, dtype)) for x in ensembles(rng, 5)["ordinary"])
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale), backend="fused")
    plain = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean.numpy(), scale=scale.numpy()), backend="fused")
    for name in NAMES:
        assert table[name].dtype == mean.dtype
        np.testing.assert_array_equal(table[name].numpy(), plain[name])


def test_shapes(rng: np.random.Generator) -> None:
    """Points of any shape, also none, and members along any axis."""
    mean, scale = rng.normal(size=(3, 4, 5)), np.exp(rng.normal(size=(3, 4, 5)))
    agree(up.EnsemblePrediction.gaussian(mean=mean, scale=scale, member_axis=1))
    none = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean[:, :0], scale=scale[:, :0]), backend="fused")
    assert none["log.bayes.mixture"].shape == (0, 5)
    one = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean[:, 0, 0], scale=scale[:, 0, 0]), backend="fused")
    assert one["log.bayes.mixture"].shape == ()


def test_unchecked_rows(rng: np.random.Generator) -> None:
    """What is no distribution at one point stays there."""
    mean, scale = rng.normal(size=(3, 10)), np.ones((3, 10))
    whole = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale), "crps.bayes.members", backend="fused")
    mean[1, 4] = np.nan
    with np.errstate(invalid="ignore"):
        ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=scale, check=False)
        broken = up.evaluate(ensemble, ["crps.excess.members.members", "crps.bayes.members"], backend="fused")
    assert np.isnan(broken["crps.excess.members.members"][4])
    np.testing.assert_array_equal(np.delete(broken["crps.bayes.members"], 4), np.delete(whole["crps.bayes.members"], 4))


@pytest.fixture(scope="module")
def everything() -> tuple[up.EnsemblePrediction, up.MeasureTable]:
    kinds = ensembles(np.random.default_rng(3), 3, 4).values()
    mean, scale = (np.concatenate(parts, axis=1) for parts in zip(*kinds, strict=True))
    ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=scale)
    return ensemble, up.evaluate(ensemble, backend="fused")


@pytest.mark.parametrize("name", NAMES)
def test_each_alone(name: str, everything: tuple[up.EnsemblePrediction, up.MeasureTable]) -> None:
    """Each measure asked for alone is the same as among all: no stage depends on another being asked for."""
    ensemble, table = everything
    np.testing.assert_array_equal(up.evaluate(ensemble, name, backend="fused")[name], table[name])


def test_other_rules_beside(rng: np.random.Generator) -> None:
    """A rule the kernels do not know is served by the reference path, in the same table and order."""
    mean, scale = ensembles(rng, 3)["ordinary"]
    wanted = ["gaussian_kernel.excess.members.members", "crps.excess.members.members"]
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale), wanted, backend="fused")
    assert list(table) == wanted


@pytest.mark.parametrize(("spread", "unlike"), [(1.0, 0.3), (1e-6, 1e-6), (0.3, 0.02), (5.0, 0.3), (2.0, 2.0)])
def test_many_members(spread: float, unlike: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the crossover integrals replace pairs and lose nothing beyond 1e-9."""
    from uqprism.backends.numba import backend as cpu

    mean, scale = spread * rng.normal(size=(500, 3)), np.exp(unlike * rng.normal(size=(500, 3)))
    ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=scale, member_axis=0)
    many = up.evaluate(ensemble, backend="fused")
    assert many.exactness["crps.excess.members.members"] == up.Exactness("quadrature", 1e-9)
    monkeypatch.setattr(cpu, "MANY", 10**9)
    assert {n: e for n, e in disagreement(many, up.evaluate(ensemble, backend="fused")).items() if not e <= 1e-9} == {}


def test_many_members_that_agree(rng: np.random.Generator) -> None:
    """Ten thousand members within 1e-8 of each other keep their digits: V is known exactly."""
    offset = np.round(rng.normal(size=(10_000, 1)) * 2**10) * 2.0**-40
    ensemble = up.EnsemblePrediction.gaussian(mean=1.0 + offset, scale=np.ones_like(offset), member_axis=0)
    excess = up.evaluate(ensemble, "crps.excess.members.members", backend="fused")["crps.excess.members.members"]
    centred = offset - offset.mean()
    expected = 2.0 * (centred**2).mean(axis=0) / (2.0 * np.sqrt(np.pi))  # the limit of small gaps; next order 1e-19
    np.testing.assert_allclose(excess, expected, rtol=1e-9)
