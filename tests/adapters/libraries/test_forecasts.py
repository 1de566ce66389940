"""GluonTS, darts and Nixtla against their own quantiles and means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from uqprism.errors import ArgumentError, ShapeError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries


@pytest.mark.libraries
def test_forecasts_of_gluonts_by_samples_and_by_quantiles(page: Callable) -> None:
    names = page("gluonts")
    forecasts, members = names["forecasts"], names["ens"].members
    assert_allclose(members.mean, [forecast.mean for forecast in forecasts], rtol=1e-12)
    assert_allclose(members.draws[:, 1], forecasts[1].samples)
    given = [forecast.to_quantile_forecast(["0.1", "0.5", "0.9"]) for forecast in forecasts]
    quantiles = up.from_model(given).members
    assert quantiles.levels == (0.1, 0.5, 0.9)
    assert_array_equal(quantiles.values[2], [forecast.quantile(0.9) for forecast in given])


@pytest.mark.libraries
def test_forecasts_of_several_series_are_points(page: Callable) -> None:
    """Their item_id tells series from models; without one the list says neither."""
    from gluonts.model.forecast import SampleForecast

    start, rng = pd.Period("2026-01-01", freq="D"), np.random.default_rng(0)
    samples = rng.normal(size=(2, 3, 50, 4))
    models = [[SampleForecast(samples[m, s], start, item_id=f"series {s}") for s in range(3)] for m in range(2)]
    ens = up.from_model(models)
    assert (ens.n_members, ens.points_shape) == (2, (3, 4))
    assert_array_equal(ens.members.draws[:, 1, 2], samples[1, 2])
    assert up.from_model(models[0]).points_shape == (3, 4)
    assert up.from_model([models[0][1], models[1][1]]).n_members == 2
    with pytest.raises(ArgumentError, match="without item_id may be of several series or of several models"):
        up.from_model([SampleForecast(each, start) for each in samples[0]])
    with pytest.raises(ShapeError, match="forecasts must have one shape"):
        up.from_model([models[0][0], SampleForecast(samples[0, 0, :9], start, item_id="other")])


@pytest.mark.libraries
def test_forecasts_of_darts_by_quantiles_samples_and_parameters(page: Callable) -> None:
    from darts import TimeSeries

    names = page("darts")
    for i, model in enumerate(names["models"]):
        own = model.predict(7, predict_likelihood_parameters=True).all_values()[:, :, 0]
        assert_array_equal(names["ens"].members.values[:, i].T, own)
    drawn = names["models"][0].predict(7, num_samples=30)
    members = up.from_model([drawn]).members
    assert_array_equal(members.draws[:, 0].T, drawn.all_values()[:, 0])
    assert_allclose(members.mean[0], drawn.mean().values()[:, 0], rtol=1e-12)
    table = pd.DataFrame({"a_mu": [0.0, 1.0], "b_mu": [2.0, 3.0], "a_sigma": [1.0, 2.0], "b_sigma": [3.0, 4.0]})
    gaussian = up.from_model(TimeSeries.from_dataframe(table), family="gaussian").members
    assert_array_equal(gaussian.mean[0], [[0.0, 2.0], [1.0, 3.0]])
    assert_array_equal(gaussian.scale[0], [[1.0, 3.0], [2.0, 4.0]])
    with pytest.raises(
        UnsupportedError, match=r"one sample and the components 0, which are no distribution\. Predict with num_samples"
    ):
        up.from_model(names["series"])


@pytest.mark.libraries
def test_parameters_of_darts_name_their_family() -> None:
    """Gaussian and lognormal likelihoods call theirs the same; those of others tell the family."""
    from darts import TimeSeries
    from darts.utils.likelihood_models import torch as likelihoods

    def series(**columns: list[float]) -> Any:
        return TimeSeries.from_dataframe(pd.DataFrame({f"a_{name}": x for name, x in columns.items()}))

    given = {"mu": [0.1, 1.0], "sigma": [0.5, 0.7]}
    assert (
        likelihoods.LogNormalLikelihood().parameter_names == likelihoods.GaussianLikelihood().parameter_names == ["mu", "sigma"]
    )
    for family in ("gaussian", "lognormal"):
        assert up.from_model(series(**given), family=family).members.name == family
    with pytest.raises(ArgumentError, match=r"a_mu, a_sigma may be those of gaussian or lognormal .*family='gaussian'"):
        up.from_model(series(**given))
    r, p = np.array([3.0, 4.0]), np.array([0.2, 0.5])
    counts = up.from_model(series(r=r, p=p)).members
    own = torch.distributions.NegativeBinomial(torch.tensor(r), torch.tensor(p))
    assert_allclose(
        counts.log_density(np.array([1.0, 3.0]))[0], own.log_prob(torch.tensor([1.0, 3.0], dtype=torch.float64)), rtol=1e-9
    )
    weibull = up.from_model(series(**{"lambda": [1.0, 2.0], "k": [1.5, 3.0]})).members
    assert_allclose(
        weibull.mean[0], torch.distributions.Weibull(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 3.0])).mean, rtol=1e-6
    )
    assert_allclose(up.from_model(series(**{"lambda": [2.0, 4.0]}), family="exponential").members.mean[0], [0.5, 0.25])


@pytest.mark.libraries
def test_forecasts_of_other_times_are_no_members(page: Callable) -> None:
    """Such as those of a backtest, which would be joined step by step."""
    from darts import TimeSeries
    from gluonts.model.forecast import SampleForecast

    first, later = (TimeSeries.from_values(np.zeros((3, 1, 5))).shift(n) for n in (0, 1))
    with pytest.raises(ShapeError, match="forecasts of the same steps"):
        up.from_model([first, later])
    starts, samples = (
        [pd.Period(day, freq="D") for day in ("2026-01-01", "2026-01-08")],
        np.random.default_rng(0).normal(size=(50, 4)),
    )
    windows = [SampleForecast(samples + i, start, item_id="a") for i, start in enumerate(starts)]
    assert (up.from_model(windows).n_members, up.from_model(windows).points_shape) == (1, (2, 4))
    with pytest.raises(ArgumentError, match="pass a list for each model"):
        up.from_model([*windows, windows[0]])
    with pytest.raises(UnsupportedError, match="NPTSPredictor has yet to forecast"):
        up.from_model(page("gluonts")["models"][0], samples)


@pytest.mark.libraries
def test_draws_may_differ_in_number() -> None:
    from gluonts.model.forecast import SampleForecast

    start, samples = pd.Period("2026-01-01", freq="D"), np.random.default_rng(0).normal(size=(50, 4))
    ens = up.from_model([SampleForecast(samples[:n], start, item_id="a") for n in (50, 20)])
    expected = up.EnsemblePrediction.samples([samples, samples[:20]])
    assert_allclose(up.decompose(ens).excess, up.decompose(expected).excess, rtol=1e-12)


@pytest.mark.libraries
def test_columns_of_statsforecast(page: Callable) -> None:
    names = page("nixtla")
    forecast, members = names["forecast"], names["ens"].members
    assert members.levels == (0.025, 0.1, 0.25, 0.75, 0.9, 0.975)
    assert_array_equal(
        members.values[:, 0].T, forecast[[f"AutoETS-lo-{n}" for n in (95, 80, 50)] + [f"AutoETS-hi-{n}" for n in (50, 80, 95)]]
    )
    assert_array_equal(members.values[0, 1], forecast["AutoTheta-lo-95"])


def table(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({name.replace("_", "-"): np.asarray(values, dtype=float) for name, values in columns.items()})


def test_columns_of_intervals_are_quantiles() -> None:
    symmetric = table(A=[0.0, 1.0], A_lo_80=[-1.0, -1.0], A_hi_80=[1.0, 3.0], ds=[0.0, 1.0])
    members = up.from_model(symmetric).members
    assert members.levels == (0.1, 0.5, 0.9)
    assert_array_equal(members.values[:, 0], [[-1.0, -1.0], [0.0, 1.0], [1.0, 3.0]])


def test_a_point_forecast_that_may_be_a_mean_is_left_out() -> None:
    skewed = table(A=[0.5, 1.5], A_lo_80=[-1.0, -1.0], A_hi_80=[1.0, 3.0])
    assert up.from_model(skewed).members.levels == (0.1, 0.9)
    skewed["A-median"] = [0.2, 0.3]
    assert_array_equal(up.from_model(skewed).members.values[1, 0], [0.2, 0.3])


def test_columns_of_quantiles_as_timegpt_has_them() -> None:
    members = up.from_model(
        table(**{"TimeGPT": [1.0], "TimeGPT_q_10": [0.0], "TimeGPT_q_50": [0.9], "TimeGPT_q_90": [2.5]})
    ).members
    assert members.levels == (0.1, 0.5, 0.9)
    assert_array_equal(members.values[:, 0, 0], [0.0, 0.9, 2.5])


def test_a_table_without_such_columns_is_refused_with_the_way_out() -> None:
    """As Prophet's, whose bounds do not say their level."""
    for frame in (table(yhat=[1.0], yhat_lower=[0.0], yhat_upper=[2.0]), table(A=[1.0])):
        with pytest.raises(
            UnsupportedError, match=r"no columns of intervals such as AutoETS-lo-90.*pass the table to up.from_frame"
        ):
            up.from_model(frame)


def test_tables_whose_models_do_not_fit_together_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"the same quantiles, got A: 0.1, 0.9; B: 0.05, 0.95"):
        up.from_model(table(A_lo_80=[0.0], A_hi_80=[1.0], B_lo_90=[0.0], B_hi_90=[1.0]))
    with pytest.raises(UnsupportedError, match=r"one bound only; forecast with level="):
        up.from_model(table(A_lo_80=[0.0]))
