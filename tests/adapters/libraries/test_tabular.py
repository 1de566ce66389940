"""TabPFN, TabICL, TabM, AutoGluon and pytabkit against their own predictions."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from uqprism.errors import UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries


class TabPFNRegressor:
    """As TabPFN's, whose weights come from a hub: it returns given logits for the bars of a criterion."""

    __module__ = "tabpfn.regressor"

    def __init__(self, logits: Any, criterion: Any) -> None:
        self.logits, self.criterion = logits, criterion

    def predict(self, X: np.ndarray, output_type: str) -> dict[str, Any]:
        assert output_type == "full"
        return {"logits": self.logits[: len(X)], "criterion": self.criterion}


@pytest.mark.libraries
def test_bars_are_those_of_tabpfn() -> None:
    """Moments, distribution function, log score and quantiles are those of its own criterion, with half-normal outer bars."""
    import torch
    from tabpfn.architectures.shared.bar_distribution import FullSupportBarDistribution

    borders = torch.linspace(-2.0, 2.0, 61, dtype=torch.float64) ** 3
    criterion = FullSupportBarDistribution(borders).double()
    logits = torch.randn(9, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    members = up.from_model([TabPFNRegressor(logits, criterion)], np.zeros((9, 1))).members
    assert_allclose(members.mean[0], criterion.mean(logits), rtol=1e-9)
    assert_allclose(members.variance[0], criterion.variance(logits), rtol=1e-6)
    for shift in (-9.5, -3.0, 0.4, 2.0, 8.5):
        y = torch.linspace(-0.5, 0.5, 9, dtype=torch.float64) + shift
        assert_allclose(members.log_density(y.numpy())[0], -criterion(logits, y), rtol=1e-6)
        assert_allclose(members.cdf(y.numpy())[0], criterion.cdf(logits, y[:, None])[:, 0], rtol=1e-6, atol=1e-9)
    assert_allclose(members.quantile(0.3)[0], criterion.icdf(logits, 0.3), rtol=1e-6)


@pytest.mark.libraries
def test_a_regressor_of_tabpfn_is_its_bars(tmp_path: Any) -> None:
    """A small network of TabPFN with random weights, since those that were trained come from a hub."""
    import torch
    from tabpfn import TabPFNRegressor as Regressor
    from tabpfn.architectures import ARCHITECTURES
    from tabpfn.architectures.shared.bar_distribution import FullSupportBarDistribution

    config = {"max_num_classes": 0, "num_buckets": 50, "emsize": 16, "nhead": 2, "nlayers": 1, "features_per_group": 2}
    architecture = ARCHITECTURES["tabpfn_v2"]
    torch.manual_seed(0)
    weights = architecture.get_architecture(architecture.parse_config(config)[0]).state_dict()
    criterion = FullSupportBarDistribution(torch.linspace(-4.0, 4.0, 51)).state_dict()
    path = tmp_path / "tabpfn-regressor.ckpt"
    weights = {**weights, **{f"criterion.{key}": x for key, x in criterion.items()}}
    torch.save({"config": config, "state_dict": weights, "architecture_name": "tabpfn_v2"}, path)
    X = np.random.default_rng(0).normal(size=(60, 2))
    models = [Regressor(model_path=path, n_estimators=2, device="cpu", random_state=seed) for seed in range(2)]
    members = up.from_model([model.fit(X, np.sin(X[:, 0])) for model in models], X[:5]).members
    for i, model in enumerate(models):
        own = model.predict(X[:5], output_type="full", quantiles=[0.1])
        assert_allclose(members.mean[i], own["mean"], rtol=1e-4, atol=1e-5)
        assert_allclose(members.quantile(0.1)[i], own["quantiles"][0], rtol=1e-4)


def test_bars_of_several_models_by_arrays_and_by_the_models(page: Callable) -> None:
    names = page("tabpfn")
    models = [TabPFNRegressor(each["logits"], each["criterion"]) for each in names["outputs"]]
    members = up.from_model(models, names["X_new"]).members
    assert_allclose(members.mass, names["ens"].members.mass, rtol=1e-12)
    assert_array_equal(members.edges, names["ens"].members.edges)
    assert members.options() == {"outer": "half_normal"}


def test_quantiles_of_tabicl_by_arrays_and_by_the_models(page: Callable) -> None:
    class TabICLRegressor:
        """As TabICL's, whose weights come from a hub."""

        __module__ = "tabicl._sklearn.regressor"

        def __init__(self, values: np.ndarray) -> None:
            self.values = values

        def predict(self, X: np.ndarray, output_type: str, alphas: list[float]) -> np.ndarray:
            assert (output_type, len(X)) == ("quantiles", 40)
            return self.values[:, : len(alphas)]

    names = page("tabicl")
    ens = up.from_model([TabICLRegressor(values) for values in names["outputs"]], names["X_new"], levels=names["levels"])
    assert_array_equal(ens.members.values, names["ens"].members.values)
    assert_array_equal(ens.members.values[:, 2].T, names["outputs"][2])
    wide = np.sort(np.random.default_rng(0).normal(size=(40, 99)), axis=1)
    assert len(up.from_model(TabICLRegressor(wide), names["X_new"]).members.levels) == 99


@pytest.mark.libraries
def test_quantiles_are_those_of_tabicl(tmp_path: Any) -> None:
    """A small network of TabICL with random weights, since those that were trained come from a hub."""
    import torch
    from tabicl import TabICLRegressor
    from tabicl._model.tabicl import TabICL

    one = {"col_num_blocks": 1, "row_num_blocks": 1, "icl_num_blocks": 1, "col_nhead": 2, "row_nhead": 2, "icl_nhead": 2}
    config = {
        "max_classes": 0,
        "num_quantiles": 99,
        "embed_dim": 16,
        "col_num_inds": 8,
        "row_num_cls": 2,
        "zero_init": False,
        **one,
    }
    torch.manual_seed(0)
    torch.save({"config": config, "state_dict": TabICL(**config).state_dict()}, tmp_path / "weights.ckpt")
    X = np.random.default_rng(0).normal(size=(60, 2))
    options = {"model_path": tmp_path / "weights.ckpt", "allow_auto_download": False, "n_estimators": 2, "device": "cpu"}
    models = [TabICLRegressor(random_state=seed, **options).fit(X, np.sin(X[:, 0])) for seed in range(2)]
    members = up.from_model(models, X[:5], levels=[0.1, 0.5, 0.9]).members
    for i, model in enumerate(models):
        own = model.predict(X[:5], output_type="quantiles", alphas=[0.1, 0.5, 0.9])
        assert_allclose(members.values[:, i].T, own, rtol=1e-6)


@pytest.mark.libraries
def test_members_of_tabm_are_its_outputs(page: Callable) -> None:
    import torch

    names = page("tabm")
    with torch.no_grad():
        own = names["network"].eval()(torch.tensor(names["X_new"], dtype=torch.float32))
    assert_array_equal(names["ens"].members.mean, own[..., 0].T)
    assert_allclose(names["ens"].members.variance, own[..., 1].T.exp(), rtol=1e-6)


@pytest.mark.libraries
def test_children_of_bags_of_autogluon_average_to_the_bags(page: Callable, tmp_path: Any) -> None:
    from autogluon.tabular import TabularPredictor

    names = page("autogluon")
    predictor, table, table_new = names["predictor"], names["table"], names["table_new"]
    values = names["ens"].members.values
    for i, bag in enumerate(predictor.model_names(level=1)):
        own = predictor.predict(table_new, model=bag).to_numpy()
        assert_allclose(values[:, 3 * i : 3 * i + 3].mean(axis=1).T, own, rtol=1e-5, atol=1e-6)
    empty = TabularPredictor("y", path=str(tmp_path), verbosity=0)
    numbers = empty.fit(table[:150], hyperparameters={"LR": {}, "RF": {"n_estimators": 10}})
    with pytest.raises(UnsupportedError, match="model RandomForest, child 0: Part predicts numbers without noise"):
        up.from_model(numbers, table_new)
    members = up.from_model(numbers, table_new, validation=(table[150:], table["y"][150:])).members
    for i, model in enumerate(numbers.model_names(level=1)):
        assert_allclose(members.mean[i], numbers.predict(table_new, model=model), rtol=1e-6)
        error = np.mean((numbers.predict(table[150:], model=model) - table["y"][150:]) ** 2)
        assert_allclose(members.variance[i], error, rtol=1e-6)


@pytest.mark.libraries
def test_models_of_pytabkit_average_to_its_prediction(page: Callable) -> None:
    """All levels, of which its own predict_ensemble keeps the first."""
    from pytabkit import RealMLP_TD_S_Regressor

    names = page("pytabkit")
    X, y, X_new, members = names["X"], names["y"], names["X_new"], names["ens"].members
    assert (members.levels, members.batch_shape) == ((0.1, 0.5, 0.9), (3, 40))
    assert_allclose(members.values.mean(axis=1).T, names["model"].predict(X_new), rtol=1e-5, atol=1e-5)
    model = RealMLP_TD_S_Regressor(n_cv=2, n_epochs=5, device="cpu", random_state=0).fit(X[:150], y[:150])
    ens = up.from_model(model, X_new, validation=(X[150:], y[150:]))
    assert_allclose(ens.members.mean, model.predict_ensemble(X_new), rtol=1e-6)
    assert_allclose(ens.mixture.mean, model.predict(X_new), rtol=1e-5)
    errors = np.mean((model.predict_ensemble(X[150:]) - y[150:]) ** 2, axis=1)
    assert_allclose(ens.members.variance[:, 0], errors, rtol=1e-5)


def test_models_that_predict_no_numbers_are_refused() -> None:
    class TabularPredictor:
        __module__ = "autogluon.tabular.predictor.predictor"
        problem_type = "multiclass"

    with pytest.raises(UnsupportedError, match="problem_type is multiclass; uqprism takes regression and quantile"):
        up.from_model(TabularPredictor(), SimpleNamespace())
