"""The catalogue, and how a choice of measures is written."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.ensemble.approximations import Candidates, approximation, approximations
from uqprism.errors import ArgumentError, UnknownNameError
from uqprism.measures import select_measures
from uqprism.rules import PAPER


def names(measures: object) -> list[str]:
    return [measure.name for measure in select_measures(measures)]


def test_the_catalogue_holds_144_measures_each_once() -> None:
    measures = up.catalogue()
    assert len(measures) == len({m.name for m in measures}) == 144
    counts = {rule: sum(m.rule == rule for m in measures) for rule in PAPER}
    assert counts == dict.fromkeys(PAPER, 36)
    assert sum(m.risk == "bayes" for m in measures) == 16
    assert all((m.prediction is None) == (m.risk == "bayes") for m in measures)


def test_the_named_sets() -> None:
    """The catalogue is the default; the usual twelve have members in both roles."""
    assert select_measures() == select_measures("all") == up.catalogue()
    assert select_measures(None, default="usual") == select_measures("usual")
    assert names("usual") == [
        f"{rule}.{rest}" for rule in PAPER for rest in ("total.members.members", "bayes.members", "excess.members.members")
    ]


def test_measures_by_name_pattern_and_all() -> None:
    assert len(names("all")) == 144
    assert len(names("crps.*")) == 36
    assert names("*.bayes.members") == [f"{rule}.bayes.members" for rule in ("crps", "log", "quadratic", "squared_error")]
    assert names(["log.bayes.mixture, crps.bayes.members", "log.bayes.*"])[:2] == ["log.bayes.mixture", "crps.bayes.members"]
    assert len(names(["log.bayes.mixture, crps.bayes.members", "log.bayes.*"])) == 5
    assert len(names("quantile.*")) == 36


def test_unknown_measures_suggest_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'crps'"):
        select_measures("crsp.bayes.members")
    with pytest.raises(UnknownNameError, match="did you mean 'crps'"):
        select_measures("crsp.*")
    with pytest.raises(UnknownNameError, match=r"no measure matches 'crps\.bays\.\*'; .*uqprism catalogue"):
        select_measures("crps.bays.*")
    with pytest.raises(ArgumentError, match="at least one measure"):
        select_measures([])


def test_two_rules_of_one_name_are_refused() -> None:
    ens = up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [2.0]])
    with pytest.raises(up.UqprismError, match="two different rules named 'mine'"):
        up.evaluate(ens, up.catalogue([up.rules.Quantile(0.1, name="mine"), up.rules.Quantile(0.9, name="mine")]))


def test_a_new_approximation_is_one_function(rng: np.random.Generator) -> None:
    """Registered under a name, it serves as prediction and as truth, and is in the catalogue."""
    ens = up.EnsemblePrediction.gaussian(mean=rng.normal(size=(3, 5)), scale=np.exp(rng.normal(size=(3, 5))))

    @approximation("first", single=True)
    def first(ensemble):
        return Candidates.single(ensemble.members.map(lambda x: x[0]))

    try:
        members = ens.members
        d = up.decompose(ens, rule="crps", prediction="first", truth="members")
        single = up.Gaussian(mean=members.mean[0], scale=members.scale[0])
        assert_allclose(d.excess, up.rules.CRPS().divergence(prediction=single, truth=members).mean(axis=0), rtol=1e-12)
        assert_allclose(up.decompose(ens, rule="crps", prediction=first).excess, d.excess)
        assert up.decompose(ens, rule="log", prediction="mixture", truth="first").excess.shape == (5,)
        assert len(up.catalogue()) == 4 * (25 + 5 + 25)
        assert len(names("usual")) == 12
        table = up.evaluate(ens)
        assert_allclose(table["crps.excess.first.members"], d.excess)
        assert not table["crps.excess.first.first"].any()
        assert table["squared_error.excess.first.mixture"].all(), "its mean is not that of the mixture"
        assert up.Measure.parse("crps.bayes.first").paper_label(order="prediction,truth") == "R_Bayes^{first}"
    finally:
        approximations.remove("first")
    assert len(up.catalogue()) == 144
    with pytest.raises(up.UqprismError, match="no approximation"):
        up.decompose(ens, prediction=first)
