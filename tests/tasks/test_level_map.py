"""A map of levels finds the shape that outcomes have, is kept only if it helps, and leaves an ordinary ensemble."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import uqprism as up
from tests.families.test_conformance import make
from tests.tasks.test_recalibration import in_lists, truth
from uqprism.ensemble.origin import Origin
from uqprism.errors import BadFileError
from uqprism.rules import CRPS, Log
from uqprism.tasks.level_map import LEVELS, LevelMap, fit_map
from uqprism.tasks.recalibration import mean_scores

N = 4000


def skewed(n: int = N, seed: int = 0, apart: float = 0.05) -> tuple[up.EnsemblePrediction, np.ndarray]:
    """Gaussian members with the right means and variances, of outcomes whose noise is exponential."""
    rng = np.random.default_rng(seed)
    centre, scale = rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    y = centre + scale * (rng.exponential(size=n) - 1.0)
    mean = centre + apart * scale * rng.normal(size=(4, n))
    return up.EnsemblePrediction.gaussian(mean=mean, scale=np.broadcast_to(scale, (4, n))), y


@pytest.mark.parametrize("rule", [CRPS(), Log()])
def test_the_levels_become_the_probabilities_of_outcomes_up_to_the_quantiles(rule: up.rules.Rule) -> None:
    ens, y = skewed(apart=1e-9)
    found = fit_map(ens, y, rule)
    right = 1.0 - np.exp(-np.maximum(norm.ppf(LEVELS) + 1.0, 0.0))
    assert_allclose(found.moved, right, atol=4.0 * 0.5 / math.sqrt(N) + 10.0 / N)


def test_a_kept_map_mends_the_shape_and_noise_and_disagreement_still_add_up() -> None:
    ens, y = skewed()
    ens = up.EnsemblePrediction(ens.members, weights=[0.1, 0.2, 0.3, 0.4]).made_by(Origin("list", "boosting", 4))
    found = up.recalibrate(ens, y, level_map=True)
    assert found.level_map.kept
    assert "A map of levels was kept: it is better than" in found.sentence
    assert repr(found).endswith("levels mapped>")
    new, outcomes = skewed(seed=1)
    alone, both = (dataclasses.replace(found, level_map=each).apply(new) for each in (None, found.level_map))
    scores = [up.prediction_error(each, outcomes, "crps").mean() for each in (alone, both)]
    assert scores[1] < 0.97 * scores[0]
    assert both.members.name == "quantiles"
    risks = up.decompose(both, "crps")
    assert_allclose(risks.total, risks.bayes + risks.excess, rtol=1e-9)
    moved = found.apply(ens)
    assert moved.origin == ens.origin
    assert_allclose(moved.weights, ens.weights)


def test_members_keep_their_quantiles_which_get_other_levels() -> None:
    ens, _ = skewed(20)
    moved = np.array(LEVELS) ** 2
    found = LevelMap(LEVELS, tuple(moved)).apply(ens)
    for level, other in zip(LEVELS, moved, strict=True):
        assert_allclose(found.members.cdf(ens.members.quantile(level)), other, rtol=1e-9)


def test_the_map_that_changes_nothing_hardly_changes_scores() -> None:
    ens, y = truth(1.0, 1.0, n=500)
    same = LevelMap(LEVELS, LEVELS).apply(ens)
    for kind, most in (("crps", 5e-4), ("nll", 1e-2)):
        before, after = (up.prediction_error(each, y, kind).mean() for each in (ens, same))
        assert abs(after - before) < most * abs(before)


def test_a_map_of_right_predictions_is_rarely_kept() -> None:
    kept = 0
    for seed in range(40):
        ens, y = truth(1.0, 1.0, seed + 1)
        found = up.recalibrate(ens[:60], y[:60], seed=seed, level_map=True)
        kept += found.level_map.kept
        assert found.level_map.kept or found.apply(ens).members.name == "gaussian"
    assert kept <= 6  # 5 % of 40 are 2


def test_rows_count_as_much_as_they_matter_to_the_rule() -> None:
    """Wide rows fall low, narrow ones high: CRPS follows the wide, the log score all, and neither gains from a step aside."""
    rng = np.random.default_rng(0)
    scale = np.where(np.arange(N) % 4 == 0, 10.0, 1.0)
    level = np.where(scale > 1.0, rng.beta(1.0, 2.0, size=N), rng.beta(2.0, 1.0, size=N))
    ens, y = up.EnsemblePrediction.gaussian(mean=np.zeros((1, N)), scale=scale[None]), scale * norm.ppf(level)
    wide = 1.0 - (1.0 - np.array(LEVELS)) ** 2
    narrow = np.array(LEVELS) ** 2
    by_crps, by_log = (np.array(fit_map(ens, y, rule).moved) for rule in (CRPS(), Log()))
    assert_allclose(by_crps, (10.0 * wide + 3.0 * narrow) / 13.0, atol=0.05)
    assert_allclose(by_log, (wide + 3.0 * narrow) / 4.0, atol=0.05)
    for rule, best in ((CRPS(), by_crps), (Log(), by_log)):

        def cost(moved: np.ndarray, rule: up.rules.Rule = rule) -> float:
            return float(mean_scores(LevelMap(LEVELS, tuple(moved)).apply(ens), y, rule).mean())

        assert cost(best) < min(cost(best**0.9), cost(best**1.1), cost(by_log if rule.name == "crps" else by_crps))


@pytest.mark.parametrize(("name", "lower", "upper"), [("lognormal", 0.0, None), ("beta", 0.0, 1.0), ("gaussian", None, None)])
def test_bounds_stay(name: str, lower: float | None, upper: float | None) -> None:
    ens = up.EnsemblePrediction(make(name, (3, 5)))
    support = [None if bound is None else np.asarray(bound) for bound in ens.members.support]
    assert (support[0] is None) == (lower is None)
    found = LevelMap(LEVELS, tuple(np.sqrt(LEVELS))).apply(ens).members
    assert (found.levels[0] == 0.0) == (lower is not None)
    assert (found.levels[-1] == 1.0) == (upper is not None)
    for bound, outermost in zip(support, (found.values[0], found.values[-1]), strict=True):
        if bound is not None:
            assert_allclose(outermost, np.broadcast_to(bound, outermost.shape))


@pytest.mark.parametrize("name", ["draws", "quantiles", "histogram", "mixture"])
def test_draws_bars_quantiles_and_mixtures_are_mapped_alike(name: str) -> None:
    ens = in_lists()[name]
    y = np.random.default_rng(1).exponential(size=400) - 1.0
    found = up.recalibrate(ens, y, level_map=True)
    assert found.level_map.kept
    moved = found.apply(ens)
    assert moved.members.name == "quantiles"
    assert up.prediction_error(moved, y, "crps").mean() < found.level_map.before


def test_arrays_keep_library_and_precision() -> None:
    torch = pytest.importorskip("torch")
    ens, y = skewed(500)
    given = up.EnsemblePrediction(ens.members.map(lambda x: torch.as_tensor(np.array(x), dtype=torch.float32)))
    found = up.recalibrate(given, y, level_map=True)
    moved = found.apply(given).members.values
    assert moved.dtype == torch.float32
    assert_allclose(moved.numpy(), found.apply(ens).members.values, rtol=1e-4, atol=1e-4)


def test_a_saved_map_is_loaded_as_it_was(tmp_path) -> None:
    found = up.recalibrate(*skewed(500), level_map=True)
    found.save(tmp_path / "map.json")
    assert up.Recalibration.load(tmp_path / "map.json") == found
    for change in ({"moved": (0.5, 0.4)}, {"levels": (0.1, 1.2), "moved": (0.1, 0.2)}, {"kept": 1}):
        wrong = dataclasses.replace(found.level_map, **change)
        dataclasses.replace(found, level_map=wrong).save(tmp_path / "bad.json")
        with pytest.raises(BadFileError, match=r"increase between 0 and 1|must be true or false"):
            up.Recalibration.load(tmp_path / "bad.json")
