"""Curves: the lines are those of the result, and the words name them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from matplotlib.colors import same_color, to_rgba

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism import plots as figures
from uqprism.errors import ArgumentError, UnknownNameError
from uqprism.plots.style import RISK_COLOURS
from uqprism.tasks import TaskResult, ood_detection, selective_prediction

from .conftest import DEFAULT, PAIRWISE, PRR_TITLE, legend, lines


def test_retention_curves_are_those_of_the_result(selective: TaskResult) -> None:
    ax = figures.retention_curves(selective, [DEFAULT, "log.bayes.mixture"])
    drawn = lines(ax)
    assert list(drawn) == [DEFAULT, "log.bayes.mixture", "random", "oracle:"]
    for name, curve in ((DEFAULT, DEFAULT), ("random", "random order"), ("oracle:", "oracle order")):
        np.testing.assert_allclose(drawn[name].get_xdata(), 100.0 * selective.curves["retention"])
        np.testing.assert_array_equal(drawn[name].get_ydata(), selective.curves[curve])


def test_the_oracle_lies_below_all_and_is_black(selective: TaskResult) -> None:
    drawn = lines(figures.retention_curves(selective))
    assert all(np.all(drawn["oracle:"].get_ydata() <= line.get_ydata() + 1e-12) for line in drawn.values())
    for name, style in (("oracle:", "-"), ("random", "--")):
        assert same_color(drawn[name].get_color(), "black")
        assert drawn[name].get_linestyle() == style


def test_the_legend_tells_each_value_and_what_it_means(selective: TaskResult) -> None:
    ax = figures.retention_curves(selective, DEFAULT)
    assert legend(ax)[0] == f"{DEFAULT} (PRR {selective[DEFAULT]:.3f})"
    assert ax.get_legend().get_title().get_text() == PRR_TITLE
    assert ax.get_xlabel() == "points kept, the most certain first (%)"
    assert ax.get_ylabel() == "mean error of the points kept"


def test_an_error_at_a_share_is_told_in_words(selective: TaskResult) -> None:
    metric = {"metric": "error_at_80", "measured": selective.metrics["error_at_80"], "metrics": {}}
    ax = figures.retention_curves(dataclasses.replace(selective, **metric), DEFAULT)
    assert legend(ax)[0] == f"{DEFAULT} (error at 80 % {selective.metrics['error_at_80'][DEFAULT]:.3f})"
    assert ax.get_legend().get_title().get_text() == "error at 80 %: mean error of the 80 % most certain points (lower is better)"


def test_by_default_the_recommended_measure_and_the_best_of_each_risk(selective: TaskResult) -> None:
    drawn = lines(figures.retention_curves(selective))
    names = [name for name in drawn if name not in {"random", "oracle:"}]
    assert DEFAULT in names
    assert names == sorted(names, key=selective.ranked().index)
    for risk in ("total", "bayes", "excess"):
        best = next(name for name in selective.ranked() if f".{risk}." in name)
        apart = [np.abs(selective.curves[best] - selective.curves[name]).mean() for name in names]
        assert min(apart) <= 0.005 * np.ptp(selective.curves[best]), "it, or one that looks the same, is drawn"
    assert len({(line.get_color(), str(line._dash_pattern)) for line in drawn.values()}) == len(drawn)


def test_measures_that_look_the_same_are_drawn_once(selective: TaskResult) -> None:
    names = {DEFAULT: 0.5, "crps.total.members.mixture": 0.4, "log.bayes.members": 0.6}
    few = dataclasses.replace(selective, measured=names, replicates=None, metrics={})
    assert list(lines(figures.retention_curves(few))) == [DEFAULT, "log.bayes.members", "random", "oracle:"]


def test_unknown_measures_suggest_the_nearest_and_missing_curves_the_parts_that_have_them(selective: TaskResult) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean '{DEFAULT}'"):
        figures.retention_curves(selective, ["crps.total.members.member"])
    bare = dataclasses.replace(selective, curves={}, parts={"first run": selective})
    with pytest.raises(ArgumentError, match=r"'retention'.*'first run'"):
        figures.retention_curves(bare)


def test_roc_curves_are_those_of_the_result(detection: TaskResult) -> None:
    ax = figures.roc_curves(detection, [PAIRWISE, "crps.bayes.members"])
    drawn = lines(ax)
    assert list(drawn) == [PAIRWISE, "crps.bayes.members", "chance"]
    np.testing.assert_allclose(drawn[PAIRWISE].get_xdata(), 100.0 * detection.curves["false_positive_rate"])
    np.testing.assert_allclose(drawn[PAIRWISE].get_ydata(), 100.0 * detection.curves[PAIRWISE])
    assert list(drawn["chance"].get_xdata()) == list(drawn["chance"].get_ydata()) == [0, 100]
    assert legend(ax)[0] == f"{PAIRWISE} (AUROC {detection[PAIRWISE]:.3f})"
    assert "false positive rate" in ax.get_xlabel()
    assert "true positive rate" in ax.get_ylabel()
    assert PAIRWISE in lines(figures.roc_curves(detection))  # the recommended measure is there by default


def test_roc_curves_tell_the_auroc_whatever_the_metric_was(table: up.MeasureTable, detection: TaskResult) -> None:
    other = ood_detection(table, up.evaluate(ensemble(200, shift=1.0, seed=2)[0]), metric="fpr95", resamples=2)
    assert legend(figures.roc_curves(other, PAIRWISE))[0] == f"{PAIRWISE} (AUROC {detection[PAIRWISE]:.3f})"
    assert other[PAIRWISE] != detection[PAIRWISE]


def test_learning_curves_are_those_of_the_result_and_random_is_dashed(learning: TaskResult) -> None:
    ax = figures.learning_curves(learning)
    drawn = lines(ax)
    assert list(drawn) == ["a0", "a1", "a2", "a3", "a4", "random"]
    for name, line in drawn.items():
        np.testing.assert_array_equal(line.get_xdata(), learning.curves["labelled"])
        np.testing.assert_array_equal(line.get_ydata(), learning.curves[name])
    assert same_color(drawn["random"].get_color(), "black")
    assert drawn["random"].get_linestyle() == "--"
    assert all(not same_color(drawn[name].get_color(), "black") for name in learning.ranked()[:5])
    assert ax.get_xlabel() == "labelled points"
    assert ax.get_ylabel() == "negative log-likelihood of the test set"


def test_the_spread_is_shaded_where_it_is_known(learning: TaskResult) -> None:
    ax = figures.learning_curves(learning, ["a1", "a0"])
    (shade,) = ax.collections
    corners = shade.get_paths()[0].vertices
    first = corners[corners[:, 0] == 20.0][:, 1]
    assert (first.min(), first.max()) == (2.5, 3.5)
    assert to_rgba(lines(ax)["a0"].get_color())[:3] == tuple(shade.get_facecolor()[0][:3])
    assert ax.get_legend().get_title().get_text() == "shaded: one standard deviation between runs"
    assert figures.learning_curves(learning, ["a1"]).get_legend().get_title().get_text() == ""


def test_the_spread_is_that_between_runs_where_the_result_holds_them(learning: TaskResult) -> None:
    other = dataclasses.replace(learning, curves={**learning.curves, "a1": learning.curves["a1"] + 1.0})
    mean = TaskResult.average({"seed 0": learning, "seed 1": other})
    ax = figures.learning_curves(dataclasses.replace(mean, metric="rmse"), ["a1"])
    corners = ax.collections[0].get_paths()[0].vertices
    first = corners[corners[:, 0] == 20.0][:, 1]
    np.testing.assert_allclose((first.min(), first.max()), 3.6 + np.array([-1.0, 1.0]) / np.sqrt(2.0))
    assert ax.get_ylabel() == "root mean squared error of the test set"


def test_no_two_of_many_lines_look_the_same(selective: TaskResult) -> None:
    ax = figures.retention_curves(selective, list(selective)[:18])
    looks = {(line.get_color(), str(line.get_linestyle()), str(line._dash_pattern)) for line in ax.get_lines()}
    assert len(looks) == 20


def test_a_line_has_the_colour_of_its_risk(selective: TaskResult) -> None:
    names = ["crps.excess.members.members", PAIRWISE, "crps.bayes.members", DEFAULT]
    drawn = figures.retention_curves(selective, names).get_lines()[:4]
    assert [line.get_color() for line in drawn] == [RISK_COLOURS[name.split(".")[1]] for name in names]
    own = selective_prediction({"mine": np.arange(30.0)}, error=np.arange(30.0), resamples=0)
    assert figures.retention_curves(own).get_lines()[0].get_color() not in RISK_COLOURS.values()


def test_curves_of_excess_risks_are_of_those_that_see_the_members() -> None:
    doubt = np.arange(50.0)
    names = {"crps.excess.mixture.matched": doubt, "crps.excess.members.members": doubt[::-1], DEFAULT: doubt**2 % 7}
    ax = figures.retention_curves(up.selective_prediction(names, error=doubt, resamples=0))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert not any("mixture.matched" in label for label in labels)
    (own,) = (label for label in labels if label.startswith("crps.excess.members.members (PRR"))
    assert own.endswith("\ndisagreement, CRPS")
