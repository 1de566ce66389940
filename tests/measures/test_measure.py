"""Names, catalogue, tables: one measure, one name, everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.errors import UnknownNameError
from uqprism.rules import PAPER


@pytest.fixture
def table(rng: np.random.Generator) -> up.MeasureTable:
    return up.evaluate(up.EnsemblePrediction.gaussian(mean=rng.normal(size=(3, 5)), scale=np.exp(rng.normal(size=(3, 5)))))


def test_the_catalogue_holds_144_measures_each_once() -> None:
    measures = up.catalogue()
    assert len(measures) == len({m.name for m in measures}) == 144
    counts = {rule: sum(m.rule == rule for m in measures) for rule in PAPER}
    assert counts == dict.fromkeys(PAPER, 36)
    assert sum(m.risk == "bayes" for m in measures) == 16
    assert all((m.prediction is None) == (m.risk == "bayes") for m in measures)


def test_names_go_there_and_back() -> None:
    for measure in up.catalogue([*PAPER, "gaussian_kernel", "bregman", "quantile"]):
        assert up.Measure.parse(measure.name) == measure
        assert str(measure) == measure.name
    assert up.Measure.parse("log.bayes.mixture").prediction is None


def test_parametrised_rules_take_a_name() -> None:
    rules = [up.rules.Quantile(0.1, name="low"), up.rules.Quantile(0.9, name="high")]
    ens = up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [2.0]])
    table = up.evaluate(ens, up.catalogue(rules))
    assert len(table) == 72
    assert table["low.excess.members.members"] != table["high.excess.members.members"]
    default = up.evaluate(ens, up.catalogue([up.rules.Quantile(0.1), up.rules.GaussianKernel(2.5), up.rules.GaussianKernel()]))
    assert default["quantile_0_1.bayes.members"] == table["low.bayes.members"]
    assert default["gaussian_kernel_2_5.bayes.members"] != default["gaussian_kernel.bayes.members"]
    again = up.evaluate(ens, table.measures)
    assert all(again[name] == table[name] for name in table), "a table's measures know the rules they came from"


def test_two_rules_of_one_name_are_refused() -> None:
    ens = up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [2.0]])
    with pytest.raises(up.UqprismError, match="two different rules named 'mine'"):
        up.evaluate(ens, up.catalogue([up.rules.Quantile(0.1, name="mine"), up.rules.Quantile(0.9, name="mine")]))


def test_measures_may_be_one_name_or_repeated() -> None:
    ens = up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [2.0]])
    assert list(up.evaluate(ens, "crps.bayes.members")) == ["crps.bayes.members"]
    assert list(up.evaluate(ens, ["log.bayes.pooled", "crps.bayes.members", "log.bayes.pooled"])) == [
        "log.bayes.pooled",
        "crps.bayes.members",
    ]
    assert_allclose(up.decompose(ens, up.rules.Log).total, up.decompose(ens, "log").total)


def test_measures_are_checked_when_made() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'excess'"):
        up.Measure("crps", "exces", "members", "members")
    with pytest.raises(up.UqprismError, match="have no prediction"):
        up.Measure("crps", "bayes", "members", "mixture")


def test_paper_labels_have_two_orders_and_no_default() -> None:
    measure = up.Measure.parse("crps.excess.matched.members")
    assert measure.paper_label(order="prediction,truth") == "R_exc^{3a,1}"
    assert measure.paper_label(order="truth,prediction") == "R_exc^{1,3a}"
    assert up.Measure.parse("log.bayes.pooled").paper_label(order="truth,prediction") == "R_Bayes^{3b}"
    assert up.Measure.parse("log.total.mixture.members").paper_label(order="prediction,truth") == "R_tot^{2,1}"
    with pytest.raises(TypeError):
        measure.paper_label()
    with pytest.raises(UnknownNameError):
        measure.paper_label(order="truth")


def test_the_tables_of_the_paper_are_truth_first() -> None:
    """With the truth first, squared error totals with label 3a,1 equal those of 1,1: the order in the paper's tables."""
    ens = up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0], [3.0]], scale=[[1.0], [2.0], [0.5]])
    totals = {
        m.paper_label(order="truth,prediction"): up.evaluate(ens, [m])[m]
        for m in up.catalogue(["squared_error"])
        if m.risk == "total"
    }
    assert_allclose(totals["R_tot^{3a,1}"], totals["R_tot^{1,1}"])


def test_table_behaves_like_a_mapping(table: up.MeasureTable) -> None:
    assert len(table) == 144
    assert "crps.bayes.members" in table
    assert table[up.Measure.parse("crps.bayes.members")] is table["crps.bayes.members"]
    assert [m.name for m in table.measures] == list(table)
    assert repr(table) == "<MeasureTable: 144 measures, points (5,)>"
    with pytest.raises(UnknownNameError, match=r"did you mean 'crps.bayes.members'"):
        table["crps.bayes.member"]
    assert table.get("nothing", 3) == 3


