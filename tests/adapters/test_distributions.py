"""Distribution objects of other libraries: their own log density and distribution function are the members'."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy.stats
import torch
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.errors import ArgumentError, ShapeError, UnsupportedError
from uqprism.families import families

RNG = np.random.default_rng(3)
LOC, SCALE, DF = RNG.normal(size=5), np.exp(RNG.normal(size=5)), 2.5 + RNG.uniform(size=5)
Y = RNG.normal(size=5)

SCIPY = {
    "gaussian": scipy.stats.norm(LOC, scale=SCALE),
    "laplace": scipy.stats.laplace(loc=LOC, scale=SCALE),
    "logistic": scipy.stats.logistic(LOC, SCALE),
    "student_t": scipy.stats.t(DF, LOC, SCALE),
}


@pytest.mark.parametrize("family", SCIPY)
def test_frozen_distributions_of_scipy(family: str) -> None:
    members = up.from_model(SCIPY[family]).members
    assert (members.name, members.batch_shape) == (family, (1, 5))
    assert_allclose(members.log_density(Y)[0], SCIPY[family].logpdf(Y), rtol=1e-12)
    assert_allclose(members.variance[0], SCIPY[family].var(), rtol=1e-12)


def test_other_forms_of_scipy() -> None:
    """Named or unnamed arguments, defaults, the shapes of points, and the newer classes."""
    assert_allclose(up.from_model(scipy.stats.t(loc=LOC, df=3.0)).members.log_density(Y)[0], scipy.stats.t(3.0, LOC).logpdf(Y))
    assert up.from_model(scipy.stats.norm()).points_shape == ()
    assert up.from_model(scipy.stats.norm(np.zeros((2, 1)), np.ones(3))).points_shape == (2, 3)
    for given in (scipy.stats.Normal(mu=LOC, sigma=SCALE), scipy.stats.norm(LOC, SCALE)):
        assert_allclose(up.from_model(given).members.scale[0], SCALE)
    assert_allclose(up.from_model(scipy.stats.Normal()).members.scale, [1.0])
    cauchy = up.from_model(scipy.stats.cauchy(LOC, SCALE)).members
    assert_allclose(cauchy.log_density(Y)[0], scipy.stats.cauchy(LOC, SCALE).logpdf(Y))


def test_a_list_of_distributions_is_an_ensemble() -> None:
    ens = up.from_model([scipy.stats.norm(LOC, SCALE), scipy.stats.norm(LOC + 1.0, SCALE)])
    expected = up.EnsemblePrediction.gaussian(mean=[LOC, LOC + 1.0], scale=[SCALE, SCALE])
    assert_allclose(up.decompose(ens).total, up.decompose(expected).total)


TORCH = {
    "Normal": lambda *x: torch.distributions.Normal(*x[:2]),
    "Laplace": lambda *x: torch.distributions.Laplace(*x[:2]),
    "StudentT": lambda loc, scale, df: torch.distributions.StudentT(df, loc, scale),
    "Cauchy": lambda *x: torch.distributions.Cauchy(*x[:2]),
}


@pytest.mark.parametrize("kind", TORCH)
def test_distributions_of_torch_keep_their_gradients(kind: str) -> None:
    loc = torch.tensor(LOC, requires_grad=True)
    given = TORCH[kind](loc, torch.tensor(SCALE), torch.tensor(DF))
    for distribution in (given, torch.distributions.Independent(given, 1)):
        members = up.from_model(distribution).members
        torch.testing.assert_close(members.log_density(torch.tensor(Y))[0], given.log_prob(torch.tensor(Y)))
        assert members.centre.requires_grad


COUNTS = np.array([0.0, 1.0, 2.0, 5.0, 9.0])
SHARES = np.array([0.01, 0.2, 0.5, 0.9, 0.99])
POSITIVE = np.array([0.1, 0.5, 1.0, 2.5, 7.0])
SHAPED = {  # the family, and the distribution with the same numbers in SciPy and in PyTorch
    "lognormal": (scipy.stats.lognorm(0.7, scale=np.exp(LOC)), lambda: torch.distributions.LogNormal(TENSORS[0], 0.7)),
    "gamma": (scipy.stats.gamma(DF, scale=SCALE), lambda: torch.distributions.Gamma(TENSORS[2], 1.0 / TENSORS[1])),
    "exponential": (scipy.stats.expon(scale=SCALE), lambda: torch.distributions.Exponential(1.0 / TENSORS[1])),
    "weibull": (scipy.stats.weibull_min(DF, scale=SCALE), lambda: torch.distributions.Weibull(TENSORS[1], TENSORS[2])),
    "beta": (scipy.stats.beta(DF, SCALE), lambda: torch.distributions.Beta(TENSORS[2], TENSORS[1])),
    "half normal": (scipy.stats.halfnorm(scale=SCALE), lambda: torch.distributions.HalfNormal(TENSORS[1])),
    "poisson": (scipy.stats.poisson(DF), lambda: torch.distributions.Poisson(TENSORS[2])),
    "negative_binomial": (
        scipy.stats.nbinom(DF, 0.3),
        lambda: torch.distributions.NegativeBinomial(TENSORS[2], torch.tensor(0.7).double()),
    ),
}
TENSORS = [torch.tensor(x).double() for x in (LOC, SCALE, DF)]


@pytest.mark.parametrize("kind", SHAPED)
def test_distributions_with_bounds_are_of_their_family(kind: str) -> None:
    """Their log densities are those of the library; without the family they are refused by name."""
    frozen, made = SHAPED[kind]
    family = {"exponential": "gamma", "half normal": "truncated_gaussian"}.get(kind, kind)
    for given in (frozen, made()):
        if family not in families:
            with pytest.raises(UnsupportedError, match=r"the distribution \w+ has no family in this package"):
                up.from_model(given)
            continue
        members = up.from_model(given).members
        counts = kind in {"poisson", "negative_binomial"}
        at = COUNTS if counts else SHARES if kind == "beta" else POSITIVE
        own = frozen.logpmf(at) if counts else frozen.logpdf(at)
        at = torch.tensor(at) if given is not frozen else at
        assert members.name == family
        assert_allclose(members.log_density(at)[0], own, rtol=1e-7, atol=1e-9)


def test_bounds_of_scipy_are_where_it_has_them() -> None:
    if {"beta", "truncated_gaussian"} <= set(families):
        for given in (scipy.stats.beta(2.0, 3.0, loc=LOC, scale=SCALE), scipy.stats.truncnorm(-1.0, 2.0, LOC, SCALE)):
            at = LOC + 0.3 * SCALE
            assert_allclose(up.from_model(given).members.log_density(at)[0], given.logpdf(at), rtol=1e-9)


def test_a_distribution_that_does_not_begin_at_zero_is_refused() -> None:
    if "gamma" in families:
        with pytest.raises(UnsupportedError, match="the distribution gamma must begin at zero, without loc"):
            up.from_model(scipy.stats.gamma(2.0, loc=1.0))


def test_a_number_of_one_parameter_counts_for_all_points() -> None:
    members = up.from_model(torch.distributions.Normal(torch.zeros(3), 2.0)).members
    assert members.scale.tolist() == [[2.0, 2.0, 2.0]]


def test_arrays_of_jax_stay_what_they_are() -> None:
    """By attributes alone, as NumPyro, TensorFlow Probability and Distrax have them."""

    class Distribution:
        __module__ = "numpyro.distributions.distribution"

    class Logistic(Distribution):
        loc, scale = jax.numpy.asarray(LOC), jax.numpy.asarray(SCALE)

    class Independent(Distribution):
        base_dist, batch_shape, event_shape = Logistic(), (), (5,)

    class ExpandedDistribution(Distribution):
        base_dist, batch_shape, event_shape = Logistic(), (2, 5), ()

    assert isinstance(up.from_model(Logistic()).members.location, jax.Array)
    assert_allclose(up.from_model(Independent()).members.location[0], LOC, rtol=1e-6)
    assert up.from_model(ExpandedDistribution()).points_shape == (2, 5)


def test_columns_of_targets_are_one_target() -> None:
    """Of skpro, whose attribute `loc` is an indexer as that of pandas, and whose parameters may be numbers."""
    from skpro.distributions import Laplace, Normal

    members = up.from_model(Laplace(mu=LOC[:, None], scale=2.0, columns=["y"])).members
    assert_allclose(members.location, [LOC])
    assert_allclose(members.scale, np.full((1, 5), 2.0))
    assert up.from_model(Normal(mu=0.0, sigma=1.0)).points_shape == ()
    with pytest.raises(ShapeError, match="has 2 columns"):
        up.from_model(Laplace(mu=[[0.0, 1.0]], scale=1.0, columns=["y", "z"]))


def test_other_distributions_are_refused_with_the_way_out() -> None:
    for given, called in (
        (scipy.stats.gumbel_r(LOC), "gumbel_r"),
        (scipy.stats.binom(3, 0.5), "binom"),
        (scipy.stats.multivariate_normal([0.0, 0.0]), "multivariate_normal_frozen"),
        (torch.distributions.Gumbel(torch.ones(3), torch.ones(3)), "Gumbel"),
    ):
        with pytest.raises(UnsupportedError, match=f"the distribution {called} has no family.*from_draws"):
            up.from_model(given)


def tensor(x: object) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


def transformed(base: torch.distributions.Distribution, *steps: object) -> torch.distributions.Distribution:
    return torch.distributions.TransformedDistribution(base, list(steps))


def test_transformed_distributions_of_torch_are_of_their_own_family() -> None:
    """Shifted, scaled and mirrored ones, the exponential of a Gaussian, and PyTorch's way of writing a logistic one."""
    dist, affine, loc, scale = torch.distributions, torch.distributions.AffineTransform, tensor(LOC), tensor(SCALE).clamp(max=3.0)
    normal, exp = dist.Normal(loc, scale), dist.ExpTransform()
    logit = dist.SigmoidTransform().inv
    shift = affine(1.0, -2.0)
    y = tensor(np.exp(Y))
    for family, own in (
        ("gaussian", transformed(normal, affine(loc, scale))),
        ("gaussian", transformed(normal, shift)),
        ("laplace", transformed(dist.Laplace(loc, scale), shift)),
        ("student_t", transformed(dist.StudentT(tensor(DF), loc, scale), shift)),
        ("lognormal", transformed(normal, exp, affine(0.0, 3.0))),
        ("gamma", transformed(dist.Gamma(scale, scale), affine(0.0, 3.0))),
        ("beta", transformed(dist.Beta(scale, scale), affine(-1.0, 20.0))),
        ("beta", transformed(dist.Uniform(0.0 * loc, scale), affine(-1.0, 50.0 / scale))),
        ("logistic", transformed(dist.Uniform(0.0 * loc, 0.0 * loc + 1.0), logit, affine(loc, scale))),
        ("gamma", dist.Chi2(scale)),
    ):
        members = up.from_model(own).members
        assert members.name == family
        assert_allclose(members.log_density(y)[0], own.log_prob(y), rtol=1e-9, atol=1e-12)
    for own in (transformed(normal, dist.TanhTransform()), transformed(normal, exp, affine(1.0, 1.0)), dist.Gumbel(loc, scale)):
        with pytest.raises(UnsupportedError, match=r"the distribution \w+ has no family in this package \(.*\); pass draws"):
            up.from_model(own)


