"""NGBoost, skpro, sktime, NumPyro and TensorFlow Probability against their own densities and scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.errors import UnsupportedError
from uqprism.families import families

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries
Y = np.linspace(0.2, 2.0, 40)
NGBOOST = {  # the family of each distribution that scores one real target
    "Normal": "gaussian",
    "NormalFixedVar": "gaussian",
    "NormalFixedMean": "gaussian",
    "Laplace": "laplace",
    "T": "student_t",
    "TFixedDf": "student_t",
    "TFixedDfFixedVar": "student_t",
    "Cauchy": "student_t",
    "LogNormal": "lognormal",
    "Exponential": "gamma",
    "Gamma": "gamma",
    "Weibull": "weibull",
    "HalfNormal": "truncated_gaussian",
    "Beta": "beta",
    "Poisson": "poisson",
}


@pytest.mark.parametrize("kind", NGBOOST)
def test_distributions_of_ngboost_are_of_their_own_family(kind: str) -> None:
    """The log density is NGBoost's own; a family that this version does not have is refused by name."""
    import ngboost.distns

    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(200, 1))
    y = np.exp(np.sin(2.0 * X[:, 0]) + 0.2 * rng.normal(size=200))
    y = np.round(y) if kind == "Poisson" else 0.9 * y / y.max() if kind == "Beta" else y
    model = ngboost.NGBRegressor(Dist=getattr(ngboost.distns, kind), n_estimators=5, verbose=False).fit(X, y)
    if NGBOOST[kind] not in families:
        with pytest.raises(UnsupportedError, match=r"the distribution \w+ has no family in this package"):
            up.from_model(model, X[:40])
        return
    predicted, members = model.pred_dist(X[:40]), up.from_model([model], X[:40]).members
    assert members.name == NGBOOST[kind]
    at = np.round(Y) if kind == "Poisson" else Y / 4.0
    own = predicted.dist.logpmf(at) if kind == "Poisson" else predicted.dist.logpdf(at)
    assert_allclose(members.log_density(at)[0], own, rtol=1e-9, atol=1e-9)


def test_scores_of_ngboost(page: Callable) -> None:
    from ngboost.distns.normal import NormalCRPScore

    names = page("ngboost")
    predicted, members = names["models"][0].pred_dist(names["X_new"]), names["ens"].members
    assert_allclose(members.log_density(Y)[0], predicted.logpdf(Y), rtol=1e-12)
    assert_allclose(up.rules.CRPS().score(members, Y)[0], NormalCRPScore.score(predicted, Y), rtol=1e-9)


def test_scores_and_kinds_of_skpro(page: Callable) -> None:
    import pandas as pd
    from sklearn.linear_model import LinearRegression
    from skpro.distributions import Mixture, Normal
    from skpro.metrics import CRPS
    from skpro.regression.bootstrap import BootstrapRegressor

    names = page("skpro")
    members, new = names["ens"].members, names["new"]
    target = pd.DataFrame({"y": Y})
    for i, model in enumerate(names["models"]):
        predicted = model.predict_proba(new)
        target.columns = predicted.columns
        assert_allclose(members.log_density(Y)[i], predicted.log_pdf(target).to_numpy()[:, 0], rtol=1e-9)
        own = CRPS().evaluate_by_index(target, predicted).to_numpy().ravel()
        assert_allclose(up.rules.CRPS().score(members, Y)[i], own, rtol=1e-6)
    bootstrap = BootstrapRegressor(LinearRegression(), n_bootstrap_samples=20, random_state=0).fit(
        names["train"], names["target"]
    )
    draws = up.from_model(bootstrap, new).members
    own = bootstrap.predict_proba(new)
    assert_allclose(draws.mean[0], own.mean().to_numpy()[:, 0], rtol=1e-9)
    assert_allclose(draws.variance[0], own.var().to_numpy()[:, 0], rtol=1e-6)
    parts = [("low", Normal([[0.0], [1.0]], 1.0, columns=["y"])), ("high", Normal([[2.0], [3.0]], 2.0, columns=["y"]))]
    mixed = Mixture(parts, weights=[0.3, 0.7])
    member = up.from_model(mixed).members
    assert_allclose(member.mean[0], mixed.mean().to_numpy()[:, 0], rtol=1e-12)
    assert_allclose(member.variance[0], mixed.var().to_numpy()[:, 0], rtol=1e-9)


