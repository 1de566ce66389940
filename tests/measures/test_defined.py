"""Measures that members do not have are left out of sets, and are exactly those that are refused by their names."""

from __future__ import annotations

import numpy as np
import pytest

import uqprism as up
from uqprism.errors import UqprismError, UqprismWarning

DRAWS = np.random.default_rng(0).normal(size=(2, 7, 1))
LEVELS = [0.1, 0.5, 0.9]
KINDS = {
    "draws": (up.EnsemblePrediction.samples(DRAWS), 94, "have no density"),
    "counts": (up.EnsemblePrediction.poisson(rate=[[1.0], [2.0]]), 112, "are counts"),
    "no tails": (
        up.EnsemblePrediction.quantiles(levels=LEVELS, values=np.sort(DRAWS[:, :3], axis=1), tails="none"),
        94,
        "no density",
    ),
    "equal": (
        up.EnsemblePrediction.quantiles(levels=LEVELS, values=[[[1.0], [2.0], [2.0]], [[1.0], [2.0], [4.0]]]),
        94,
        "no density",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_gives_what_applies_and_says_what_does_not(kind: str) -> None:
    ens, count, message = KINDS[kind]
    with pytest.warns(UqprismWarning, match=f"{144 - count} measures are left out, log.total.*{message}"):
        table = up.evaluate(ens)
    assert len(table) == count
    for measure in up.catalogue(["log", "quadratic"]):
        if measure.name in table:
            assert np.isfinite(table[measure.name]).all()
            continue
        with pytest.raises(UqprismError):
            up.evaluate(ens, [measure])


def test_sets_by_name_are_reduced_too() -> None:
    with pytest.warns(UqprismWarning, match="6 measures are left out"):
        assert len(up.evaluate(KINDS["draws"][0], "usual")) == 6
