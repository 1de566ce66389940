"""Choosing a measure: by advice, and by one's own data without being fooled by noise."""

from __future__ import annotations

import json

import numpy as np
import pytest

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism import tasks
from uqprism.tasks.result import TaskResult
from uqprism.tasks.selection import ChosenMeasure


@pytest.mark.parametrize(
    ("task", "measure"),
    [
        ("selective_prediction", "crps.total.members.members"),
        ("ood_detection", "log.excess.members.members"),
        ("active_learning", "log.excess.members.members"),
    ],
)
def test_the_advice_names_measures_that_exist_and_its_best_evidence(task: str, measure: str) -> None:
    advice = tasks.recommend(task)
    assert advice.measure == measure
    evident = {each.measure for each in advice.evidence}
    assert measure in evident
    assert {measure, *advice.alternatives} | evident <= {each.name for each in up.catalogue()} | {"random"}
    values = [each.value for each in advice.evidence]
    assert values == sorted(values, reverse=task == "ood_detection")
    assert json.loads(advice.to_json())["measure"] == measure
    assert advice.to_pandas().loc[measure, "paper"] in values


def test_short_names_of_tasks_and_misspelt_ones() -> None:
    assert tasks.recommend("ood") is tasks.recommend("ood_detection")
    with pytest.raises(up.UqprismError, match="unknown task 'selectiv_prediction'; did you mean 'selective_prediction'"):
        tasks.recommend("selectiv_prediction")


def test_a_clear_winner_is_chosen() -> None:
    rng = np.random.default_rng(0)
    error = rng.exponential(size=800)
    table = {name: rng.normal(size=800) for name in ("crps.total.members.members", "log.total.members.members")}
    table["mine"] = error + 0.1 * rng.normal(size=800)
    found = tasks.select_measure(table, error=error)
    assert found.candidates == (found.measure,) == ("mine",)
    assert "mine is the best" in found.reason
    assert found.to_pandas().loc["crps.total.members.members", "status"] == "worse"


@pytest.mark.slow
def test_measures_that_rank_alike_are_counted_once() -> None:
    ens, target = ensemble(500)
    table = up.evaluate(ens)
    found = tasks.select_measure(table, error=tasks.prediction_error(ens, target), margin=0.05)
    assert found.duplicates["crps.total.members.mixture"] == "crps.total.members.members"
    assert found.measure not in found.duplicates
    assert not set(found.candidates) & set(found.duplicates)
    rows = {row["measure"]: row["status"] for row in found.rows()}
    assert rows["crps.total.members.mixture"] == "ranks as crps.total.members.members"
    assert rows[found.measure] == "chosen"


@pytest.mark.slow
def test_detection_data_choose_an_excess_risk() -> None:
    (ens, _), (far, _) = ensemble(400), ensemble(400, shift=2.0, seed=1)
    found = tasks.select_measure(up.evaluate(ens), ood=up.evaluate(far))
    assert ".excess." in found.measure
    assert found.result.task == "ood_detection"


@pytest.mark.slow
@pytest.mark.parametrize("task", ["selective_prediction", "ood_detection"])
def test_on_pure_noise_the_recommended_measure_is_chosen_and_not_the_luckiest(task: str) -> None:
    default = tasks.recommend(task).measure
    names = [*(measure.name for measure in up.catalogue()[::3]), default]
    chosen, luckiest = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table, outside = ({name: rng.normal(size=n) for name in names} for n in (300, 200))
        given = {"error": rng.exponential(size=300)} if task == "selective_prediction" else {"ood": outside}
        found = tasks.select_measure(table, **given, resamples=100)
        chosen.append(found.measure)
        luckiest.append(found.result.best())
    assert chosen.count(default) >= 17
    assert luckiest.count(default) <= 4


def test_measures_that_part_only_outside_are_no_duplicates() -> None:
    rng = np.random.default_rng(0)
    noise, outside = rng.exponential(size=500), rng.exponential(size=500)
    table = {"bayes": noise, "total": noise + 1e-4 * rng.random(500)}
    found = tasks.select_measure(table, ood={"bayes": outside, "total": outside + 5.0})
    assert found.measure == "total"
    assert not found.duplicates


def test_the_best_is_not_thrown_away_for_ranking_nearly_alike() -> None:
    """A few points may carry most of the error."""
    rng = np.random.default_rng(0)
    error = rng.exponential(size=2000) ** 2
    error[:5] = 3000.0
    good = rng.random(2000) + 0.05 * error
    bad = good.copy()
    good[:5], bad[:5] = 1e6, -1.0
    assert tasks.select_measure({"bad": bad, "good": good}, error=error).measure == "good"


def test_without_evidence_it_says_so() -> None:
    error = np.random.default_rng(0).exponential(size=50)
    assert "no better than chance (1)" in tasks.select_measure({"upside_down": -error}, error=error).reason


TWO = [0.0, 1.0]


@pytest.mark.parametrize(
    ("table", "given", "message"),
    [
        (np.arange(5.0), {"error": np.arange(5.0)}, "needs 20 points or more, got 5"),
        (np.arange(50.0), {"error": np.arange(50.0), "resamples": 0}, "needs 20 resamples or more, got 0"),
        (TWO, {}, "got neither"),
        (TWO, {"error": TWO, "ood": {"a": TWO}}, "got both"),
    ],
)
def test_too_little_evidence_or_two_kinds_of_it_are_refused(table, given, message) -> None:
    with pytest.raises(up.UqprismError, match=message):
        tasks.select_measure({"a": table}, **given)


def test_the_summary_shows_the_best_and_how_many_measures_a_line_stands_for() -> None:
    """Here the best is a twin of a simpler measure."""
    values = {"crps.total.members.members": 1.0, "crps.total.pooled.pooled": 1.1, "log.excess.mixture.mixture": 0.2}
    result = TaskResult("selective_prediction", "prr", True, values)
    twins = {"crps.total.pooled.pooled": "crps.total.members.members"}
    found = ChosenMeasure("crps.total.members.members", "", ("crps.total.members.members",), twins, result)
    shown = [(row["measure"], row["rank_alike"], row["status"]) for row in found.summary()]
    assert shown == [
        ("crps.total.members.members", 2, "chosen"),
        ("crps.total.pooled.pooled", 2, "best, ranks as crps.total.members.members"),
        ("log.excess.mixture.mixture", 1, "worse"),
    ]