def test_counts_uniforms_and_marginals() -> None:
    dist, p, k = torch.distributions, tensor([0.2, 0.5, 0.9]), tensor([0.0, 3.0, 1.0])
    geometric = dist.Geometric(p)
    assert_allclose(up.from_model(geometric).members.log_density(k)[0], geometric.log_prob(k), rtol=1e-9)
    by_logit = dist.NegativeBinomial(3.0, logits=p)
    assert_allclose(up.from_model(by_logit).members.log_density(k)[0], by_logit.log_prob(k), rtol=1e-9)
    uniform = scipy.stats.uniform([-1.0, 2.0], [3.0, 4.0])
    assert_allclose(up.from_model(uniform).members.variance[0], uniform.var())
    joint = dist.MultivariateNormal(p, torch.diag(p) + 0.1)
    assert_allclose(up.from_model(joint).members.variance[0], p + 0.1)
    for classes in (dist.Categorical(p), dist.Bernoulli(p)):
        with pytest.raises(UnsupportedError, match="a distribution of classes"):
            up.from_model(classes)


def test_mixtures_of_events_and_of_separate_components() -> None:
    dist, rng = torch.distributions, np.random.default_rng(0)
    logits, loc, scale = (tensor(x) for x in (rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.uniform(0.5, 2.0, (5, 3))))
    plain = dist.MixtureSameFamily(dist.Categorical(logits=logits), dist.Normal(loc, scale))
    events = dist.Independent(dist.Normal(loc[..., None], scale[..., None]), 1)
    several = dist.MixtureSameFamily(dist.Categorical(logits=logits), events)
    y = tensor(Y)
    for own in (dist.Independent(plain, 1), several):
        members = up.from_model(own).members
        assert_allclose(np.ravel(members.log_density(y.reshape(members.batch_shape[1:]))), plain.log_prob(y), rtol=1e-9)
    apart = scipy.stats.Mixture([scipy.stats.Normal(mu=LOC[i], sigma=SCALE[i]) for i in (0, 1)], weights=[0.3, 0.7])
    assert_allclose(np.ravel(up.from_model(apart).members.log_density(Y[0])), apart.logpdf(Y[0]), rtol=1e-9)
    with pytest.raises(UnsupportedError, match="components of Mixture must be of one family"):
        up.from_model(scipy.stats.Mixture([scipy.stats.Normal(), scipy.stats.Uniform(a=0.0, b=1.0)], weights=[0.5, 0.5]))


def test_lists_in_a_list_and_arrays_are_members_with_a_point_for_each_distribution() -> None:
    rows = [[scipy.stats.norm(LOC[j] + i, SCALE[j]) for j in range(5)] for i in range(2)]
    expected = up.from_model([scipy.stats.norm(LOC + i, SCALE) for i in range(2)])
    for given in (rows, np.array(rows, dtype=object)):
        ens = up.from_model(given)
        assert (ens.n_members, ens.points_shape) == (2, (5,))
        assert_allclose(up.decompose(ens).total, up.decompose(expected).total)


def test_members_of_other_components_are_not_joined() -> None:
    """Their arrays have the same names and shapes, and would be read as those of the first."""
    dist, x = torch.distributions, torch.ones(5, 2)
    mixtures = [dist.MixtureSameFamily(dist.Categorical(x), kind(x, x)) for kind in (dist.Normal, dist.Laplace)]
    with pytest.raises(ArgumentError, match="members must have the same components, got gaussian and laplace"):
        up.from_model(mixtures)
