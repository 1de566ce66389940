"""What must hold of every registered family, checked by direct integration of the definitions with SciPy and mpmath."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.integrate import quad

import uqprism as up
from tests.conftest import as_array
from uqprism.families import families
from uqprism.families.functionals import absolute_gap, cramer_distance, cross_entropy, density_distance, overlap, relative_entropy
from uqprism.families.quadrature import grid_over

SHAPES = [(), (5,), (3, 4)]
# Tested in files of their own: families with an axis of their own before the batch, and those that have more than a density.
APART = {"censored_gaussian", "draws", "histogram", "mixture", "quantiles", "poisson", "negative_binomial"}
SMOOTH = [name for name in families.names() if name not in APART]
SCIPY = {
    "gaussian": lambda d: scipy.stats.norm(d.mean, d.scale),
    "laplace": lambda d: scipy.stats.laplace(d.location, d.scale),
    "logistic": lambda d: scipy.stats.logistic(d.location, d.scale),
    "student_t": lambda d: scipy.stats.t(d.df, d.location, d.scale),
    "lognormal": lambda d: scipy.stats.lognorm(d.log_scale, scale=np.exp(d.log_mean)),
    "gamma": lambda d: scipy.stats.gamma(d.shape, scale=d.scale),
    "weibull": lambda d: scipy.stats.weibull_min(d.shape, scale=d.scale),
    "truncated_gaussian": lambda d: scipy.stats.truncnorm(
        (d.low - d.location) / d.scale, (d.high - d.location) / d.scale, d.location, d.scale
    ),
    "beta": lambda d: scipy.stats.beta(d.a, d.b, d.low, d.high - d.low),
}


def between(low: float, high: float):
    return lambda rng, shape: rng.uniform(low, high, size=shape)


ENDS = {"low": lambda _, shape: np.full(shape, -2.0), "high": lambda _, shape: np.full(shape, 4.0)}
BETWEEN = {  # families with bounds, which are the same for all, so that none rules out what another expects
    "beta": {
        "a": between(1.2, 6.0),
        "b": between(1.2, 6.0),
        **ENDS,
    },
    # No steeper: a lognormal has moments of all orders, but integrals over it reach as far as the second.
    "weibull": {"shape": between(1.2, 2.0), "scale": between(0.5, 2.0)},
    "truncated_gaussian": {"location": between(-3.0, 5.0), "scale": between(0.5, 3.0), **ENDS},
}


def make(name: str, shape: tuple[int, ...], seed: int = 0, library: str = "numpy"):
    """A batch of this family with random parameters, of any family whose parameters say what they are."""
    rng = np.random.default_rng(seed)
    draw = {
        "location": lambda: rng.normal(size=shape),
        "scale": lambda: np.exp(0.4 * rng.normal(size=shape)),
        "shape": lambda: rng.uniform(3.0, 9.0, size=shape),
        "variance": lambda: np.exp(0.8 * rng.normal(size=shape)),
    }
    if name in BETWEEN:
        return families.get(name)(**{key: as_array(library, f(rng, shape)) for key, f in BETWEEN[name].items()})
    kinds = {"mean": "location", "scale": "scale"} if name == "gaussian" else families.get(name).arguments()
    return families.get(name)(**{key: as_array(library, draw[kind]()) for key, kind in kinds.items()})


def integral(function, *distributions) -> float:
    """The integral over the real line by SciPy, told where the distributions sit."""
    centres = sorted({float(d.centre) for d in distributions})
    edges = [centres[0] - 3.0, *centres, centres[-1] + 3.0]
    for d in distributions:
        if d.support[0] is not None:
            edges += [float(d.support[0] + k * d.spread) for k in (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)]
        if d.support[1] is not None:
            edges += [float(d.support[1] - k * d.spread) for k in (0.0, 0.01, 0.1, 1.0)]
    edges = [-math.inf, *sorted(edges), math.inf]
    return sum(quad(function, a, b, epsabs=1e-12, epsrel=1e-10, limit=400)[0] for a, b in itertools.pairwise(edges))


def each(*batches):
    """The single distributions of equally shaped batches, with their index."""
    for index in np.ndindex(*batches[0].batch_shape):
        yield index, *(b.map(lambda x, index=index: np.asarray(x[index])) for b in batches)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("shape", SHAPES)
def test_moments_and_distribution_follow_from_the_density(name: str, shape: tuple[int, ...]) -> None:
    batch = make(name, shape)
    y = np.random.default_rng(1).normal(size=shape) + (0.0 if batch.support[0] is None else 3.0)
    for index, d in each(batch):
        assert_allclose(integral(d.density, d), 1.0, rtol=1e-9)
        assert_allclose(integral(lambda t, d=d: t * d.density(t), d), batch.mean[index], rtol=1e-8, atol=1e-9)
        mean = float(d.mean)
        assert_allclose(integral(lambda t, d=d, m=mean: (t - m) ** 2 * d.density(t), d), batch.variance[index], rtol=1e-6)
        point = float(y[index])
        below = integral(lambda t, d=d, p=point: d.density(t) * (t <= p), d, up.Gaussian(mean=point, scale=1.0))
        assert_allclose(batch.cdf(y)[index], below, rtol=1e-8)
        assert_allclose(d.cdf(d.quantile(0.3)), 0.3, rtol=1e-12)
        deviation = integral(lambda t, d=d, p=point: abs(t - p) * d.density(t), d, up.Gaussian(mean=point, scale=1.0))
        assert_allclose(batch.absolute_deviation(y)[index], deviation, rtol=1e-8)


@pytest.mark.parametrize("name", SCIPY)
def test_agrees_with_scipy(name: str) -> None:
    d = make(name, (6,))
    y, truth = np.linspace(-4.0, 5.0, 6), SCIPY[name](d)
    assert_allclose(d.log_density(y), truth.logpdf(y), rtol=1e-12)
    assert_allclose(d.survival(y), truth.sf(y), rtol=1e-9)
    assert_allclose(d.cdf(y), truth.cdf(y), rtol=1e-11)
    assert_allclose(d.quantile(0.05), truth.ppf(0.05), rtol=1e-10)
    assert_allclose(d.variance, truth.var(), rtol=1e-12)


FUNCTIONALS = {
    absolute_gap: lambda p, q: lambda t: p.cdf(t) * q.survival(t) + q.cdf(t) * p.survival(t),
    overlap: lambda p, q: lambda t: p.density(t) * q.density(t),
    cramer_distance: lambda p, q: lambda t: (p.cdf(t) - q.cdf(t)) ** 2,
    density_distance: lambda p, q: lambda t: (p.density(t) - q.density(t)) ** 2,
    cross_entropy: lambda p, q: lambda t: -p.density(t) * q.log_density(t) if p.density(t) > 0.0 else 0.0,
    relative_entropy: lambda p, q: lambda t: p.density(t) * (p.log_density(t) - q.log_density(t)) if p.density(t) > 0.0 else 0.0,
}


def rules_out(prediction, truth) -> np.ndarray:
    """Where the truth lies outside bounds of the prediction with a probability that counts."""
    low, high = prediction.support
    outside = np.zeros(truth.batch_shape)
    outside = outside if low is None else outside + truth.cdf(low)
    return (outside if high is None else outside + truth.survival(high)) > 1e-12


@pytest.mark.parametrize("functional", FUNCTIONALS, ids=lambda f: f.__name__.strip("_"))
@pytest.mark.parametrize("other", SMOOTH)
@pytest.mark.parametrize("name", SMOOTH)
def test_functionals_against_their_integrals(name: str, other: str, functional) -> None:
    """Closed form or quadrature, each functional of each pair of families is the integral that defines it."""
    p, q = make(name, (3,), 1), make(other, (3,), 2)
    values = functional(p, q)
    infinite = rules_out(q, p) & (functional in (cross_entropy, relative_entropy))
    assert np.isinf(values[infinite]).all()
    for index, a, b in each(p, q):
        if infinite[index]:
            continue
        assert_allclose(values[index], integral(FUNCTIONALS[functional](a, b), a, b), rtol=2e-8)


@pytest.mark.parametrize("name", SMOOTH)
def test_broadcasting(name: str) -> None:
    """A column against a row is a table of pairs."""
    p, q = make(name, (3, 1), 1), make(name, (1, 4), 2)
    values = cramer_distance(p, q)
    assert values.shape == (3, 4)
    single = cramer_distance(p.map(lambda x: x[2]), q.map(lambda x: x[:, 3]))
    assert_allclose(values[2, 3], single[0], rtol=1e-10)


def test_batches_of_different_rank_broadcast_from_the_right() -> None:
    """One mixture or one set of samples against a row of Gaussians: each entry is its own pair."""
    row = up.Gaussian(mean=np.arange(5.0), scale=np.ones(5))
    for single in (up.Mixture(up.Gaussian(mean=np.linspace(0.0, 1.0, 5), scale=np.ones(5))), up.Draws(np.linspace(-1.0, 1.0, 5))):
        for rule in (up.rules.CRPS(), up.rules.from_score("mine", up.rules.CRPS().score)):
            for call in ("expected_score", "divergence"):
                both = [getattr(rule, call)(prediction=row, truth=single), getattr(rule, call)(prediction=single, truth=row)]
                for i in range(5):
                    one = up.Gaussian(mean=float(i), scale=1.0)
                    assert_allclose(both[0][i], getattr(rule, call)(prediction=one, truth=single), rtol=1e-6, atol=1e-9)
                    assert_allclose(both[1][i], getattr(rule, call)(prediction=single, truth=one), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("freedom", [0.7, 1.0, 1.5, 2.0, 30.0, 1e6])
def test_student_t_quantiles_far_into_heavy_tails(freedom: float, library: str) -> None:
    d = up.StudentT(location=as_array(library, [1.0]), scale=as_array(library, [2.0]), df=as_array(library, [freedom]))
    for level in (0.001, 0.3, 0.9):
        assert_allclose(float(d.quantile(level)[0]), scipy.stats.t.ppf(level, freedom, 1.0, 2.0), rtol=1e-8)


def test_what_has_no_mean_has_no_crps() -> None:
    cauchy = up.StudentT(location=0.0, scale=1.0, df=1.0)
    assert up.rules.CRPS().entropy(cauchy) == np.inf
    other = up.StudentT(location=1.0, scale=1.0, df=1.0)
    gap = up.rules.CRPS().divergence(prediction=other, truth=cauchy)
    assert_allclose(gap, quad(lambda t: (cauchy.cdf(t) - other.cdf(t)) ** 2, -np.inf, np.inf, epsabs=1e-12)[0], rtol=1e-8)


@pytest.mark.parametrize("name", SMOOTH)
def test_libraries_agree(name: str, library: str) -> None:
    """Whatever the array library, the same numbers."""
    p, q = make(name, (4,), 1, library), make(name, (4,), 2, library)
    a, b = make(name, (4,), 1), make(name, (4,), 2)
    for functional in (cramer_distance, density_distance, relative_entropy):
        value = functional(p, q)
        assert type(value) is type(next(iter(p.arrays())))
        assert_allclose(np.asarray(value), functional(a, b), rtol=1e-9)
    assert_allclose(np.asarray(p.cdf(as_array(library, 0.3))), a.cdf(0.3), rtol=1e-11)
    assert_allclose(np.asarray(p.quantile(0.8)), a.quantile(0.8), rtol=1e-9)
    assert_allclose(np.asarray(p.absolute_deviation(as_array(library, 0.3))), a.absolute_deviation(0.3), rtol=1e-10)


def test_grids_in_jax_have_few_lengths() -> None:
    """JAX compiles anew for each shape: behind the nodes that NumPy has, empty panels make grids of different data alike."""
    counts, lengths = set(), set()
    for ratio in (1.0, 3.0, 10.0):
        theirs, ours = (
            grid_over(*(up.Gaussian(mean=as_array(kind, [0.0]), scale=as_array(kind, [x])) for x in (1.0, ratio)))
            for kind in ("jax", "numpy")
        )
        count = len(ours.nodes)
        assert_allclose(theirs.nodes[:count], ours.nodes, rtol=1e-14, atol=1e-14)
        assert_allclose(theirs.weights[:count], ours.weights, rtol=1e-13)
        assert not np.asarray(theirs.weights[count:]).any()
        counts.add(count)
        lengths.add(len(theirs.nodes))
    assert len(counts) == 3
    assert lengths == {12 * 32}


NEAR = {
    "gaussian": lambda mp, m, s, n, t: (
        (mp.log(n / s) * 2 - 1 + (s**2 + (m - t) ** 2) / n**2) / 2,
        mp.sqrt(2 * (s**2 + n**2) / mp.pi) * mp.exp(-((m - t) ** 2) / (2 * (s**2 + n**2)))
        + (m - t) * mp.erf((m - t) / mp.sqrt(2 * (s**2 + n**2)))
        - (s + n) / mp.sqrt(mp.pi),
    ),
    "laplace": lambda mp, m, s, n, t: (
        mp.log(n / s) + abs(m - t) / n + s / n * mp.exp(-abs(m - t) / s) - 1,
        abs(m - t) + (s**3 * mp.exp(-abs(m - t) / s) - n**3 * mp.exp(-abs(m - t) / n)) / (s**2 - n**2) - mp.mpf(3) / 4 * (s + n),
        1 / (4 * s) + 1 / (4 * n) - (s * mp.exp(-abs(m - t) / s) - n * mp.exp(-abs(m - t) / n)) / (s**2 - n**2),
    ),
}


@pytest.mark.parametrize("gap", [1e-1, 1e-3, 1e-4, 1e-6, 1e-8, 1e-9])
@pytest.mark.parametrize("name", NEAR)
def test_nearly_equal_distributions_keep_their_digits(name: str, gap: float) -> None:
    """Divergences of order gap**2 are relatively exact, where the printed formulas keep nothing."""
    import mpmath as mp

    centre = next(iter(families.get(name).parameters))
    p = families.get(name)(**{centre: np.array(0.7), "scale": np.array(1.3)})
    q = families.get(name)(**{centre: np.array(0.7 + gap), "scale": np.array(1.3 * (1.0 - gap))})
    with mp.workdps(60):
        given = [mp.mpf(float(x)) for x in (p.centre, p.scale, q.scale, q.centre)]
        for functional, truth in zip((relative_entropy, cramer_distance, density_distance), NEAR[name](mp, *given), strict=False):
            assert_allclose(float(functional(p, q)), float(truth), rtol=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_affine_is_the_distribution_of_the_transformed_variable(name: str) -> None:
    d = make(name, (4,))
    moved = d.affine(3.0, 2.0)
    y = np.linspace(-2.0, 4.0, 4)
    assert_allclose(moved.cdf(3.0 + 2.0 * y), d.cdf(y), rtol=1e-12)
    assert_allclose(moved.relative_to(3.0, 2.0).cdf(y), d.cdf(y), rtol=1e-12)


class Triangular(up.families.Family):
    """A family with nothing but the five things DESIGN asks for, to show that they suffice."""

    name = "triangular"
    parameters = {"location": "location", "scale": "scale"}  # noqa: RUF012

    def __init__(self, *, location, scale, check=True) -> None:
        super().__init__(check=check, location=location, scale=scale)

    @property
    def mean(self):
        return self.location

    @property
    def variance(self):
        return self.scale**2 / 6.0

    def log_density(self, y):
        height = 1.0 - np.abs(y - self.location) / self.scale
        return np.where(height > 0, np.log(np.maximum(height, 1e-300) / self.scale), -690.0)

    def cdf(self, y):
        z = np.clip((y - self.location) / self.scale, -1.0, 1.0)
        return 0.5 + z - 0.5 * z * np.abs(z)

    def quantile(self, level):
        z = np.where(np.asarray(level) < 0.5, np.sqrt(2.0 * level) - 1.0, 1.0 - np.sqrt(2.0 * (1.0 - level)))
        return self.location + self.scale * z


def test_a_minimal_family_works_by_quadrature() -> None:
    d = Triangular(location=np.array([0.0, 1.0]), scale=np.array([1.0, 2.0]))
    assert_allclose(up.rules.CRPS().entropy(d), np.array([1.0, 2.0]) * 7.0 / 30.0, rtol=1e-4)
    ens = up.EnsemblePrediction(Triangular(location=np.zeros((2, 3)), scale=np.array([[1.0] * 3, [2.0] * 3])))
    risks = up.decompose(ens, rule="crps")
    assert_allclose(risks.total, risks.bayes + risks.excess, rtol=1e-12)
    assert (risks.excess > 0).all()


def test_blurred_distributions_move_with_their_noise() -> None:
    from uqprism.families.smoothed import Smoothed

    blurred = Smoothed(up.Laplace(location=np.array([1.0, -2.0]), scale=np.array([1.0, 0.5])), 4.0)
    moved, y = blurred.relative_to(np.array(3.0), np.array(2.0)), np.array([0.5, -1.0])
    assert_allclose(moved.variance, blurred.variance / 4.0)
    assert_allclose(moved.density(y), 2.0 * blurred.density(3.0 + 2.0 * y), rtol=1e-7)
    assert_allclose(moved.affine(np.array(3.0), np.array(2.0)).noise, blurred.noise)
