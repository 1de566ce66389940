"""Histograms and quantiles as distributions: everything against direct integration of their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.integrate import quad

import uqprism as up
from tests.conftest import as_array
from uqprism.families import Histogram, Quantiles

LEVELS = np.array([0.05, 0.3, 0.5, 0.9])


def bars(outer: str | None = None, shape: tuple[int, ...] = (3,), library: str = "numpy", seed: int = 0) -> Histogram:
    """Six bars of random widths, one of them without probability."""
    rng = np.random.default_rng(seed)
    edges = np.cumsum(rng.uniform(0.2, 1.0, size=(7, *shape)), axis=0) - 2.0
    mass = rng.gamma(1.0, size=(6, *shape))
    mass[2] = 0.0
    return Histogram(as_array(library, edges), as_array(library, mass / mass.sum(axis=0)), outer=outer)


def quantiles(tails: str = "exponential", shape: tuple[int, ...] = (3,), library: str = "numpy", seed: int = 0) -> Quantiles:
    values = np.sort(np.random.default_rng(seed).normal(size=(4, *shape)), axis=0)
    return Quantiles(LEVELS, as_array(library, values), tails=tails)


KINDS = {
    "bars": bars,
    "half-normal": lambda **how: bars("half_normal", **how),
    "exponential": lambda **how: bars("exponential", **how),
    "quantiles": quantiles,
    "gaussian tails": lambda **how: quantiles("gaussian", **how),
    "no tails": lambda **how: quantiles("none", **how),
}


def integral(function, d: Histogram, *more: float) -> float:
    """The integral over all that counts, in pieces between the edges."""
    edges = sorted({*map(float, d.edges), *more})
    far = 40.0 * (edges[-1] - edges[0])
    pieces = [edges[0] - far, edges[0] - 0.1 * far, *edges, edges[-1] + 0.1 * far, edges[-1] + far]
    return sum(quad(function, a, b, epsabs=1e-13, epsrel=1e-11, limit=400)[0] for a, b in itertools.pairwise(pieces))


def single(batch: Histogram, index: int) -> Histogram:
    return batch.map(lambda x: x[..., index])


@pytest.mark.parametrize("kind", KINDS)
def test_moments_and_distribution_follow_from_the_definition(kind: str) -> None:
    batch = KINDS[kind]()
    for index in range(3):
        d, y = single(batch, index), 0.3 * index - 0.5
        mean = integral(lambda t, d=d: float(d.survival(t)) - (t < 0.0), d, 0.0)
        assert_allclose(batch.mean[index], mean, rtol=1e-9, atol=1e-10)
        square = integral(lambda t, d=d, m=mean: 2.0 * abs(t - m) * float(d.survival(t) if t > m else d.cdf(t)), d, mean)
        assert_allclose(batch.variance[index], square, rtol=1e-9)
        deviation = integral(lambda t, d=d, y=y: float(d.survival(t) if t > y else d.cdf(t)), d, y)
        assert_allclose(batch.absolute_deviation(y)[index], deviation, rtol=1e-9)
        assert_allclose(batch.cdf(y) + batch.survival(y), 1.0, rtol=1e-14)
        if kind != "no tails":
            assert_allclose(integral(d.density, d), 1.0, rtol=1e-10)
            for level in (0.02, 0.37, 0.97):
                assert_allclose(d.cdf(d.quantile(level)), level, rtol=1e-12)


def test_half_of_an_outer_bar_lies_within_its_width() -> None:
    """As in TabPFN's `FullSupportBarDistribution`, whose outer bars are half-normal."""
    d = bars("half_normal", shape=())
    scale = float(d.edges[1] - d.edges[0]) / scipy.stats.halfnorm.ppf(0.5)
    outside = scipy.stats.halfnorm(scale=scale)
    for y in float(d.edges[1]) - np.array([0.1, 0.7, 3.0]):
        assert_allclose(d.log_density(y), outside.logpdf(float(d.edges[1]) - y) + np.log(d.probabilities[0]), rtol=1e-12)
        assert_allclose(d.cdf(y), outside.sf(float(d.edges[1]) - y) * d.probabilities[0], rtol=1e-12)
    for outer in ("half_normal", "exponential"):
        d = bars(outer, shape=())
        assert_allclose(d.survival(d.edges[-1]), 0.5 * d.probabilities[-1], rtol=1e-12)


