"""Recalibration finds the factors that were put in, leaves good predictions alone, and keeps members, family and split."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uqprism as up
from tests.families.test_conformance import SMOOTH, make
from uqprism.errors import ArgumentError, BadFileError, InvalidValueError, UnsupportedError
from uqprism.tasks.recalibration import rescaled

N = 3000


def truth(noise: float, disagreement: float, seed: int = 0, n: int = N) -> tuple[up.EnsemblePrediction, np.ndarray]:
    """Outcomes from one member at random of an ensemble that has been made too narrow by these factors."""
    rng = np.random.default_rng(seed)
    scale = np.exp(0.5 * rng.normal(size=n))
    offset = np.exp(rng.normal(size=n)) * rng.normal(size=(20, n))
    offset -= offset.mean(axis=0)
    centre = rng.normal(size=n)
    y = centre + offset[rng.integers(0, 20, n), np.arange(n)] + scale * rng.normal(size=n)
    return up.EnsemblePrediction.gaussian(mean=centre + offset / disagreement, scale=np.broadcast_to(scale / noise, (20, n))), y


@pytest.mark.parametrize("rule", ["crps", "log"])
@pytest.mark.parametrize("factors", [(2.0, 1.5), (0.6, 2.5)])
def test_finds_the_factors_that_were_taken_out(factors, rule) -> None:
    ens, y = truth(*factors)
    found = up.recalibrate(ens, y, rule=rule)
    assert found.kept
    assert_allclose((found.noise, found.disagreement), factors, rtol=0.12)
    assert found.after < found.before
    assert up.calibration(found.apply(ens), y).verdict() == "about right"


def test_predictions_that_are_right_are_left_alone_and_the_sentence_says_so() -> None:
    ens, y = truth(1.0, 1.0)
    found = up.recalibrate(ens[:300], y[:300])
    assert not found.kept
    assert found.apply(ens) is ens
    assert found.sentence.startswith("Not recalibrated: the best factors")
    assert "not significantly better than doing nothing" in str(found)
    assert (found.noise, found.disagreement) == (1.0, 1.0)


def test_noise_alone_is_rarely_kept() -> None:
    kept = 0
    for seed in range(40):
        ens, y = truth(1.0, 1.0, seed + 1)
        kept += up.recalibrate(ens[:60,], y[:60], seed=seed).kept
    assert kept <= 6  # 5 % of 40 are 2


def test_the_mean_stays_and_noise_and_disagreement_move_by_their_own_factors() -> None:
    ens, _ = truth(1.0, 1.0)
    moved = rescaled(ens[:50], 3.0, 0.5)
    assert_allclose(moved.mixture.mean, ens[:50].mixture.mean, rtol=1e-12)
    before, after = (up.decompose(each, "squared_error") for each in (ens[:50], moved))
    assert_allclose(after.bayes, 9.0 * before.bayes)
    assert_allclose(after.excess, 0.25 * before.excess)


@pytest.mark.parametrize("name", SMOOTH)
def test_factors_of_one_change_nothing_and_others_widen_or_spread_every_family(name: str) -> None:
    ens = up.EnsemblePrediction(make(name, (4, 5)), weights=[0.1, 0.2, 0.3, 0.4])
    same = rescaled(ens, 1.0, 1.0).members
    for parameter in ens.members.arguments():
        if getattr(ens.members, parameter, None) is not None:
            assert_allclose(getattr(same, parameter), getattr(ens.members, parameter), rtol=1e-9)
    before = up.decompose(ens, "crps")
    wide, spread = up.decompose(rescaled(ens, 1.4, 1.0), "crps"), up.decompose(rescaled(ens, 1.0, 1.5), "crps")
    assert (wide.bayes > before.bayes).mean() > 0.9
    assert (spread.excess > before.excess).mean() > 0.8
    assert type(rescaled(ens, 0.5, 2.0).members) is type(ens.members)
    if ens.members.support[0] is not None:
        assert_allclose(rescaled(ens, 1.4, 1.5).members.support[0], ens.members.support[0])


def in_lists(n: int = 400) -> dict[str, up.EnsemblePrediction]:
    rng = np.random.default_rng(0)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    centre = 0.2 * rng.normal(size=(3, n))
    values = centre[:, None] + np.array([-0.8, -0.3, 0.0, 0.3, 0.8])[:, None]
    edges = np.linspace(-3.0, 3.0, 13)
    inner = np.exp(-4.0 * (0.5 * (edges[1:] + edges[:-1])[:, None] - centre[:, None]) ** 2)
    return {
        "draws": up.EnsemblePrediction.samples(centre[:, None] + 0.4 * rng.normal(size=(3, 30, n))),
        "quantiles": up.EnsemblePrediction.quantiles(levels=levels, values=values),
        "histogram": up.EnsemblePrediction.histogram(edges=edges, probabilities=inner / inner.sum(axis=1, keepdims=True)),
        "mixture": up.EnsemblePrediction(
            up.Mixture(up.Gaussian(mean=np.stack([centre - 0.2, centre + 0.2]), scale=np.full((2, 3, n), 0.3)))
        ),
    }


@pytest.mark.parametrize("name", ["draws", "quantiles", "histogram", "mixture"])
def test_draws_bars_quantiles_and_mixtures_are_widened_alike(name: str) -> None:
    ens, y = in_lists()[name], np.random.default_rng(1).normal(size=400)
    found = up.recalibrate(ens, y)
    assert found.kept
    assert found.noise > 1.3 or found.disagreement > 1.5
    moved = found.apply(ens)
    assert moved.members.name == name
    assert up.calibration(moved, y).verdict() == "about right"
    one = rescaled(ens, 2.0, 1.0)
    assert_allclose(one.members.mean, ens.members.mean, atol=1e-9)
    assert_allclose(one.members.variance, 4.0 * ens.members.variance, rtol=1e-9)


def test_a_family_of_ones_own_without_bounds_is_widened_though_only_quantiles_say_so() -> None:
    class Cubed(up.families.Family):
        """Cubes of logistic variables, about a location."""

        name = "cubed"
        parameters = {"location": "location", "scale": "scale"}  # noqa: RUF012
        mean = property(lambda self: self.location)
        variance = property(lambda self: 50.0 * self.scale**2)

        def _base(self, y: np.ndarray) -> np.ndarray:
            return np.cbrt((y - self.location) / self.scale)

        def cdf(self, y: np.ndarray) -> np.ndarray:
            return 1.0 / (1.0 + np.exp(-self._base(y)))

        def quantile(self, level: float) -> np.ndarray:
            return self.location + self.scale * (np.log(np.float64(level)) - np.log1p(-np.float64(level))) ** 3

    ens = up.EnsemblePrediction(Cubed(location=np.zeros((2, 3)), scale=np.ones((2, 3))))
    assert_allclose(rescaled(ens, 2.0, 1.0).members.scale, 2.0)


def test_a_single_member_has_noise_alone_and_arrays_keep_library_and_precision() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    one = up.EnsemblePrediction.gaussian(mean=torch.zeros(1, N), scale=torch.full((1, N), 0.5))
    found = up.recalibrate(one, rng.normal(size=N))
    assert found.disagreement == 1.0
    assert_allclose(found.noise, 2.0, rtol=0.1)
    assert found.apply(one).members.scale.dtype == torch.float32


def test_saved_factors_are_loaded_as_they_were(tmp_path) -> None:
    found = up.recalibrate(*truth(2.0, 1.5))
    found.save(tmp_path / "factors.json")
    again = up.Recalibration.load(tmp_path / "factors.json")
    assert again == found
    assert repr(again).startswith("<Recalibration: noise x ")
    (tmp_path / "other.json").write_text('{"format": "something"}')
    with pytest.raises(BadFileError, match="was not written by Recalibration"):
        up.Recalibration.load(tmp_path / "other.json")
    dataclasses.replace(found, noise=-1.0).save(tmp_path / "bad.json")
    with pytest.raises(BadFileError, match="factors must be positive"):
        up.Recalibration.load(tmp_path / "bad.json")


def test_what_cannot_be_recalibrated_is_told() -> None:
    ens, y = truth(1.0, 1.0)
    with pytest.raises(InvalidValueError, match="'squared_error' sees only the mean"):
        up.recalibrate(ens, y, rule="squared_error")
    with pytest.raises(InvalidValueError, match="needs 20 rows or more, got 5"):
        up.recalibrate(ens[:5], y[:5])
    bars = up.EnsemblePrediction.histogram(edges=np.arange(5.0), probabilities=np.full((2, 4, 50), 0.25))
    with pytest.raises(InvalidValueError, match="rule 'log' gives row 3 no finite score"):
        up.recalibrate(bars, np.where(np.arange(50) == 3, 9.0, 2.5), rule="log")
    counts = up.EnsemblePrediction(up.Poisson(rate=np.full((3, 50), 2.0)))
    with pytest.raises(
        UnsupportedError, match="poisson members cannot be recalibrated by factors, because their values are counts"
    ):
        up.recalibrate(counts, np.full(50, 2.0))
    found = up.recalibrate(*truth(2.0, 1.5))
    with pytest.raises(ArgumentError, match="fitted for gaussian members, got draws"):
        found.apply(in_lists()["draws"])
