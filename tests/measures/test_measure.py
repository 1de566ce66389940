"""One measure, one name, everywhere."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.errors import UnknownNameError
from uqprism.rules import PAPER


def test_names_go_there_and_back() -> None:
    for measure in up.catalogue([*PAPER, "gaussian_kernel", "bregman", "quantile"]):
        assert up.Measure.parse(measure.name) == measure
        assert str(measure) == measure.name
    assert up.Measure.parse("log.bayes.mixture").prediction is None


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