def test_exponential_tails_continue_the_outermost_density() -> None:
    d = quantiles(shape=())
    for edge, inward in ((d.values[0], 1e-12), (d.values[-1], -1e-12)):
        assert_allclose(d.density(edge - inward), d.density(edge + inward), rtol=1e-9)


def test_gaussian_tails_are_those_of_the_gaussian_through_two_values() -> None:
    law = scipy.stats.norm(1.0, 2.0)
    d = Quantiles(LEVELS, law.ppf(LEVELS), tails="gaussian")
    far = np.array([-8.0, -3.0, 6.0, 9.0])
    assert_allclose([d.cdf(y) for y in far], law.cdf(far), rtol=1e-11)
    assert_allclose([d.log_density(y) for y in far], law.logpdf(far), rtol=1e-12)
    assert_allclose(d.quantile(0.001), law.ppf(0.001), rtol=1e-12)


def test_values_of_one_point_have_its_probability() -> None:
    """Without tails, and where values coincide, the distribution function jumps."""
    d = Quantiles([0.1, 0.4, 0.6, 0.8], [1.0, 2.0, 2.0, 3.0], tails="none")
    assert_allclose([d.cdf(y) for y in (0.99, 1.0, 1.999999999, 2.0, 3.0)], [0.0, 0.1, 0.4, 0.6, 1.0], rtol=1e-8)
    assert d.quantile(0.05) == 1.0
    assert d.quantile(0.5) == 2.0
    assert d.quantile(0.95) == 3.0


def test_what_cannot_be_bars_is_refused() -> None:
    edges, mass = [0.0, 1.0, 2.0], [0.4, 0.6]
    for message, given in {
        "one more than bars": {"edges": [0.0, 1.0]},
        "edges must increase": {"edges": [0.0, 1.0, 1.0]},
        "edges must be finite": {"edges": [0.0, 1.0, np.inf]},
        "sum to one": {"probabilities": [0.4, 0.7]},
        "finite and not negative, got -0.1 at index": {"probabilities": [1.1, -0.1]},
        "got nan at index": {"probabilities": [np.nan, 0.6]},
        "did you mean 'half_normal'": {"outer": "half-normal"},
    }.items():
        with pytest.raises(up.UqprismError, match=message):
            Histogram(**{"edges": edges, "probabilities": mass} | given)
    with pytest.raises(up.UqprismError, match="two bars"):
        Histogram([0.0, 1.0], [1.0], outer="half_normal")
    for message, levels in {"different probabilities": [0.1, 0.1], "from 0 to 1": [0.1, 1.1], "at least two": [0.5]}.items():
        with pytest.raises(up.UqprismError, match=message):
            Quantiles(levels, np.zeros(len(levels)))


def test_crossing_values_are_sorted_counted_and_said() -> None:
    values = np.array([[0.0, 0.0, 1.0], [1.0, -1.0, 0.0], [2.0, 2.0, 2.0]])
    with pytest.warns(UserWarning, match="crossed in 2 of 3 predictions"):
        d = Quantiles([0.1, 0.5, 0.9], values)
    assert (d.values == np.sort(values, axis=0)).all()


def test_levels_may_come_in_any_order() -> None:
    d = Quantiles([0.5, 0.9, 0.1], np.array([[1.0], [3.0], [0.0]]))
    assert d.levels == (0.1, 0.5, 0.9)
    assert d.values[:, 0].tolist() == [0.0, 1.0, 3.0]


