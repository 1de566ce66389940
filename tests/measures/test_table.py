"""Tables of measures."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.errors import UnknownNameError


@pytest.fixture
def table(rng: np.random.Generator) -> up.MeasureTable:
    return up.evaluate(up.EnsemblePrediction.gaussian(mean=rng.normal(size=(3, 5)), scale=np.exp(rng.normal(size=(3, 5)))))


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