@pytest.mark.libraries
def test_variances_and_quantiles_of_sktime(page: Callable) -> None:
    names = page("sktime")
    members, horizon = names["ens"].members, [1, 2, 3, 4, 5, 6, 7]
    for i, model in enumerate(names["models"]):
        assert_allclose(members.variance[i], model.predict_var(horizon).to_numpy().ravel(), rtol=1e-9)
        own = model.predict_quantiles(horizon, alpha=[0.1]).to_numpy().ravel()
        assert_allclose(members.quantile(0.1)[i], own, rtol=1e-9)


@pytest.mark.libraries
def test_log_densities_of_numpyro(page: Callable) -> None:
    import numpyro.distributions as dist

    names = page("numpyro")
    for i, member in enumerate(names["members"]):
        assert_allclose(names["ens"].members.log_density(Y)[i], member.log_prob(Y), rtol=1e-5)
    mixed = dist.MixtureSameFamily(
        dist.Categorical(probs=np.array([[0.3, 0.7]] * 4)), dist.Normal(np.array([[0.0, 1.0]] * 4), np.array([1.0, 0.5]))
    )
    for own in (mixed, dist.StudentT(4.0, np.zeros(4), 0.5), dist.Laplace(np.zeros(4), 2.0)):
        assert_allclose(up.from_model(own).members.log_density(Y[:4])[0], own.log_prob(Y[:4]), rtol=1e-5)


@pytest.mark.libraries
def test_log_densities_of_tensorflow_probability(page: Callable) -> None:
    names = page("tfp")
    tfd = names["tfp"].distributions
    for i, member in enumerate(names["members"]):
        assert_allclose(names["ens"].members.log_density(Y)[i], member.log_prob(Y), rtol=1e-5)
    zero = np.zeros(4)
    mixed = tfd.MixtureSameFamily(tfd.Categorical(probs=np.array([[0.3, 0.7]] * 4)), tfd.Normal(np.array([[0.0, 1.0]] * 4), 0.5))
    for own in (mixed, tfd.StudentT(np.float64(4.0), zero, np.float64(0.5)), tfd.Laplace(zero, np.float64(2.0))):
        assert_allclose(up.from_model(own).members.log_density(Y[:4])[0], own.log_prob(Y[:4]), rtol=1e-5)


def test_mixtures_of_torch() -> None:
    """The components lie along the last axis of the batch, the points along the others."""
    import torch

    location, scale, share = (torch.tensor([x] * 4).double() for x in ([0.0, 1.0, 5.0], [1.0, 0.5, 2.0], [0.2, 0.5, 0.3]))
    normal = torch.distributions.Normal(location, scale)
    mixed = torch.distributions.MixtureSameFamily(torch.distributions.Categorical(share), normal)
    ens = up.from_model([mixed, mixed])
    assert (ens.n_members, ens.points_shape) == (2, (4,))
    y = torch.linspace(-1.0, 3.0, 4).double()
    torch.testing.assert_close(ens.members.log_density(y)[1], mixed.log_prob(y))
    assert_allclose(up.decompose(ens, rule="log").excess, 0.0, atol=1e-30)


def test_predicted_distributions_of_ngboost(page: Callable) -> None:
    """They answer to any attribute, but not as models do; those of classifiers are refused."""
    import ngboost

    names = page("ngboost")
    model, X_new = names["models"][0], names["X_new"]
    for given in (model.pred_dist(X_new), model.staged_pred_dist(X_new)[-1]):
        assert_allclose(up.from_model(given).members.mean[0], model.predict(X_new))
    classifier = ngboost.NGBClassifier(n_estimators=2, verbose=False).fit(names["X"], (names["y"] > 0).astype(int))
    with pytest.raises(UnsupportedError, match="a distribution of classes"):
        up.from_model(classifier, X_new)


