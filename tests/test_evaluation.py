"""What `evaluate` and `decompose` take and give."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uqprism as up

E, rng = up.EnsemblePrediction, np.random.default_rng(0)
MADE = {
    "gaussian": E.gaussian(mean=rng.normal(size=(3, 2)), scale=1.0),
    "laplace": E.laplace(location=rng.normal(size=(3, 2)), scale=1.0),
    "lognormal": E(up.LogNormal(log_mean=rng.normal(size=(3, 2)), log_scale=1.0)),
    "counts": E(up.families.Poisson(rate=rng.uniform(1.0, 5.0, size=(3, 2)))),
    "draws": E.samples(rng.normal(size=(3, 9, 2))),
    "bars": E.histogram(edges=np.arange(5.0), probabilities=rng.dirichlet(np.ones(4), size=(3, 2)).transpose(0, 2, 1)),
    "quantiles": E.quantiles(levels=[0.1, 0.5, 0.9], values=np.sort(rng.normal(size=(3, 3, 2)), axis=1)),
    "mixtures": E(up.Mixture(up.Gaussian(mean=rng.normal(size=(2, 3, 2)), variance=np.ones((2, 3, 2))))),
}
TWO = up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [2.0]])


def test_measures_may_be_one_name_or_repeated() -> None:
    assert list(up.evaluate(TWO, "crps.bayes.members")) == ["crps.bayes.members"]
    assert list(up.evaluate(TWO, ["log.bayes.pooled", "crps.bayes.members", "log.bayes.pooled"])) == [
        "log.bayes.pooled",
        "crps.bayes.members",
    ]
    assert_allclose(up.decompose(TWO, up.rules.Log).total, up.decompose(TWO, "log").total)


def test_measures_may_be_patterns_and_sets() -> None:
    whole = up.evaluate(TWO)
    for asked, count in (("crps.*", 36), ("usual", 12), ("all", 144), (["*.bayes.members", "log.bayes.*"], 7)):
        table = up.evaluate(TWO, asked)
        assert len(table) == count
        assert all(table[name] == whole[name] for name in table)


def test_parametrised_rules_take_a_name() -> None:
    rules = [up.rules.Quantile(0.1, name="low"), up.rules.Quantile(0.9, name="high")]
    table = up.evaluate(TWO, up.catalogue(rules))
    assert len(table) == 72
    assert table["low.excess.members.members"] != table["high.excess.members.members"]
    default = up.evaluate(TWO, up.catalogue([up.rules.Quantile(0.1), up.rules.GaussianKernel(2.5), up.rules.GaussianKernel()]))
    assert default["quantile_0_1.bayes.members"] == table["low.bayes.members"]
    assert default["gaussian_kernel_2_5.bayes.members"] != default["gaussian_kernel.bayes.members"]
    again = up.evaluate(TWO, table.measures)
    assert all(again[name] == table[name] for name in table), "a table's measures know the rules they came from"


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Points are cut into chunks and sorted by difficulty; every result comes back to its own place."""
    mean = rng.normal(size=(4, 60)) * 10.0 ** rng.uniform(-6, 1, size=60)
    ens = up.EnsemblePrediction.gaussian(mean=mean, scale=np.exp(rng.normal(size=(4, 60))))
    whole = up.evaluate(ens)
    monkeypatch.setattr("uqprism.backends.reference.ELEMENTS", 4 * 256 * 7)
    cut = up.evaluate(ens)
    for name in whole:
        assert_allclose(cut[name], whole[name], rtol=1e-10, err_msg=name)
    torch = pytest.importorskip("torch")
    tensors = up.EnsemblePrediction.gaussian(mean=torch.tensor(mean), scale=torch.tensor(ens.members.scale))
    for name, values in up.evaluate(tensors).items():
        assert_allclose(values.numpy(), whole[name], rtol=1e-9, atol=1e-300, err_msg=name)


def test_decomposition_has_its_aliases() -> None:
    d = up.decompose(TWO, rule="log")
    assert d.aleatoric is d.bayes
    assert d.epistemic is d.excess
    assert d.exactness["excess"] == up.Exactness("closed form", 1e-10)


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize("kind", MADE)
def test_no_points_give_no_numbers(kind: str, backend: str) -> None:
    """A filter may leave no rows: everything is empty, and its exactness is what it is with rows."""
    some, none = MADE[kind], MADE[kind][:0]
    measures = ["crps.*", "squared_error.*"] if kind in ("draws", "counts") else None
    full, empty = (up.evaluate(each, measures, backend=backend) for each in (some, none))
    assert dict(empty.exactness) == dict(full.exactness)
    assert all(values.shape == (0,) for values in empty.values())
    assert none.mixture.quantile([0.1, 0.9]).shape == (2, 0)
    assert up.rules.CRPS().score(none.mixture, np.zeros(0)).shape == (0,)
