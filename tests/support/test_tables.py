"""Whatever holds a number per point becomes a pandas table, with the index of the user's rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import uqprism as up
from uqprism.errors import ShapeError

RNG = np.random.default_rng(5)
ENSEMBLE = up.EnsemblePrediction.gaussian(mean=RNG.normal(size=(3, 4)), scale=np.exp(RNG.normal(size=(3, 4))))
INDEX = pd.Index(["a", "b", "c", "d"], name="station")


def test_risks_and_measures_keep_the_index_of_the_rows() -> None:
    split, table = up.decompose(ENSEMBLE), up.evaluate(ENSEMBLE, ["crps.bayes.members"])
    frame = split.to_pandas(index=INDEX)
    assert list(frame) == ["total", "bayes", "excess"]
    assert frame.loc["c", "excess"] == split.excess[2]
    assert frame.join(table.to_pandas(index=INDEX))["crps.bayes.members"].tolist() == split.bayes.tolist()
    assert split.to_pandas().index.tolist() == [0, 1, 2, 3]


def test_points_of_any_shape_are_rows_in_their_order() -> None:
    grid = up.EnsemblePrediction.gaussian(mean=RNG.normal(size=(3, 2, 5)), variance=np.ones((3, 2, 5)))
    split = up.decompose(grid)
    assert_array_equal(split.to_pandas()["total"], split.total.ravel())


def test_an_index_of_another_length_is_refused() -> None:
    with pytest.raises(ShapeError, match="an entry for each of the 4 points, got 3"):
        up.decompose(ENSEMBLE).to_pandas(index=INDEX[:3])
