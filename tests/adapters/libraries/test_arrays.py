"""Chunked arrays with named axes against the same arrays in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.testing import assert_allclose

import uqprism as up


def test_chunked_arrays_give_what_arrays_in_memory_give(page: Callable) -> None:
    """Members are last; land is NaN; every chunk is computed by itself."""
    names = page("xarray")
    data, table = names["data"], names["table"]
    assert data.chunks["y"] == (10, 10)
    mean, variance = (np.moveaxis(names[key], 2, 0) for key in ("mean", "variance"))
    d = up.decompose(up.EnsemblePrediction.gaussian(mean=mean[:, 1:], variance=variance[:, 1:]), rule="crps")
    assert_allclose(table["crps.bayes.members"].transpose("y", "x").values[1:], d.aleatoric, rtol=1e-12)
    assert_allclose(table["crps.excess.members.members"].transpose("y", "x").values[1:], d.epistemic, rtol=1e-9)
    assert np.isnan(table["crps.bayes.members"].sel(y=0, x=0))
    assert int(np.isnan(table["crps.bayes.members"]).sum()) == 1
    assert_allclose(names["ens"].members.mean, mean[:, 1:])
