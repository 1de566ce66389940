"""laplace-torch, bde, PyMC and ArviZ against the totals that they report."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

import uqprism as up
from uqprism.errors import ArgumentError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries


@pytest.mark.libraries
def test_the_total_is_the_predictive_variance_of_laplace_torch(page: Callable) -> None:
    import torch

    names = page("laplace")
    posterior, d = names["posterior"], names["d"]
    mean, latent = posterior(torch.tensor(names["X_new"], dtype=torch.float32))
    assert_allclose(names["ens"].mixture.mean, mean.ravel(), rtol=1e-5, atol=1e-6)
    assert_allclose(d.epistemic, latent.ravel(), rtol=1e-5)
    assert_allclose(d.aleatoric, 0.04, rtol=1e-6)
    alone = up.from_model([posterior, posterior], names["loader"]).members
    assert alone.mean.shape == (2, 200)  # a loader of inputs and targets
    assert_allclose(up.from_model([posterior], names["X_new"]).members.variance[0], latent.ravel() + 0.04, rtol=1e-5)


@pytest.mark.libraries
def test_the_total_is_the_squared_standard_deviation_of_bde(page: Callable) -> None:
    names = page("bde")
    mean, deviation = names["model"].predict(names["X_new"], mean_and_std=True)
    assert_allclose(names["ens"].mixture.mean, mean, rtol=1e-4, atol=1e-5)
    assert_allclose(names["d"].total, np.asarray(deviation) ** 2, rtol=1e-4)
    assert up.from_model(names["model"], names["X_new"], n_members=5).n_members == 5


@pytest.mark.libraries
def test_a_result_of_pymc_is_read_whole(page: Callable) -> None:
    """At the points of the predictions; without them, the log density of the targets is the log likelihood that PyMC keeps."""
    names = page("pymc")
    posterior, members = names["posterior"], names["ens"].members
    assert_allclose(members.mean, posterior.predictions["mu"].values.reshape(400, 40), rtol=1e-12)
    assert_allclose(members.scale, np.broadcast_to(posterior.posterior["sigma"].values.reshape(400, 1), (400, 40)), rtol=1e-12)
    own = posterior.log_likelihood["y"].values.reshape(400, 200)
    fitted = posterior.copy()
    del fitted.predictions
    assert_allclose(up.from_model(fitted).members.log_density(names["y"]), own, rtol=1e-9)


@pytest.mark.libraries
def test_the_log_score_of_the_mixture_is_that_of_arviz(page: Callable) -> None:
    """WAIC is minus the sum of the mixture's log densities of the targets, and a penalty that ArviZ reports."""
    import arviz

    names = page("arviz")
    own = arviz.waic(names["posterior"])
    ens = up.from_model(names["posterior"])
    assert_allclose(ens.mixture.log_density(names["y"]).sum(), own.elpd_waic + own.p_waic, rtol=1e-9)
    assert_allclose(names["ens"].members.mean, ens.members.mean[2::4], rtol=1e-12)


RNG = np.random.default_rng(5)
DRAWN = ("chain", "draw")
MEAN, SCALE, Y = RNG.normal(size=(2, 20, 6)), np.exp(0.3 * RNG.normal(size=(2, 20))), RNG.normal(size=6)


def tree(log_likelihood: np.ndarray | None, **posterior: tuple[tuple[str, ...], np.ndarray]) -> xr.DataTree:
    groups = {"posterior": xr.Dataset(posterior), "observed_data": xr.Dataset({"y": (("y_dim_0",), Y)})}
    if log_likelihood is not None:
        groups["log_likelihood"] = xr.Dataset({"y": ((*DRAWN, "y_dim_0"), log_likelihood)})
    return xr.DataTree.from_dict(groups)


LIKELIHOODS = {
    "scale": (SCALE, stats.norm(MEAN, SCALE[..., None]), "gaussian"),
    "variance": (SCALE**2, stats.norm(MEAN, SCALE[..., None]), "gaussian"),
    "precision": (SCALE**-2, stats.norm(MEAN, SCALE[..., None]), "gaussian"),
    "logarithm": (np.log(SCALE), stats.norm(MEAN, SCALE[..., None]), "gaussian"),
    "laplace": (SCALE, stats.laplace(MEAN, SCALE[..., None]), "laplace"),
    "logistic": (SCALE, stats.logistic(MEAN, SCALE[..., None]), "logistic"),
    "student_t": (SCALE, stats.t(2.0 + SCALE[..., None] ** 2, MEAN, SCALE[..., None]), "student_t"),
}


@pytest.mark.parametrize("case", LIKELIHOODS)
def test_the_likelihood_is_read_from_the_groups(case: str) -> None:
    """Whatever the variables are called, and whatever else the posterior has, also with names of dimensions of their own."""
    spread, own, family = LIKELIHOODS[case]
    data = tree(
        own.logpdf(Y),
        slope=(DRAWN, RNG.normal(size=(2, 20))),
        elsewhere=((*DRAWN, "mu_dim_0"), MEAN + 1.0),
        mu=((*DRAWN, "mu_dim_0"), MEAN),
        s=(DRAWN, spread),
        nu=(DRAWN, 2.0 + SCALE**2),
    )
    members = up.from_model(data).members
    assert (members.name, members.batch_shape) == (family, (40, 6))
    assert_allclose(members.log_density(Y), own.logpdf(Y).reshape(40, 6), rtol=1e-9)


def test_points_of_the_predictions_and_names_that_are_given() -> None:
    data = tree(None, mu=((*DRAWN, "obs"), MEAN), s=(DRAWN, SCALE))
    with pytest.raises(UnsupportedError, match=r"log_likelihood is missing\. Add it, as with .*mean='mu', scale='sigma'"):
        up.from_model(data)
    members = up.from_model(data, mean="mu", scale="s", n_members=10).members
    assert_allclose(members.mean, MEAN.reshape(40, 6)[2::4], rtol=1e-12)
    assert_allclose(up.from_model(data, mean="mu", scale=0.5).members.scale, 0.5)
    data["predictions"] = xr.DataTree(xr.Dataset({"mu": ((*DRAWN, "obs"), MEAN[..., :2] + 3.0)}))
    members = up.from_model(data, mean="mu", scale="s").members
    assert_allclose(members.mean, (MEAN[..., :2] + 3.0).reshape(40, 2), rtol=1e-12)
    for options, error, message in (
        ({"mean": "mu"}, ArgumentError, "give both mean and scale"),
        ({"mean": "mu", "scale": "sigma"}, ArgumentError, "no variable sigma; it has mu, s"),
    ):
        with pytest.raises(error, match=message):
            up.from_model(data, **options)


def test_another_likelihood_is_not_taken_for_a_known_one() -> None:
    own = stats.gumbel_r(MEAN, SCALE[..., None]).logpdf(Y)
    with pytest.raises(UnsupportedError, match=r"no two variables of the posterior give the log likelihood of y"):
        up.from_model(tree(own, mu=((*DRAWN, "obs"), MEAN), s=(DRAWN, SCALE)))
    with pytest.raises(UnsupportedError, match="no group posterior; its groups are prior"):
        up.from_model(xr.DataTree.from_dict({"prior": xr.Dataset()}))
