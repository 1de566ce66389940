"""The kernels on an NVIDIA device against the reference path there; collected only where there is one (see conftest.py)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import uqprism as up
from tests.backends import test_bars as oracles
from tests.backends.test_conformance import KINDS, ensembles
from tests.backends.test_conformance import disagreement as host_disagreement
from tests.backends.test_pointwise import BUILD
from tests.conftest import ORACLE, error_of, is_hard
from uqprism.backends.choose import choose
from uqprism.backends.triton.backend import TritonBackend
from uqprism.backends.triton.bars import TritonBarsBackend
from uqprism.backends.triton.pointwise import TritonPointwiseBackend

pytestmark = pytest.mark.filterwarnings("ignore:.*measures are left out")  # by default calls, of what members do not have
CLOSED = [m.name for m in up.catalogue() if TritonBackend().covers(m)]  # all of them


def on_device(mean: np.ndarray, dtype: torch.dtype = torch.float64, **spread: np.ndarray) -> up.EnsemblePrediction:
    spread = {name: torch.tensor(x, dtype=dtype, device="cuda") for name, x in spread.items()}
    return up.EnsemblePrediction.gaussian(mean=torch.tensor(mean, dtype=dtype, device="cuda"), **spread)


def disagreement(fused: up.MeasureTable, reference: up.MeasureTable) -> dict[str, float]:
    found = {}
    for name in fused:
        x, y = (table[name].double().cpu().numpy() for table in (fused, reference))
        size = np.maximum(np.abs(y), 1.0 if name.startswith("log.") and ".excess." not in name else 0.0)
        if name.startswith("quadratic.total"):
            size = np.maximum(
                size, np.abs(reference[f"quadratic.bayes.{name.rsplit('.', maxsplit=1)[-1]}"].double().cpu().numpy())
            )
        with np.errstate(invalid="ignore", divide="ignore"):
            held = size > (1.2e-38 if fused[name].dtype == torch.float32 else 0.0)  # what float32 can hold
            found[name] = float(np.max(np.where((x == y) | ~held, 0.0, np.abs(x - y) / size)))
    return found


CASES = [(case, torch.float64) for case in ORACLE] + [(case, torch.float32) for case in ORACLE if case["float32_exact"]]


@pytest.mark.parametrize(("case", "dtype"), CASES, ids=lambda x: x["name"] if isinstance(x, dict) else str(x))
def test_fifty_digits(case: dict, dtype: torch.dtype) -> None:
    table = up.evaluate(on_device(np.array(case["mu"]), dtype, scale=np.array(case["sigma"])), CLOSED, backend="fused")
    double = dtype == torch.float64
    missed = {}
    for name in CLOSED:
        truth = float(case["values"][name])
        if not double and truth != 0.0 and not 1.2e-38 < abs(truth) < 3.4e38:
            continue
        error = error_of(name, float(table[name]), case["values"][name])
        bound = (1e-8 if double else 2e-4) if is_hard(name) else (1e-10 if double else 2e-5)
        if not error <= bound:
            missed[name] = error
    assert missed == {}


@pytest.mark.parametrize("spread", ["scale", "variance"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "huge and tiny"])
def test_double_precision(kind: str, spread: str, rng: np.random.Generator) -> None:
    mean, scale = ensembles(rng, 5, 300)[kind]
    ensemble = on_device(mean, **{spread: scale if spread == "scale" else scale * scale})
    fused, reference = (up.evaluate(ensemble, CLOSED, backend=backend) for backend in ("fused", "reference"))
    assert {n: e for n, e in disagreement(fused, reference).items() if not e <= (1e-8 if is_hard(n) else 1e-10)} == {}
    assert fused.exactness == reference.exactness


@pytest.mark.parametrize("kind", ["ordinary", "nearly agreeing", "same mean", "separated", "identical"])
def test_single_precision(kind: str, rng: np.random.Generator) -> None:
    """Float32 stays float32 and keeps the digits that float32 has, against double precision of the same numbers."""
    mean, scale = (x.astype(np.float32).astype(np.float64) for x in ensembles(rng, 10, 300)[kind])
    narrow = up.evaluate(on_device(mean, torch.float32, scale=scale), CLOSED, backend="fused")
    assert narrow["crps.bayes.members"].dtype == torch.float32
    wide = up.evaluate(on_device(mean, scale=scale), CLOSED, backend="reference")
    errors = disagreement(narrow, wide)
    assert {n: e for n, e in errors.items() if not e <= (2e-4 if is_hard(n) else 2e-5)} == {}


def test_all_measures_and_weights(rng: np.random.Generator) -> None:
    """Closed forms and integrals in one table."""
    mean, scale = ensembles(rng, 4, 200)["ordinary"]
    members = on_device(mean, scale=scale).members
    ensemble = up.EnsemblePrediction(members, [0.1, 0.2, 0.3, 0.4])
    fused, reference = (up.evaluate(ensemble, backend=backend) for backend in ("fused", "reference"))
    assert list(fused) == list(reference)
    assert {n: e for n, e in disagreement(fused, reference).items() if not e <= (1e-8 if is_hard(n) else 1e-10)} == {}


@pytest.mark.parametrize("spread", ["scale", "variance"])
def test_gradients(spread: str, rng: np.random.Generator) -> None:
    """First and second derivatives are the reference path's."""
    wanted = ["crps.excess.members.members", "quadratic.excess.matched.mixture", "log.total.members.matched"]
    found, start = [], rng.normal(size=(3, 50))
    for backend in ("fused", "reference"):
        mean = torch.tensor(start, device="cuda", requires_grad=True)
        given = torch.ones_like(mean, requires_grad=True)
        table = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, **{spread: given}), wanted, backend=backend)
        loss = sum((table[name] ** 2).sum() for name in wanted)
        first = torch.autograd.grad(loss, (mean, given), create_graph=True)
        second = torch.autograd.grad(sum(g.sin().sum() for g in first), (mean, given))
        found.append([loss, *first, *second])
    for fused, reference in zip(*found, strict=True):
        torch.testing.assert_close(fused, reference, rtol=1e-8, atol=1e-12)


