"""What a result knows: its best measure, the ones as good, its files, and averages."""

from __future__ import annotations

import json

import numpy as np
import pytest

import uqprism as up
from uqprism.tasks import TaskResult
from uqprism.tasks.resampling import not_worse


def result(values: dict[str, float], *, higher: bool = False, noise: float = 0.01, seed: int = 0, **more) -> TaskResult:
    rng = np.random.default_rng(seed)
    replicates = np.array(list(values.values())) + noise * rng.normal(size=(400, len(values)))
    return TaskResult("a_task", "metric", higher, values, replicates, **more)


def test_best_follows_the_direction_and_ties_go_to_the_first() -> None:
    values = {"a": 0.4, "b": 0.2, "c": 0.2, "d": 0.9}
    assert result(values).best() == "b"
    assert result(values, higher=True).best() == "d"
    assert result(values).ranked() == ["b", "c", "a", "d"]
    assert dict(result(values)) == values


def test_a_selection_of_measures_keeps_their_numbers() -> None:
    whole = result({"a": 1.0, "b": 2.0, "c": 3.0}, metrics={"other": {"a": 4.0, "b": 5.0, "c": 6.0}})
    part = whole.select(["c", "a"])
    assert dict(part) == {"c": 3.0, "a": 1.0}
    assert part.spread()["a"] == whole.spread()["a"]
    assert part.metrics["other"] == {"c": 6.0, "a": 4.0}
    with pytest.raises(KeyError, match=r"did you mean 'crps\.bayes\.members'"):
        result({"crps.bayes.members": 1.0, "log.bayes.members": 2.0})["crps.bays.members"]


def test_spread_and_interval_are_those_of_the_resamples() -> None:
    found = result({"a": 1.0, "b": 2.0}, noise=0.1)
    assert found.spread()["a"] == pytest.approx(0.1, rel=0.1)
    low, high = found.interval(0.9)["b"]
    assert (low, high) == (pytest.approx(2 - 0.1645, abs=0.03), pytest.approx(2 + 0.1645, abs=0.03))
    bare = TaskResult("a_task", "metric", False, {"a": 1.0})
    with pytest.raises(up.UqprismError, match="no spread; run the task with resamples=500"):
        bare.spread()
    assert list(bare.to_pandas().columns) == ["metric"]


def test_measures_far_behind_are_worse_and_those_near_or_within_the_margin_are_not() -> None:
    found = result({"far": 0.5, "best": 0.1, "near": 0.11})
    assert found.not_worse() == ["best", "near"]
    assert {row["measure"]: row["not_worse"] for row in found.rows()} == {"best": True, "near": True, "far": False}
    close = result({"simple": 0.9996, "best": 0.9999}, higher=True, noise=1e-6)
    assert close.not_worse() == ["best"]
    assert close.not_worse(margin=0.001) == ["best", "simple"]


def test_a_difference_hidden_in_common_noise_is_found_by_pairing() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(size=(500, 1))
    values = np.array([0.0, 0.1])
    replicates = values + common + 0.01 * rng.normal(size=(500, 2))
    assert not_worse(values, replicates, higher_is_better=True).tolist() == [False, True]
    without = np.array([1.0, 1.0, 2.0])  # without any noise the best stays
    assert not_worse(without, np.tile(without, (50, 1)), higher_is_better=True).any()


@pytest.mark.slow
def test_the_truly_best_stays_about_as_often_as_promised_although_it_is_one_of_many() -> None:
    """A hundred equal measures: each is the best, and testing against the luckiest alone would throw most of them out."""
    rng = np.random.default_rng(1)
    stayed, naive = [], []
    for _ in range(100):
        values = rng.normal(size=100)
        replicates = values + rng.normal(size=(300, 100))
        stayed.append(not_worse(values, replicates, higher_is_better=True)[0])
        naive.append(values.max() - values[0] < 1.645 * np.sqrt(2))
    assert 0.88 <= np.mean(stayed) <= 1.0
    assert np.mean(naive) < 0.6


def test_json_has_every_measure_with_its_numbers(tmp_path) -> None:
    found = result({"a": 1.0, "b": 2.0}, metrics={"other": {"a": 5.0, "b": 6.0}}, settings={"seed": 3})
    text = found.to_json(tmp_path / "result.json")
    data = json.loads(text)
    assert (tmp_path / "result.json").read_text() == text + "\n"
    assert {"best": "a", "metric": "metric", "higher_is_better": False, "settings": {"seed": 3}}.items() <= data.items()
    assert [row["measure"] for row in data["measures"]] == ["a", "b"]
    assert data["measures"][1]["other"] == 6.0
    assert data["measures"][1]["spread"] == found.spread()["b"]


