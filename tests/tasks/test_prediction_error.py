"""Errors of members of other families, with weights, and in the other array libraries."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import uqprism as up
from uqprism.tasks import prediction_error

WEIGHTS = np.array([0.5, 0.2, 0.3])


def ensembles() -> dict[str, up.EnsemblePrediction]:
    rng = np.random.default_rng(4)
    centre, scale = rng.normal(size=(3, 40)), np.exp(rng.normal(size=(3, 40)))
    make = up.EnsemblePrediction
    return {
        "gaussian": make.gaussian(mean=centre, scale=scale, weights=WEIGHTS),
        "far apart": make.gaussian(mean=1e6 + 1e3 * centre, scale=1e-3 * scale),
        "laplace": make.laplace(location=centre, scale=scale, weights=WEIGHTS),
        "student_t": make.student_t(location=centre, scale=scale, df=np.full((3, 40), 5.0)),
        "samples": make.samples(rng.normal(size=(3, 7, 40)), weights=WEIGHTS),
    }


@pytest.mark.parametrize("family", ensembles())
def test_the_crps_is_the_rules_own_for_every_family(family: str) -> None:
    ensemble = ensembles()[family]
    target = np.asarray(ensemble.mixture.mean) + np.random.default_rng(5).normal(size=40)
    expected = up.rules.CRPS().score(ensemble.mixture, target)
    assert_allclose(prediction_error(ensemble, target, "crps"), expected, rtol=1e-9)


def test_errors_of_tensors_are_arrays() -> None:
    ensemble = ensembles()["gaussian"]
    mean, scale = (torch.tensor(x) for x in (ensemble.members.mean, ensemble.members.scale))
    target = np.linspace(-2.0, 2.0, 40)
    found = prediction_error(up.EnsemblePrediction.gaussian(mean=mean, scale=scale, weights=WEIGHTS), target, "crps")
    assert isinstance(found, np.ndarray)
    assert_allclose(found, prediction_error(ensemble, target, "crps"), rtol=1e-12)