def test_memory_of_many_points() -> None:
    """Two million points need little beside inputs and results: no temporary over pairs."""
    mean = torch.randn(10, 2_000_000, device="cuda")
    ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=torch.ones_like(mean))
    wanted = ["crps.excess.members.members", "quadratic.excess.members.members"]
    up.evaluate(ensemble, wanted)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    table = up.evaluate(ensemble, wanted)
    results = sum(x.nbytes for x in table.values())
    assert torch.cuda.max_memory_allocated() - before - results < 160 * 2**20


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws(dtype: torch.dtype, rng: np.random.Generator) -> None:
    """One sort on the device in double precision: the same as on a processor, with weights and in several parts of points."""
    draws, names = torch.tensor(rng.normal(size=(20, 40, 30_000)), dtype=dtype, device="cuda"), ["crps.*", "squared_error.*"]
    for weights in (None, rng.dirichlet(np.ones(20))):
        ensemble = up.EnsemblePrediction.samples(draws, weights=weights)
        table = up.evaluate(ensemble, names)
        here = up.evaluate(up.EnsemblePrediction.samples(draws[..., ::100].cpu(), weights=weights), names, backend="reference")
        for name in here:
            assert table[name].is_cuda
            size = here[name].abs() + 1e-5 * here[f"{name.split('.', maxsplit=1)[0]}.bayes.mixture"]
            assert ((table[name][::100].cpu() - here[name]).abs() <= 2.0 * here.exactness[name].tolerance * size).all(), name


FAMILIES = ["laplace", "logistic", "student_t", "lognormal", "gamma", "weibull", "truncated_gaussian", "beta", "mixture"]


def moved(ensemble: up.EnsemblePrediction, dtype: torch.dtype = torch.float64) -> up.EnsemblePrediction:
    """The same ensemble on the device."""
    members = ensemble.members
    given = {name: torch.tensor(x, dtype=dtype, device="cuda") for name, x in members.stored().items()}
    return up.EnsemblePrediction(type(members).restored(given, members.options()), ensemble.weights)


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families(family: str, rng: np.random.Generator) -> None:
    """One pass over the nodes on a device is the one on a processor, from ordinary to nearly agreeing members."""
    z, gap = rng.normal(size=(3, 4, 200)), 10.0 ** rng.uniform(-9, 0, 200)
    for spread, weights in ((1.0, None), (gap, [0.1, 0.2, 0.3, 0.4])):
        ensemble = up.EnsemblePrediction(BUILD[family](z, spread).members, weights)
        found, expected = up.evaluate(moved(ensemble), backend="fused"), up.evaluate(ensemble, backend="fused")
        errors = host_disagreement({name: x.cpu().numpy() for name, x in found.items()}, expected)
        # Of mixtures that nearly agree two ways keep the eight digits that `exactness` states, each its own.
        assert {n: e for n, e in errors.items() if not e <= (1e-8 if family == "mixture" else 2e-9)} == {}
        assert found.exactness == expected.exactness


