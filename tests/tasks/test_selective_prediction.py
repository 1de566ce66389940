"""Retention curves and what is made of them, against brute force from the definitions."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pandas as pd
import pytest
import torch

import uqprism as up
from tests.tasks.problems import ensemble, with_ties
from uqprism import tasks


def expected_errors(error: np.ndarray, uncertainty: np.ndarray) -> list[float]:
    """Each place of the ranking gets the mean error of its group of ties: what random tie-breaking expects there."""
    places = sorted(range(len(error)), key=lambda i: uncertainty[i])
    found = []
    for _, group in itertools.groupby(places, key=lambda i: uncertainty[i]):
        members = list(group)
        found += [sum(error[i] for i in members) / len(members)] * len(members)
    return found


def brute_area_paper(errors: list[float], percents: range = range(50, 101)) -> float:
    """The mean over retentions of the retained set's mean error, for a number of points that is a multiple of 100."""
    n = len(errors)
    return sum(sum(errors[: n * p // 100]) / (n * p // 100) for p in percents) / len(percents)


def brute_paper(error: np.ndarray, uncertainty: np.ndarray, percents: range = range(50, 101)) -> float:
    areas = [brute_area_paper(expected_errors(error, by), percents) for by in (uncertainty, error)]
    return (areas[0] - areas[1]) / (error.mean() - areas[1])


def brute_malinin(error: np.ndarray, uncertainty: np.ndarray) -> float:
    """Rejected points are replaced by the target; areas between the random line and the curves, by trapezia."""
    n = len(error)

    def area(errors: list[float]) -> float:
        heights = [sum(errors[:k]) / n for k in range(n + 1)]
        return sum((a + b) / 2 / n for a, b in itertools.pairwise(heights))

    random = error.mean() / 2
    curve, oracle = (area(expected_errors(error, by)) for by in (uncertainty, error))
    return (random - curve) / (random - oracle)


def brute_aurc(error: np.ndarray, uncertainty: np.ndarray) -> float:
    errors = expected_errors(error, uncertainty)
    return sum(sum(errors[:k]) / k for k in range(1, len(errors) + 1)) / len(errors)


def ratios(uncertainty: object, error: np.ndarray, **options: object) -> tuple[float, float]:
    """The paper's ratio and Malinin's of one uncertainty."""
    result = tasks.selective_prediction(uncertainty, error=error, resamples=0, **options)
    return result["uncertainty"], result.metrics["prr"]["uncertainty"]


@pytest.mark.parametrize("levels", [3, 40, 10**9])
@pytest.mark.parametrize("n", [100, 300])
def test_metrics_equal_their_definitions_with_and_without_ties(n: int, levels: int) -> None:
    rng = np.random.default_rng(n + levels)
    error, uncertainty = with_ties(rng, n, 50) ** 2, with_ties(rng, n, levels)
    result = tasks.selective_prediction(uncertainty, error=error, resamples=0)
    assert result["uncertainty"] == pytest.approx(brute_paper(error, uncertainty), rel=1e-12)
    found = {name: column["uncertainty"] for name, column in result.metrics.items()}
    assert found["prr"] == pytest.approx(brute_malinin(error, uncertainty), rel=1e-12)
    assert found["aurc"] == pytest.approx(brute_aurc(error, uncertainty), rel=1e-12)
    excess = brute_aurc(error, uncertainty) - brute_aurc(error, error)
    assert found["ause"] == pytest.approx(excess / error.mean(), rel=1e-12)
    for percent in (80, 90, 95):
        kept = expected_errors(error, uncertainty)[: n * percent // 100]
        assert found[f"error_at_{percent}"] == pytest.approx(np.mean(kept), rel=1e-12)


def test_any_retention_range_and_grid() -> None:
    rng = np.random.default_rng(4)
    error, uncertainty = rng.exponential(size=200), rng.normal(size=200)
    percents = range(10, 91, 5)
    found, _ = ratios(uncertainty, error, retentions=np.array(percents) / 100)
    assert found == pytest.approx(brute_paper(error, uncertainty, percents), rel=1e-12)
    at_35 = tasks.selective_prediction(uncertainty, error=error, metric="error_at_35", resamples=0)["uncertainty"]
    assert at_35 == pytest.approx(np.mean(expected_errors(error, uncertainty)[:70]))
    # A share that is no whole number of points counts a part of one.
    curve = tasks.retention_curve([1.0, 2.0, 6.0], [0.0, 1.0, 2.0], retentions=[0.5])
    assert curve.error[0] == pytest.approx((1.0 + 0.5 * 2.0) / 1.5)


def test_a_constant_uncertainty_is_exactly_random_and_the_error_itself_exactly_the_oracle() -> None:
    error = np.random.default_rng(0).normal(size=1234) ** 2
    constant = tasks.selective_prediction(np.full(1234, 0.3), error=error, resamples=20)
    assert constant["uncertainty"] == 1.0
    assert constant.metrics["prr"]["uncertainty"] == 0.0
    assert (constant.replicates == 1.0).all()
    assert ratios(error, error) == (0.0, 1.0)
    assert ratios(error, error, metric="ause")[0] == 0.0


def test_the_two_ratios_look_at_different_things() -> None:
    """Right about the worse half and upside down in the better one is perfect to the paper's, not to Malinin's."""
    error = np.arange(100.0)
    assert ratios(np.where(error < 50, 49 - error, error), error) == (0.0, pytest.approx(0.7500750075))


def test_documented_conversions() -> None:
    """Over every count: prr = ause / (1 - oracle's aurc / mean error); and a lower ratio is one less a higher one."""
    rng = np.random.default_rng(2)
    error, uncertainty = rng.exponential(size=400), rng.normal(size=400)
    every = np.arange(1, 401) / 400
    full = tasks.selective_prediction(uncertainty, error=error, retentions=every, resamples=0)
    oracle = brute_aurc(error, error)
    ause = full.metrics["ause"]["uncertainty"]
    assert full["uncertainty"] == pytest.approx(ause / (1 - oracle / error.mean()), rel=1e-10)
    assert full.metrics["aurc"]["uncertainty"] == pytest.approx(oracle + ause * error.mean(), rel=1e-10)


def test_retention_curve_lies_between_oracle_and_random_for_a_good_order() -> None:
    ens, target = ensemble(3000)
    error = tasks.prediction_error(ens, target)
    curve = tasks.retention_curve(error, up.evaluate(ens, "crps.total.members.members"))
    assert len(curve.retention) == 100
    assert (curve.oracle <= curve.error + 1e-12).all()
    assert (curve.error[:-1] < curve.random[:-1]).all()
    assert curve.error[-1] == pytest.approx(error.mean())
    np.testing.assert_allclose(curve.random, error.mean())


def test_negative_errors_such_as_log_scores_are_taken_by_the_papers_ratio_only() -> None:
    ens, target = ensemble(500)
    error = tasks.prediction_error(ens, target, "nll") - 10.0
    table = up.evaluate(ens, ["log.total.members.members"])
    result = tasks.selective_prediction(table, error=error, may_be_negative=True)
    assert 0.0 < result["log.total.members.members"] < 1.0
    assert set(result.metrics) == {"aurc", "error_at_80", "error_at_90", "error_at_95"}
    with pytest.raises(up.UqprismError, match=r"'prr'.*not negative.*metric='prr_paper'"):
        tasks.selective_prediction(table, error=error, metric="prr", may_be_negative=True)


SIGNED = np.array([0.5, -0.25, 1.0, -2.0] * 10)


@pytest.mark.parametrize(
    "call",
    [
        lambda table, error: tasks.selective_prediction(table, error=error),
        lambda table, error: tasks.select_measure(table, error=error),
        lambda table, error: tasks.retention_curve(error, table["mine"]),
    ],
)
def test_signed_errors_are_refused(call) -> None:
    table = {"mine": np.arange(40.0)}
    with pytest.raises(up.UqprismError, match=r"point 1 is -0\.25 \(20 in all\); pass squared or absolute errors"):
        call(table, SIGNED)
    call(table, SIGNED**2)
    call(table, np.append(SIGNED[:-1] ** 2, -1e-15))  # a difference, rounded below zero


def test_resamples_without_the_one_large_error_say_nothing() -> None:
    """Nor do those of two points that drew one of them twice."""
    error = np.where(np.arange(20) == 3, 1.0, 0.1)
    table = {"u": np.random.default_rng(0).random(20), "perfect": error}
    result = tasks.selective_prediction(table, error=error, resamples=2000)
    assert np.isnan(result.replicates[:, 0]).mean() == pytest.approx(0.95**20, abs=0.04)
    assert result.spread()["perfect"] < 1e-12
    two = tasks.selective_prediction([0.0, 1.0], error=[0.0, 1.0])
    assert two["uncertainty"] == two.spread()["uncertainty"] == 0.0
    assert 0.3 < np.isnan(two.replicates).mean() < 0.7


def test_tables_and_errors_that_are_not_of_the_same_points_are_refused() -> None:
    frame = pd.DataFrame({"u": [1.0, 2.0, 3.0]}, index=[5, 6, 7])
    error = pd.Series([1.0, 2.0, 3.0], index=[7, 6, 5])
    with pytest.raises(up.UqprismError, match="error must have the index of the table"):
        tasks.selective_prediction(frame, error=error)
    aligned = tasks.selective_prediction(frame, error=error.reindex(frame.index), resamples=0)
    assert aligned["u"] == pytest.approx(ratios([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])[0])
    square = {"u": np.arange(6.0).reshape(2, 3)}
    with pytest.raises(up.UqprismError, match=r"shape of the table's points \(2, 3\), got \(3, 2\)"):
        tasks.selective_prediction(square, error=np.arange(6.0).reshape(3, 2))


def test_a_measure_may_be_called_random() -> None:
    error = np.arange(10.0)
    result = tasks.selective_prediction({"random": error[::-1], "good": error}, error=error, resamples=0)
    np.testing.assert_allclose(result.curves["random order"], 4.5)
    assert result.curves["random"][0] == 9.0
    with pytest.raises(up.UqprismError, match="no measure can be named 'retention'"):
        tasks.selective_prediction({"retention": error}, error=error)


def test_the_bootstrap_spread_is_that_of_fresh_data() -> None:
    """The standard deviation over resamples of one data set is that over many data sets."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scale = np.exp(rng.normal(size=400))
        found.append(tasks.selective_prediction(scale, error=(scale * rng.normal(size=400)) ** 2, metric="prr"))
    spreads = [result.spread()["uncertainty"] for result in found]
    assert np.mean(spreads) == pytest.approx(np.std([result["uncertainty"] for result in found]), rel=0.3)


def test_resamples_are_paired_and_seeded() -> None:
    ens, target = ensemble(600)
    table = up.evaluate(ens, ["crps.total.members.members", "crps.total.members.mixture", "log.total.members.members"])
    error = tasks.prediction_error(ens, target)
    one, again = (tasks.selective_prediction(table, error=error, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.replicates, again.replicates)
    assert not np.array_equal(one.replicates, tasks.selective_prediction(table, error=error, seed=4).replicates)
    same, _, other = one.replicates.T
    np.testing.assert_allclose(same, one.replicates[:, 1])  # linear in the truth: the same ranking
    assert np.corrcoef(same, other)[0, 1] > 0.5


def test_beyond_twenty_thousand_points_the_spread_goes_on_falling() -> None:
    rng = np.random.default_rng(0)
    scale = np.exp(rng.normal(size=80_000))
    error = (scale * rng.normal(size=80_000)) ** 2
    results = (tasks.selective_prediction(scale[:n], error=error[:n], metric="aurc") for n in (20_000, 80_000))
    small, large = (result.spread()["uncertainty"] for result in results)
    assert large == pytest.approx(small / 2, rel=0.25)


def test_tables_may_be_mappings_frames_arrow_or_tensors() -> None:
    ens, target = ensemble(200)
    table = up.evaluate(ens, ["crps.total.members.members", "log.excess.members.members"])
    error = tasks.prediction_error(ens, target)
    expected = dict(tasks.selective_prediction(table, error=error, resamples=0))
    tensors = {name: torch.tensor(column, requires_grad=True) for name, column in table.items()}
    for given in (dict(table), table.to_pandas(), table.to_arrow(), tensors):
        assert dict(tasks.selective_prediction(given, error=torch.tensor(error), resamples=0)) == expected


NUMBERS = np.arange(4.0)


@pytest.mark.parametrize(
    ("table", "error", "options", "message"),
    [
        (NUMBERS, NUMBERS[:3], {}, r"error must have one value for each of the table's 4 points, got 3"),
        (NUMBERS, [0.0, 1.0, np.nan, 2.0], {}, r"error must not be NaN or infinite, point 2 is nan \(1 in all\); drop"),
        (NUMBERS, [0.0, 1.0, np.inf, 2.0], {}, r"error must not be NaN or infinite, point 2 is inf"),
        ({"u": [0.0, np.nan]}, [1.0, 2.0], {}, r"table\['u'\] must not be NaN, point 1"),
        (NUMBERS, np.ones(4), {}, r"error must differ between points, up to rounding all 4 are 1.*the error of each point"),
        (NUMBERS, 1e9 + 1e-7 * NUMBERS, {}, r"error must differ between points, up to rounding"),
        (NUMBERS, NUMBERS, {"retentions": [1.0]}, r"retentions must have a share below 1"),
        (NUMBERS, NUMBERS, {"metric": "95"}, r"unknown metric '95'"),
        (NUMBERS, NUMBERS, {"seed": -1}, r"seed must be an integer that is not negative, got -1"),
        (np.ma.masked_array(NUMBERS, NUMBERS > 2), NUMBERS, {}, r"table must not be masked"),
        ([1.0], [1.0], {}, r"at least 2 points, got 1"),
        ({"a": NUMBERS, "b": NUMBERS[:2]}, NUMBERS, {}, r"table must have one length, got 2 for 'b' and 4 for 'a'"),
        ({}, NUMBERS, {}, r"table has no measures"),
        ("scored.parquet", NUMBERS, {}, r"got the text 'scored.parquet'; read the file first"),
        (NUMBERS, NUMBERS, {"metric": "prr_papr"}, r"unknown metric 'prr_papr'; did you mean 'prr_paper'"),
        (NUMBERS, NUMBERS, {"metric": "error_at_200"}, r"above 0 and up to 100, got 200"),
        (NUMBERS, NUMBERS, {"retentions": [50, 100]}, r"retentions must be shares above 0 and up to 1"),
        (NUMBERS, NUMBERS, {"retentions": [0.5], "metric": "aurc"}, r"retentions are for metric='prr_paper'"),
        (NUMBERS, NUMBERS, {"resamples": -1}, r"resamples must be 0, for no spread, or 2 and more"),
        (NUMBERS, NUMBERS, {"resamples": 1}, r"resamples must be 0, for no spread, or 2 and more"),
        (np.ones((4, 2)), NUMBERS, {}, r"must have one axis as uncertainties, got shape \(4, 2\); name columns in a mapping"),
        ([{"a": NUMBERS}] * 2, NUMBERS, {}, r"table must be one table, got a list of several; name them in a mapping"),
        (["a", "b"], [1.0, 2.0], {}, r"must be real numbers"),
    ],
)
def test_bad_input_names_the_argument_and_the_remedy(table, error, options, message) -> None:
    with pytest.raises(up.UqprismError, match=message):
        tasks.selective_prediction(table, error=error, **options)


@pytest.mark.parametrize("kind", ["squared", "absolute", "nll", "crps"])
def test_prediction_errors_are_those_of_the_mixture(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ens, target = ensemble(50)
    mixture = ens.mixture
    expected = {
        "squared": (mixture.mean - target) ** 2,
        "absolute": np.abs(mixture.mean - target),
        "nll": -mixture.log_density(target),
        "crps": up.rules.CRPS().score(mixture, target),
    }[kind]
    monkeypatch.setattr(sys.modules["uqprism.tasks.prediction_error"], "PAIRS_AT_ONCE", 700)
    np.testing.assert_allclose(tasks.prediction_error(ens, target, kind), expected, rtol=1e-12)
    with pytest.raises(up.UqprismError, match=r"target must have the shape of the points \(50,\), got \(49,\)"):
        tasks.prediction_error(ens, target[:-1], kind)