def test_it_saves_and_loads_with_its_parts(tmp_path) -> None:
    parts = {
        "one/two": result({"a": 1.0, "b": 2.0}, curves={"x": np.arange(3.0)}, metrics={"m": {"a": 0.0, "b": 1.0}}),
        "three": result({"a": 2.0, "b": 3.0}, seed=1, curves={"x": np.ones(3)}, metrics={"m": {"a": 2.0, "b": 5.0}}),
    }
    found = TaskResult.average(parts)
    found.save(tmp_path / "result.npz")
    back = TaskResult.load(tmp_path / "result.npz")
    assert back.to_json() == found.to_json()
    np.testing.assert_array_equal(back.replicates, found.replicates)
    np.testing.assert_array_equal(back.curves["x"], [0.5, 1.0, 1.5])
    np.testing.assert_array_equal(back.parts["one/two"].replicates, parts["one/two"].replicates)
    assert list(back.parts) == ["one/two", "three"]


def test_the_average_over_data_sets_is_narrower_than_each_of_them() -> None:
    parts = {str(seed): result({"a": float(seed), "b": 2.0}, seed=seed, noise=0.1) for seed in range(4)}
    found = TaskResult.average(parts)
    assert found["a"] == 1.5
    assert found.spread()["a"] == pytest.approx(0.05, rel=0.15)


def test_the_average_over_runs_counts_how_runs_differ() -> None:
    """For runs without noise of their own, the standard error of the mean."""
    values = np.random.default_rng(0).normal(size=8)
    parts = {str(i): TaskResult("a_task", "metric", True, {"a": float(value)}) for i, value in enumerate(values)}
    found = TaskResult.average(parts, seed=0)
    assert found["a"] == pytest.approx(values.mean())
    assert found.spread()["a"] == pytest.approx(values.std(ddof=1) / np.sqrt(8), rel=0.1)
    noisy = {str(i): result({"a": float(value)}, higher=True, noise=1.0, seed=i) for i, value in enumerate(values)}
    expected = np.sqrt(values.var(ddof=1) / 8 + 1.0 / 8)
    assert TaskResult.average(noisy, seed=0).spread()["a"] == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_a_few_runs_that_agree_by_chance_are_no_evidence(runs: int) -> None:
    """Of two measures that are equally good, each stays 19 times out of 20, however few the runs are."""
    rng = np.random.default_rng(runs)
    stayed, inside = [], []
    for _ in range(400):
        parts = [TaskResult("a_task", "metric", True, {"a": x, "b": y}) for x, y in rng.normal(size=(runs, 2))]
        found = TaskResult.average(parts, seed=0)
        stayed.append("a" in found.not_worse())
        low, high = found.interval()["a"]
        inside.append(low < 0.0 < high)
    assert 0.92 <= np.mean(stayed) <= 0.98
    assert 0.92 <= np.mean(inside) <= 0.98


def test_many_measures_and_few_runs() -> None:
    """Each of twenty equally good measures stays about as often as promised."""
    rng = np.random.default_rng(0)
    stayed = []
    for _ in range(150):
        parts = [TaskResult("a_task", "metric", True, {str(i): x for i, x in enumerate(row)}) for row in rng.normal(size=(3, 20))]
        stayed.append("0" in TaskResult.average(parts, seed=0).not_worse())
    assert np.mean(stayed) >= 0.9


def test_parts_of_different_kinds_are_refused() -> None:
    with pytest.raises(up.UqprismError, match="1 of 2 have"):
        TaskResult.average([result({"a": 1.0}), TaskResult("a_task", "metric", False, {"a": 1.0})], seed=0)
    with pytest.raises(up.UqprismError, match="'y' and 'x' differ"):
        TaskResult.average({"x": result({"a": 1.0}), "y": result({"b": 1.0})})
    with pytest.raises(up.UqprismError, match="at least one"):
        TaskResult.average({})


def test_printing_shows_the_best_first_and_how_many_more_there_are() -> None:
    lines = str(result({f"m{i}": float(i) for i in range(20)})).splitlines()
    assert lines[0] == "a_task: metric (lower is better), 20 measures"
    assert lines[1].split()[:2] == ["m0", "0.0000"]
    assert lines[-1] == "  ... and 8 more"