def test_other_families_in_single_precision(rng: np.random.Generator) -> None:
    """Computed in double precision and rounded."""
    ensemble = BUILD["student_t"](rng.normal(size=(3, 4, 200)).astype(np.float32).astype(np.float64), 0.5)
    narrow = up.evaluate(moved(ensemble, torch.float32), backend="fused")
    assert narrow["log.bayes.mixture"].dtype == torch.float32
    errors = host_disagreement({name: x.double().cpu().numpy() for name, x in narrow.items()}, up.evaluate(ensemble))
    assert {n: e for n, e in errors.items() if not e <= 2e-4} == {}


def test_gradients_of_other_families(rng: np.random.Generator) -> None:
    """Values by the kernel and gradients by the reference, both on the device."""
    found, wanted = [], ["log.excess.mixture.members", "crps.total.mixture.matched"]
    start = rng.normal(size=(3, 30))
    for backend in ("fused", "reference"):
        location = torch.tensor(start, device="cuda", requires_grad=True)
        scale = torch.ones_like(location, requires_grad=True)
        table = up.evaluate(up.EnsemblePrediction.logistic(location=location, scale=scale), wanted, backend=backend)
        found.append(torch.autograd.grad(sum(table[name].sum() for name in wanted), (location, scale)))
    for fused, reference in zip(*found, strict=True):
        torch.testing.assert_close(fused, reference, rtol=1e-8, atol=1e-12)


def test_more_than_a_thousand_members(rng: np.random.Generator) -> None:
    """Integrals over nodes take the place of pairs."""
    mean, scale = rng.normal(size=(1200, 20)), np.exp(0.3 * rng.normal(size=(1200, 20)))
    given = {name: torch.tensor(x, device="cuda") for name, x in (("mean", mean), ("scale", scale))}
    found = up.evaluate(up.EnsemblePrediction.gaussian(**given, member_axis=0))
    expected = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale, member_axis=0))
    errors = host_disagreement({name: x.cpu().numpy() for name, x in found.items()}, expected)
    assert {n: e for n, e in errors.items() if not e <= 1e-8} == {}


SHAPED = {
    "betas with poles": lambda z: up.EnsemblePrediction.beta(a=0.4 * np.exp(0.3 * z[0]), b=0.7 * np.exp(0.3 * z[1])),
    "betas on another range": lambda z: up.EnsemblePrediction.beta(
        a=2.0 * np.exp(0.3 * z[0]), b=3.0 * np.exp(0.3 * z[1]), low=-1.0, high=2.0
    ),
    "censored": lambda z: up.EnsemblePrediction.censored_gaussian(location=z[0], scale=np.exp(0.3 * z[1]), low=-1.0, high=3.0),
    "counts": lambda z: up.EnsemblePrediction.poisson(rate=10.0 * np.exp(0.3 * z[0])),
    "rare counts": lambda z: up.EnsemblePrediction.poisson(rate=0.2 * np.exp(z[0])),
    "large counts": lambda z: up.EnsemblePrediction.poisson(rate=1e5 * np.exp(0.01 * z[0])),
    "scattered counts": lambda z: up.EnsemblePrediction.negative_binomial(rate=10.0 * np.exp(z[0]), size=3.0 * np.exp(z[1])),
    "mixtures apart": lambda z: up.EnsemblePrediction.gaussian_mixture(
        mean=6.0 * np.stack([z[0], z[1], z[2]], axis=1), scale=np.exp(np.stack([z[1], z[2], z[0]], axis=1))
    ),
    "mixtures with power laws": lambda z: up.EnsemblePrediction(
        up.Mixture(up.StudentT(location=np.stack([z[0], z[1]]), scale=np.exp(0.3 * np.stack([z[1], z[2]])), df=5.0))
    ),
}


def compared(ensemble: up.EnsemblePrediction, tolerance: float, dtype: torch.dtype = torch.float64) -> dict[str, float]:
    """Where the default call on the device differs from the kernels of the processor by more than this."""
    there = moved(ensemble, dtype)
    assert isinstance(choose(there, "auto"), TritonBarsBackend | TritonPointwiseBackend)
    found, expected = up.evaluate(there), up.evaluate(ensemble, backend="fused")
    assert list(found) == list(expected)
    assert all(x.is_cuda and x.dtype == dtype for x in found.values())
    assert dtype != torch.float64 or found.exactness == expected.exactness
    errors = host_disagreement({name: x.double().cpu().numpy() for name, x in found.items()}, expected)
    return {name: error for name, error in errors.items() if not error <= tolerance}


@pytest.mark.parametrize("kind", SHAPED)
def test_bounds_counts_and_mixtures(kind: str, rng: np.random.Generator) -> None:
    """As the kernels of the processor, also for points that the kernels of the device decline."""
    ensemble = SHAPED[kind](rng.normal(size=(3, 4, 200)))
    assert compared(ensemble, 2e-9) == {}
    assert compared(up.EnsemblePrediction(ensemble.members, [0.1, 0.2, 0.3, 0.4]), 2e-9) == {}