def test_tables_become_data_frames_and_arrow(table: up.MeasureTable) -> None:
    frame, arrow = table.to_pandas(), table.to_arrow()
    assert list(frame.columns) == arrow.column_names == list(table)
    assert_allclose(frame["log.bayes.mixture"], table["log.bayes.mixture"])
    assert_allclose(arrow.column("log.bayes.mixture").to_numpy(), table["log.bayes.mixture"])


def test_tables_save_and_load(table: up.MeasureTable, tmp_path) -> None:
    table.save(tmp_path / "table.npz")
    again = up.MeasureTable.load(tmp_path / "table.npz")
    assert list(again) == list(table)
    assert again.exactness == table.exactness
    assert all(np.array_equal(again[name], table[name]) for name in table)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Points are cut into chunks and sorted by difficulty; every result comes back to its own place."""
    mean = rng.normal(size=(4, 60)) * 10.0 ** rng.uniform(-6, 1, size=60)
    ens = up.EnsemblePrediction.gaussian(mean=mean, scale=np.exp(rng.normal(size=(4, 60))))
    whole = up.evaluate(ens)
    monkeypatch.setattr("uqprism.backends.parts.ELEMENTS", 4 * 256 * 7)
    cut = up.evaluate(ens)
    for name in whole:
        assert_allclose(cut[name], whole[name], rtol=1e-10, err_msg=name)
    torch = pytest.importorskip("torch")
    tensors = up.EnsemblePrediction.gaussian(mean=torch.tensor(mean), scale=torch.tensor(ens.members.scale))
    for name, values in up.evaluate(tensors).items():
        assert_allclose(values.numpy(), whole[name], rtol=1e-9, atol=1e-300, err_msg=name)


def test_decomposition_has_its_aliases() -> None:
    d = up.decompose(up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [2.0]]), rule="log")
    assert d.aleatoric is d.bayes
    assert d.epistemic is d.excess
    assert d.exactness["excess"] == up.Exactness("closed form", 1e-10)


def test_log_bayes_of_the_mixture_has_cheap_bounds(rng: np.random.Generator) -> None:
    """Jensen below, the matched Gaussian above; both closed form, and the truth lies between."""
    ens = up.EnsemblePrediction.gaussian(mean=3 * rng.normal(size=(5, 20)), scale=np.exp(rng.normal(size=(5, 20))))
    table = up.evaluate(ens)
    lower, upper = up.log_bayes_mixture_bounds(ens)
    assert (lower <= table["log.bayes.mixture"]).all()
    assert (table["log.bayes.mixture"] <= upper).all()
    assert_allclose(lower, table["log.bayes.members"], rtol=1e-14)
    assert_allclose(upper, table["log.bayes.matched"], rtol=1e-14)


def test_a_new_approximation_is_one_function(rng: np.random.Generator) -> None:
    """Registered under a name, it serves as prediction and as truth."""
    from uqprism.ensemble.approximations import Candidates, approximations

    @approximations.register("first")
    def first(ensemble):
        return Candidates.single(ensemble.members.map(lambda x: x[0]))

    try:
        ens = up.EnsemblePrediction.gaussian(mean=rng.normal(size=(3, 5)), scale=np.exp(rng.normal(size=(3, 5))))
        members = ens.members
        d = up.decompose(ens, rule="crps", prediction="first", truth="members")
        single = up.Gaussian(mean=members.mean[0], scale=members.scale[0])
        assert_allclose(d.excess, up.rules.CRPS().divergence(prediction=single, truth=members).mean(axis=0), rtol=1e-12)
        assert_allclose(up.decompose(ens, rule="crps", prediction=first).excess, d.excess)
        assert up.decompose(ens, rule="log", prediction="mixture", truth="first").excess.shape == (5,)
    finally:
        approximations._entries.pop("first")
    with pytest.raises(up.UqprismError, match="no approximation"):
        up.decompose(ens, prediction=first)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("CRPS.bayes.members", "crps.bayes.members"),
        ("crps.excess.members", "crps.excess.members.members"),
        ("crps.bayes.members.members", "crps.bayes.members"),
        ("log.total.mixture.matchd", "log.total.mixture.matched"),
        ("crsp.bayes.members", "crps.bayes.members"),
    ],
)
def test_a_wrong_name_suggests_the_measure_that_was_meant(typed: str, meant: str) -> None:
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [2.0]]))
    with pytest.raises(up.UqprismError, match=f"did you mean '{meant}'"):
        table[typed]