def test_mixtures_counts_and_unfitted_models_of_skpro(page: Callable) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.linear_model import LinearRegression
    from skpro import distributions
    from skpro.regression.ensemble import BaggingRegressor
    from skpro.regression.residual import ResidualDouble

    names = page("skpro")
    with pytest.raises(NotFittedError, match="ResidualDouble is not fitted yet"):
        up.from_model(ResidualDouble(LinearRegression()), names["new"])
    bag = BaggingRegressor(ResidualDouble(LinearRegression()), n_estimators=3, random_state=0).fit(
        names["train"], names["target"]
    )
    own, member = bag.predict_proba(names["new"]), up.from_model(bag, names["new"]).members
    assert_allclose(member.mean[0], own.mean().to_numpy()[:, 0], rtol=1e-9)
    assert_allclose(member.variance[0], own.var().to_numpy()[:, 0], rtol=1e-9)
    column = {"columns": ["y"]}
    for own in (
        distributions.NegativeBinomial(mu=[[1.0], [3.0]], alpha=2.0, **column),
        distributions.Uniform(lower=-1.0, upper=[[1.0], [3.0]], **column),
        distributions.ChiSquared(dof=[[1.0], [3.0]], **column),
        distributions.Erlang(rate=[[1.0], [3.0]], k=2, **column),
    ):
        member = up.from_model(own).members
        assert_allclose(member.mean[0], own.mean().to_numpy()[:, 0], rtol=1e-9)
        assert_allclose(member.variance[0], own.var().to_numpy()[:, 0], rtol=1e-9)


@pytest.mark.libraries
def test_more_distributions_of_numpyro_and_tensorflow_probability() -> None:
    """Within bounds, transformed, by logits or logarithms, and mixtures of separate components."""
    import numpyro.distributions as dist
    from numpyro.distributions import transforms
    from tensorflow_probability.substrates import numpy as tfp

    tfd, at, count = tfp.distributions, Y[:4], np.arange(4.0)
    loc, scale, half = np.linspace(-1.0, 1.0, 4), np.linspace(0.5, 1.5, 4), np.full((4, 2), 0.5)
    normals = [dist.Normal(loc, scale), dist.Normal(loc + 1.0, scale)]
    for own, y in (
        (dist.TruncatedNormal(loc, scale, low=0.0), at),
        (dist.TruncatedNormal(loc, scale, low=0.0, high=3.0), at),
        (dist.TruncatedNormal(loc, scale, high=3.0), at),
        (dist.TransformedDistribution(normals[0], transforms.AffineTransform(1.0, 2.0)), at),
        (dist.TransformedDistribution(normals[0], transforms.ExpTransform()), at),
        (dist.MixtureGeneral(dist.Categorical(probs=half), normals), at),
        (dist.NegativeBinomialLogits(3.0, loc), count),
        (dist.GammaPoisson(scale, scale), count),
        (dist.Geometric(scale / 2.0), count),
        (tfd.TransformedDistribution(tfd.Normal(loc, scale), tfp.bijectors.Shift(1.0)(tfp.bijectors.Scale(np.float64(2.0)))), at),
        (tfd.TransformedDistribution(tfd.Normal(loc, scale), tfp.bijectors.Exp()), at),
        (tfd.Mixture(tfd.Categorical(probs=half), [tfd.Normal(loc, scale), tfd.Normal(loc + 1.0, scale)]), at),
        (tfd.NegativeBinomial(np.float64(3.0), logits=loc), count),
        (tfd.Poisson(log_rate=loc), count),
        (tfd.Gamma(scale, log_rate=loc), at),
    ):
        assert_allclose(up.from_model(own).members.log_density(y)[0], own.log_prob(y), rtol=1e-5, atol=1e-5)
    joint = tfd.MultivariateNormalDiag(loc, scale)
    assert_allclose(up.from_model(joint).members.variance[0], joint.variance())