def test_mixtures_in_single_precision(rng: np.random.Generator) -> None:
    """Computed in double precision and rounded."""
    mean, scale = rng.normal(size=(4, 2, 200)).astype(np.float32), np.ones((4, 2, 200), np.float32)
    mixed = up.EnsemblePrediction.gaussian_mixture(mean=3.0 * mean.astype(np.float64), scale=scale.astype(np.float64))
    assert compared(mixed, 2e-4, torch.float32) == {}


@pytest.mark.parametrize("case", oracles.CASES, ids=oracles.identifier)
def test_bars_are_the_sums_with_fifty_digits(case: dict) -> None:
    ensemble = moved(oracles.ensemble(case))
    table = up.evaluate(ensemble, backend="fused")
    found = oracles.errors({name: x.cpu().numpy() for name, x in table.items()}, case["values"])
    assert {name: error for name, error in found.items() if not error <= 1e-10} == {}


def bars(rng: np.random.Generator, kind: str, points: int = 300, members: int = 4) -> up.EnsemblePrediction:
    """Bars and quantiles of every kind."""
    what, tails = kind.split(" ")
    outer = None if tails == "none" else tails
    if what == "quantiles":
        levels = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
        values = np.sort(rng.normal(size=(members, len(levels), points)), axis=1)
        return up.EnsemblePrediction.quantiles(levels=levels, values=values, tails=tails)
    mass = rng.dirichlet(np.ones(20), size=(members, points)).transpose(0, 2, 1)
    edges = np.linspace(-3.0, 3.0, 21)
    if what == "own":
        edges = np.sort(rng.normal(size=(members, 21, points)), axis=1)
    return up.EnsemblePrediction.histogram(edges=edges, probabilities=mass, outer=outer)


@pytest.mark.parametrize("tails", ["none", "exponential", "gaussian"])
@pytest.mark.parametrize("what", ["shared", "own", "quantiles"])
def test_bars(what: str, tails: str, rng: np.random.Generator) -> None:
    """As the kernel of the processor, with equal and other weights."""
    ensemble = bars(rng, f"{what} {tails if what == 'quantiles' else tails.replace('gaussian', 'half_normal')}")
    assert compared(ensemble, 2e-9) == {}
    assert compared(up.EnsemblePrediction(ensemble.members, [0.1, 0.2, 0.3, 0.4]), 2e-9) == {}


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("tails", ["none", "half_normal"])
def test_bars_that_nearly_agree(gap: float, tails: str, rng: np.random.Generator) -> None:
    mass = rng.dirichlet(np.ones(20), size=200).T * (1.0 + gap * rng.uniform(-1, 1, size=(4, 20, 200)))
    outer = None if tails == "none" else tails
    ensemble = up.EnsemblePrediction.histogram(
        edges=np.linspace(-3.0, 3.0, 21), probabilities=mass / mass.sum(axis=1, keepdims=True), outer=outer
    )
    assert compared(ensemble, 1e-7 if gap < 1e-8 else 2e-9) == {}


def test_bars_in_single_precision_and_in_parts(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Computed in double precision and rounded; points in parts are the same points."""
    ensemble = bars(rng, "shared none")
    whole = up.evaluate(moved(ensemble))
    monkeypatch.setattr("uqprism.backends.triton.bars.MOST", 84 * 70)
    parts = up.evaluate(moved(ensemble))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    narrow = up.evaluate(moved(ensemble, torch.float32))
    assert narrow["log.bayes.mixture"].dtype == torch.float32
    errors = host_disagreement({name: x.double().cpu().numpy() for name, x in narrow.items()}, up.evaluate(ensemble))
    assert {n: e for n, e in errors.items() if not e <= 2e-4} == {}


def test_gradients_of_bars() -> None:
    """Values by the kernel and gradients by the reference, of probabilities and of edges that all share."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    logits = torch.randn(3, 5, 30, device="cuda", dtype=torch.float64, generator=generator)
    found = []
    for backend in ("fused", "reference"):
        start = logits.clone().requires_grad_()
        ensemble = up.EnsemblePrediction.histogram(
            edges=torch.linspace(-2.0, 2.0, 6, device="cuda", dtype=torch.float64), probabilities=torch.softmax(start, 1)
        )
        table = up.evaluate(ensemble, ["crps.excess.members.members", "log.bayes.mixture"], backend=backend)
        found.append(torch.autograd.grad(sum(x.sum() for x in table.values()), start)[0])
    torch.testing.assert_close(*found, rtol=1e-8, atol=1e-12)
