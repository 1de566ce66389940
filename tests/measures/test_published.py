"""The paper's numbers under our names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import uqprism as up
from uqprism.errors import ArgumentError, UnknownNameError
from uqprism.measures import published
from uqprism.measures.published import Cell


def test_cells_of_the_tables_are_by_truth_and_prediction() -> None:
    """The column 3a,1 has the matched truth and the members' prediction, as the paper's own numbers tell.

    Under squared error a total with the members as prediction and the matched truth has the noise and twice the spread, like
    total 1,1; a Bayes risk has no prediction.
    """
    found = published.table("selective_prediction_mean")
    assert found["crps.total.members.matched"] == Cell(0.319, 0.007)
    assert found["crps.excess.mixture.matched"] == Cell(0.504, 0.006)
    assert found["quadratic.excess.mixture.pooled"] == Cell(0.503, 0.007)
    assert found["log.bayes.pooled"] == Cell(0.357, 0.007)
    assert found["squared_error.total.members.matched"] == found["squared_error.total.members.members"]
    assert found["squared_error.total.mixture.pooled"] == found["squared_error.bayes.members"]


@pytest.mark.parametrize("row", published.rows("ood_detection_full"))
def test_identities_that_hold_exactly_hold_in_the_table(row: str) -> None:
    """They would not with prediction and truth exchanged: total.mixture.members is bayes.mixture, not total.members.members."""
    found = published.table("ood_detection_full", row)
    for rule in ("crps", "log", "quadratic", "squared_error"):
        assert found[f"{rule}.total.members.mixture"] == found[f"{rule}.total.members.members"]
    ensemble = up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [2.0]])
    table = up.evaluate(ensemble)
    assert table["crps.total.members.mixture"] == pytest.approx(table["crps.total.members.members"])
    assert table["crps.total.mixture.members"] == pytest.approx(table["crps.bayes.mixture"])


def test_each_table_has_the_57_cells_that_the_paper_fills() -> None:
    assert published.tables() == [
        "selective_prediction_mean",
        "ood_detection_mean",
        "active_learning_rank",
        "selective_prediction_full",
        "ood_detection_full",
    ]
    assert len(published.table("ood_detection_mean")) == len(published.table("selective_prediction_full", "sky")) == 57
    ranks = published.table("active_learning_rank")
    assert len(ranks) == 58
    assert ranks["random"] == Cell(20.5, 5.89)
    assert len(published.measures()) == 64
    assert set(published.table("ood_detection_mean")) < {measure.name for measure in published.measures()}
    assert [measure.name for measure in published.measures(("log",))][-2:] == [
        "log.excess.mixture.matched",
        "log.excess.mixture.pooled",
    ]


def test_the_means_are_those_of_the_full_tables() -> None:
    rows = [published.table("ood_detection_full", row) for row in published.rows("ood_detection_full")]
    for name, cell in published.table("ood_detection_mean").items():
        assert np.mean([row[name].value for row in rows]) == pytest.approx(cell.value, abs=1.5e-3), name


def test_excess_2_1_is_printed_as_excess_1_1() -> None:
    found = published.table("ood_detection_mean")
    for rule in ("crps", "log", "quadratic", "squared_error"):
        assert found[f"{rule}.excess.members.mixture"] == found[f"{rule}.excess.members.members"]
        assert published.printed_as(f"{rule}.excess.members.mixture") == f"{rule}.excess.members.members"
    for name in ("log.excess.mixture.members", "log.total.members.mixture", "log.bayes.mixture", "random"):
        assert published.printed_as(name) == name


def test_unknown_tables_and_rows_are_told_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'ood_detection_mean'"):
        published.table("ood_detection_means")
    with pytest.raises(UnknownNameError, match="'Fashion MNIST'; choose from CIFAR-10"):
        published.table("ood_detection_full", "Fashion MNIST")
    with pytest.raises(ArgumentError, match="rows of its own: choose from"):
        published.table("ood_detection_full")
    with pytest.raises(ArgumentError, match="has no rows"):
        published.table("ood_detection_mean", "SVHN")


def test_the_numbers_are_part_of_the_package() -> None:
    stored = Path(published.__file__).parent / "paper_tables.json"
    assert len(json.loads(stored.read_text())["active_learning_rank"]["CRPS"]) == 17