@pytest.mark.parametrize("kind", KINDS)
def test_libraries_agree(kind: str, library: str) -> None:
    ours, theirs = KINDS[kind](), KINDS[kind](library=library)
    y = as_array(library, [[-2.0], [0.1], [1.5]])
    for name in ("cdf", "survival", "absolute_deviation", *(["log_density"] if kind != "no tails" else [])):
        assert_allclose(np.asarray(getattr(theirs, name)(y)), getattr(ours, name)(np.asarray(y)), rtol=1e-12, atol=1e-14)
    assert type(theirs.mean) is type(y)
    assert_allclose(np.asarray(theirs.quantile(0.8)), ours.quantile(0.8), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_affine_is_the_distribution_of_the_transformed_variable(kind: str) -> None:
    d = KINDS[kind]()
    moved, y = d.affine(3.0, 2.0), np.array([-1.0, 0.3, 2.0])
    assert_allclose(moved.cdf(3.0 + 2.0 * y), d.cdf(y), rtol=1e-12)
    assert_allclose(moved.relative_to(3.0, 2.0).variance, d.variance, rtol=1e-12)


@pytest.mark.parametrize("outer", [None, "half_normal"])
def test_axes_of_members_bars_and_edges(outer: str | None) -> None:
    rng = np.random.default_rng(0)
    mass = rng.dirichlet(np.ones(5), size=(3, 4))  # (members, points, bars)
    edges = np.sort(rng.normal(size=6))
    usual = up.EnsemblePrediction.histogram(edges=edges, probabilities=np.moveaxis(mass, -1, 1), outer=outer)
    last = up.EnsemblePrediction.histogram(edges=edges, probabilities=mass, bar_axis=-1, outer=outer)
    by_point = up.EnsemblePrediction.histogram(
        edges=np.repeat(edges[:, None], 4, axis=1), probabilities=np.moveaxis(mass, -1, 1), outer=outer
    )
    own = up.EnsemblePrediction.histogram(edges=np.broadcast_to(edges, (3, 4, 6)), probabilities=mass, bar_axis=-1, outer=outer)
    for ens in (usual, last, by_point, own):
        assert (ens.n_members, ens.points_shape) == (3, (4,))
        assert_allclose(ens.members.mean, usual.members.mean, rtol=1e-14)
        assert_allclose(up.decompose(ens).excess, up.decompose(usual).excess, rtol=1e-9)
    with pytest.raises(up.UqprismError, match="member_axis and bar_axis must differ"):
        up.EnsemblePrediction.histogram(edges=edges, probabilities=mass, bar_axis=0)


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_joining_change_nothing(kind: str, tmp_path) -> None:
    ens = up.EnsemblePrediction(KINDS[kind](shape=(2, 3)), [0.25, 0.75])
    ens.save(tmp_path / "p.npz")
    read = up.EnsemblePrediction.load(tmp_path / "p.npz")
    joined = up.EnsemblePrediction.concatenate([ens[:1], ens[1:]])
    for other in (read, joined):
        assert type(other.members) is type(ens.members)
        assert other.members.options() == ens.members.options()
        for ours, theirs in zip(ens.members.arrays(), other.members.arrays(), strict=True):
            assert (ours == theirs).all()
    other = up.EnsemblePrediction(KINDS["quantiles" if kind != "quantiles" else "no tails"](shape=(2, 3)), [0.25, 0.75])
    with pytest.raises(up.UqprismError, match=r"agree|the same levels"):
        up.EnsemblePrediction.concatenate([ens, other])


def test_edges_that_all_share_are_kept_once(tmp_path) -> None:
    mass = np.random.default_rng(0).dirichlet(np.ones(50), size=(3, 40)).transpose(0, 2, 1)
    ens = up.EnsemblePrediction.histogram(edges=np.linspace(0.0, 1.0, 51), probabilities=mass)
    joined = up.EnsemblePrediction.concatenate([ens, ens])
    assert joined.members.stored()["edges"].shape == (51, 1, 1)
    ens.save(tmp_path / "p.npz")
    assert up.EnsemblePrediction.load(tmp_path / "p.npz").members.stored()["edges"].shape == (51, 1, 1)


def test_quantiles_without_tails_refuse_rules_that_need_a_density() -> None:
    ens = up.EnsemblePrediction(quantiles("none", shape=(2, 3)))
    assert (up.decompose(ens, rule="crps").excess > 0.0).all()
    for rule in ("log", "quadratic"):
        with pytest.raises(up.UqprismError, match=r"no density.*below level 0.05"):
            up.decompose(ens, rule=rule)
