"""What figures show: the lines are the curves, the words name them, and nothing else changes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color, to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy import stats

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism import plots as figures
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UnknownNameError
from uqprism.plots.style import BLUE, GREY, ORANGE, RISK_COLOURS
from uqprism.plots.svg import render
from uqprism.report.charts import WIDTH
from uqprism.tasks import TaskResult, ood_detection, prediction_error, selective_prediction
from uqprism.tasks.rank_correlation import RankCorrelation, rank_correlation

PRR_TITLE = "PRR: the paper's prediction rejection ratio, 0: oracle, 1: random (lower is better)"
DEFAULT, PAIRWISE = "crps.total.members.members", "log.excess.members.members"


@pytest.fixture(scope="module")
def table() -> up.MeasureTable:
    return up.evaluate(ensemble(300)[0])


@pytest.fixture(scope="module")
def selective(table: up.MeasureTable) -> TaskResult:
    return selective_prediction(table, error=prediction_error(*ensemble(300)), resamples=50)


@pytest.fixture(scope="module")
def detection(table: up.MeasureTable) -> TaskResult:
    return ood_detection(table, up.evaluate(ensemble(200, shift=1.0, seed=2)[0]), resamples=50)


@pytest.fixture(scope="module")
def correlation(table: up.MeasureTable) -> RankCorrelation:
    return rank_correlation(table)


@pytest.fixture
def learning() -> TaskResult:
    labelled = np.array([20, 40, 60])
    means = {f"a{i}": np.array([3.0, 2.0, 1.0]) + 0.1 * i for i in range(7)} | {"random": np.array([4.0, 3.5, 3.0])}
    curves = {"labelled": labelled, **means, "a0 spread": np.array([0.5, 0.4, 0.3])}
    measured = {name: float(mean.mean()) for name, mean in means.items()}
    return TaskResult("active_learning", "nll", False, measured, curves=curves, figure="learning_curves")


def lines(ax: Any) -> dict[str, Any]:
    """Lines by the first word of their label."""
    return {line.get_label().split(" ")[0]: line for line in ax.get_lines()}


def legend(ax: Any) -> list[str]:
    """The first lines; below a measure's name stands what it is in words."""
    return [text.get_text().split("\n")[0] for text in ax.get_legend().get_texts()]


# Retention ------------------------------------------------------------------------------------------------------------


def test_retention_curves_are_those_of_the_result(selective: TaskResult) -> None:
    ax = figures.retention_curves(selective, [DEFAULT, "log.bayes.mixture"])
    drawn = lines(ax)
    assert list(drawn) == [DEFAULT, "log.bayes.mixture", "random", "oracle:"]
    for name, curve in ((DEFAULT, DEFAULT), ("random", "random order"), ("oracle:", "oracle order")):
        np.testing.assert_allclose(drawn[name].get_xdata(), 100.0 * selective.curves["retention"])
        np.testing.assert_array_equal(drawn[name].get_ydata(), selective.curves[curve])


def test_the_oracle_lies_below_all_and_is_black(selective: TaskResult) -> None:
    drawn = lines(figures.retention_curves(selective))
    oracle, chance = drawn["oracle:"], drawn["random"]
    assert all(np.all(oracle.get_ydata() <= line.get_ydata() + 1e-12) for line in drawn.values())
    assert same_color(oracle.get_color(), "black")
    assert same_color(chance.get_color(), "black")
    assert oracle.get_linestyle() == "-"
    assert chance.get_linestyle() == "--"


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


def test_an_unknown_measure_is_refused_with_the_nearest(selective: TaskResult) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean '{DEFAULT}'"):
        figures.retention_curves(selective, ["crps.total.members.member"])


def test_a_result_without_curves_names_the_parts_that_have_them(selective: TaskResult) -> None:
    bare = dataclasses.replace(selective, curves={}, parts={"first run": selective})
    with pytest.raises(ArgumentError, match=r"'retention'.*'first run'"):
        figures.retention_curves(bare)


# Detection ------------------------------------------------------------------------------------------------------------


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


def test_roc_curves_tell_the_auroc_whatever_the_metric_was(table: up.MeasureTable, detection: TaskResult) -> None:
    other = ood_detection(table, up.evaluate(ensemble(200, shift=1.0, seed=2)[0]), metric="fpr95", resamples=2)
    assert legend(figures.roc_curves(other, PAIRWISE))[0] == f"{PAIRWISE} (AUROC {detection[PAIRWISE]:.3f})"
    assert other[PAIRWISE] != detection[PAIRWISE]


def test_roc_curves_show_the_recommended_measure_by_default(detection: TaskResult) -> None:
    assert PAIRWISE in lines(figures.roc_curves(detection))


# Intervals ------------------------------------------------------------------------------------------------------------


def test_intervals_are_in_order_with_the_best_on_top(selective: TaskResult) -> None:
    ax = figures.intervals(selective, top=12)
    names = selective.ranked()[:12]
    assert [text.get_text() for text in ax.get_yticklabels()] == names
    assert ax.get_ylim() == (11.5, -0.5)
    dots = {int(row): value for line in ax.get_lines() for value, row in zip(*line.get_data(), strict=True)}
    assert [dots[row] for row in range(12)] == [selective[name] for name in names]
    ends = {int(low[1]): (low[0], high[0]) for lot in ax.collections for low, high in lot.get_segments()}
    assert [ends[row] for row in range(12)] == [selective.interval()[name] for name in names]
    assert ax.get_title(loc="left") == f"the best 12 of {len(selective)} measures"
    assert ax.get_xlabel().replace("\n", " ") == PRR_TITLE


def test_intervals_in_colour_are_not_worse_than_the_best(selective: TaskResult) -> None:
    ax = figures.intervals(selective, top=len(selective))
    names, good = selective.ranked(), set(selective.not_worse())
    assert 0 < len(good) < len(names)
    for line, lot in zip(ax.get_lines(), ax.collections, strict=True):
        drawn = {names[int(row)] for row in line.get_ydata()}
        in_colour = same_color(line.get_color(), BLUE)
        assert drawn == (good if in_colour else set(names) - good)
        assert same_color(lot.get_color()[0], BLUE if in_colour else GREY)
    assert legend(ax) == ["not significantly worse than the best", "significantly worse"]


def test_without_resamples_intervals_are_dots(selective: TaskResult) -> None:
    ax = figures.intervals(dataclasses.replace(selective, replicates=None), top=5)
    assert not ax.collections
    assert ax.get_legend() is None
    assert len(ax.get_lines()) == 1


def test_intervals_need_at_least_one_measure(selective: TaskResult) -> None:
    with pytest.raises(InvalidValueError, match="top must be at least 1"):
        figures.intervals(selective, top=0)


# Correlation ----------------------------------------------------------------------------------------------------------


def test_the_heat_map_is_the_matrix_in_clustered_order(correlation: RankCorrelation) -> None:
    part = correlation.select([name for name in correlation.names if name.startswith("crps.")])
    ax = figures.rank_correlation(part)
    (image,) = ax.get_images()
    expected = part.select(part.order()).matrix
    np.testing.assert_array_equal(image.get_array().filled(np.nan), expected)
    assert image.get_clim() == (-1.0, 1.0)
    assert [text.get_text() for text in ax.get_yticklabels()] == list(part.order())
    assert [text.get_text() for text in ax.get_xticklabels()] == list(part.order())
    (bar,) = (other for other in ax.figure.axes if other is not ax)
    assert bar.get_ylabel().startswith("Kendall's tau-b")
    assert "grey: constant" in bar.get_ylabel()


def test_the_heat_map_is_blue_for_the_same_white_for_unrelated_and_grey_for_constant() -> None:
    matrix = np.array([[1.0, 0.0, np.nan], [0.0, 1.0, np.nan], [np.nan, np.nan, np.nan]])
    (image,) = figures.rank_correlation(RankCorrelation(("a", "b", "c"), matrix)).get_images()
    red, green, blue, _ = np.moveaxis(image.to_rgba(image.get_array()), -1, 0)
    assert blue[0, 0] > 0.3 > red[0, 0]
    assert min(red[0, 1], green[0, 1], blue[0, 1]) > 0.95
    assert red[2, 2] == green[2, 2] == blue[2, 2] < 0.9


def test_many_measures_have_a_strip_of_risks_instead_of_names(correlation: RankCorrelation) -> None:
    ax = figures.rank_correlation(correlation)
    assert not ax.get_xticks().size
    assert not ax.get_yticks().size
    assert legend(ax) == ["total risk", "Bayes risk", "excess risk"]
    strip = {lot.get_label(): lot for lot in ax.collections}
    rows = sorted(float(ends[:, 1].mean()) for ends in strip["excess risk"].get_segments())
    assert rows == [row for row, name in enumerate(correlation.order()) if ".excess." in name]
    assert same_color(strip["excess risk"].get_color()[0], ORANGE)


def test_many_columns_of_other_names_have_no_strip(rng: np.random.Generator) -> None:
    ax = figures.rank_correlation(rank_correlation({f"column {i}": rng.normal(size=9) for i in range(61)}))
    assert not ax.collections
    assert ax.get_legend() is None


# Learning -------------------------------------------------------------------------------------------------------------


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


# All ------------------------------------------------------------------------------------------------------------------


def test_every_result_draws_itself_on_the_axes_it_is_given(
    selective: TaskResult, detection: TaskResult, correlation: RankCorrelation, learning: TaskResult
) -> None:
    for result, words in ((selective, "kept"), (detection, "flagged"), (correlation, "measures"), (learning, "labelled")):
        mine = Figure().subplots()
        assert result.plot(ax=mine) is mine
        assert words in mine.get_xlabel()


def test_options_reach_the_figure(selective: TaskResult) -> None:
    assert lines(selective.plot(measures=["log.bayes.mixture"])).keys() == {"log.bayes.mixture", "random", "oracle:"}


def test_no_two_of_many_lines_look_the_same(selective: TaskResult) -> None:
    ax = figures.retention_curves(selective, list(selective)[:18])
    looks = {(line.get_color(), str(line.get_linestyle()), str(line._dash_pattern)) for line in ax.get_lines()}
    assert len(looks) == 20


def test_a_line_has_the_colour_of_its_risk(selective: TaskResult) -> None:
    names = ["crps.excess.members.members", "log.excess.members.members", "crps.bayes.members", "crps.total.members.members"]
    drawn = figures.retention_curves(selective, names).get_lines()[:4]
    assert [line.get_color() for line in drawn] == [RISK_COLOURS[name.split(".")[1]] for name in names]
    own = selective_prediction({"mine": np.arange(30.0)}, error=np.arange(30.0), resamples=0)
    assert figures.retention_curves(own).get_lines()[0].get_color() not in RISK_COLOURS.values()


def test_drawing_leaves_the_state_of_pyplot_and_the_settings_alone() -> None:
    code = (
        "import sys, matplotlib\n"
        "settings = lambda: {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != 'backend'}\n"
        "before = settings()\n"
        "from uqprism.tasks.rank_correlation import rank_correlation\n"
        "rank_correlation({'a': [1, 2, 3], 'b': [1, 3, 2]}).plot().figure.canvas.draw()\n"
        "print('matplotlib.pyplot' in sys.modules, settings() == before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


# The two kinds of uncertainty, and calibration ------------------------------------------------------------------------


def test_all_points_are_dots_if_they_are_few_and_a_sample_over_a_density_if_not() -> None:
    rng = np.random.default_rng(0)
    noise, ignorance = np.exp(rng.normal(size=(2, 5000)) * 2.0)
    few = figures.noise_and_ignorance(noise[:50], ignorance[:50], unit="km")
    assert not few.collections
    dots = few.get_lines()[0]
    np.testing.assert_array_equal(np.sort(dots.get_xdata()), np.sort(noise[:50]))
    many = figures.noise_and_ignorance(noise, ignorance, unit="km")
    assert len(many.collections) == 1
    drawn = set(zip(*many.get_lines()[0].get_data(), strict=True))
    assert len(drawn) == 3000
    assert (noise.max(), ignorance[np.argmax(noise)]) in drawn
    assert (noise[np.argmax(ignorance)], ignorance.max()) in drawn
    assert many.get_xlabel() == "noise (aleatoric): CRPS, km"
    assert many.get_ylabel() == "disagreement (epistemic):\nCRPS, km"
    assert many.get_xscale() == many.get_yscale() == "log"


def test_cells_of_the_density_hold_every_point_once() -> None:
    rng = np.random.default_rng(0)
    noise, ignorance = rng.uniform(1.0, 2.0, size=(2, 4000))
    axes = figures.noise_and_ignorance(noise, ignorance, drawn=[])
    shade = axes.collections[0].get_array()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    edges = np.linspace(left, right, 49), np.linspace(bottom, top, 49)
    counts = np.histogram2d(noise, ignorance, bins=edges)[0].T
    assert counts.sum() == 4000
    np.testing.assert_allclose(shade.filled(0.0).reshape(counts.shape), np.log1p(counts) / np.log1p(counts.max()))


def test_the_line_of_equal_parts_is_for_rules_whose_parts_are_shares() -> None:
    values = np.linspace(1.0, 2.0, 30)
    for rule, lines in (("crps", 2), ("squared_error", 2), ("log", 1), ("quadratic", 1)):
        assert len(figures.noise_and_ignorance(values, values, rule=rule).get_lines()) == lines


def test_equal_parts_are_equal_on_axes_of_different_kinds() -> None:
    noise, ignorance = np.linspace(1.0, 2.0, 40), np.geomspace(1e-3, 3.0, 40)
    axes = figures.noise_and_ignorance(noise, ignorance)
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    x, y = axes.get_lines()[-1].get_data()
    np.testing.assert_array_equal(x, y)
    assert len(x) > 50  # a curve: two ends would be joined by a straight line


def test_zero_has_a_place_on_an_axis_that_needs_a_logarithm() -> None:
    ignorance = np.concatenate([np.zeros(5), [1e-20], np.geomspace(1e-4, 10.0, 60)])
    noise = np.linspace(1.0, 2.0, len(ignorance))
    for axes in (
        figures.noise_and_ignorance(noise, ignorance),
        figures.noise_and_ignorance(noise, ignorance, drawn=[], density=True),
    ):
        assert axes.get_yscale() == "symlog"
        assert axes.get_ylim()[0] == 0.0
        assert axes.get_yticks()[:2].tolist() == [0.0, 1e-4]
    low, tiny, first, second = axes.transData.transform([(1.0, y) for y in (0.0, 1e-20, 1e-4, 1e-3)])[:, 1]
    assert tiny - low < 0.01 < first - low < second - first
    outlines = [patch for patch in figures.distributions(noise, ignorance).patches if not patch.get_fill()]
    assert outlines[1].get_data().values.sum() == pytest.approx(100.0)


def test_points_from_outside_have_colours_markers_and_names_of_their_own() -> None:
    values = np.linspace(1.0, 2.0, 30)
    names = ["left", "_right$x$", "a file with a name that is far too long for a legend"]
    outside = {name: (values, values * 10.0 ** (i + 1)) for i, name in enumerate(names)}
    axes = figures.noise_and_ignorance(values, values, rule="log", outside=outside)
    axes.figure.draw_without_rendering()
    drawn = [line for line in axes.get_lines() if len(line.get_xdata()) == 30]
    assert len({(line.get_color(), line.get_marker()) for line in drawn}) == len({line.get_color() for line in drawn}) == 4
    np.testing.assert_array_equal(drawn[2].get_ydata(), 100.0 * values)
    assert not {line.get_color() for line in drawn[1:]} & set(RISK_COLOURS.values())
    bottom, top = axes.get_ylim()
    assert bottom < 1.0
    assert top > 2000.0
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "known rows",
        "from “left”",
        "from “_right$x$”",
        "from “a file with a name that…”",
    ]


def test_distributions_are_shares_of_the_points_in_common_bins() -> None:
    rng = np.random.default_rng(0)
    noise, ignorance = np.exp(rng.normal(size=(2, 300)))
    axes = figures.distributions(noise, ignorance, rule="squared_error", unit="km")
    outlines = [patch for patch in axes.patches if not patch.get_fill()]
    assert len(outlines) == 2
    assert same_color(outlines[0].get_edgecolor(), RISK_COLOURS["bayes"])
    assert same_color(outlines[1].get_edgecolor(), RISK_COLOURS["excess"])
    for patch, values in zip(outlines, (noise, ignorance), strict=True):
        shares, edges, _ = patch.get_data()
        np.testing.assert_allclose(shares, 100.0 * np.histogram(values, edges)[0] / 300)
        assert shares.sum() == pytest.approx(100.0)
    assert axes.get_xlabel() == "squared error, km²"
    assert legend(axes) == ["noise (aleatoric)", "disagreement (epistemic)"]


def test_coverage_and_its_histogram_are_those_of_the_calibration() -> None:
    found = up.calibration(*ensemble(300))
    axes = figures.coverage(found)
    drawn = lines(axes)
    np.testing.assert_allclose(drawn["found"].get_ydata(), 100.0 * found.coverage())
    assert list(drawn["as"].get_ydata()) == [0, 100]
    bars = figures.pit_histogram(found, bins=10).patches[0].get_data()
    np.testing.assert_allclose(bars.values, found.histogram(10) / 3.0)


def test_errors_are_means_of_points_that_are_about_equally_uncertain() -> None:
    doubt = np.random.default_rng(0).permutation(200) / 20.0
    axes = figures.error_against_uncertainty(doubt, doubt**2, kind="squared", unit="km", label="doubt (km)")
    x, y = axes.get_lines()[0].get_data()
    groups = np.arange(200).reshape(10, 20) / 20.0
    np.testing.assert_allclose(x, groups.mean(axis=1))
    np.testing.assert_allclose(y, np.sqrt((groups**2).mean(axis=1)))
    assert axes.get_xlabel() == "doubt (km)"
    assert axes.get_ylabel() == "root mean squared error (km)"


def test_intervals_of_a_mean_error_are_those_of_student_over_groups_of_twenty_or_more() -> None:
    rng = np.random.default_rng(0)
    doubt, wrong = np.sort(rng.exponential(size=59)), rng.exponential(size=59)
    axes = figures.error_against_uncertainty(doubt, wrong, kind="absolute")
    drawn = [segment[:, 1] for segment in axes.collections[0].get_segments()]
    groups = [wrong[:30], wrong[30:]]
    expected = [stats.t.interval(0.95, len(g) - 1, g.mean(), g.std(ddof=1) / np.sqrt(len(g))) for g in groups]
    np.testing.assert_allclose(drawn, expected)
    alone = figures.error_against_uncertainty([1.0], [2.0])
    assert len(alone.get_lines()[0].get_xdata()) == 1


@pytest.mark.parametrize("given", [False, True], ids=["new axes", "axes of somebody else"])
def test_names_and_units_are_no_formulas(given: bool) -> None:
    values, odd = np.linspace(1.0, 2.0, 50), r"my $\frac$ score"
    ax = Figure().subplots() if given else None
    drawn = [
        figures.noise_and_ignorance(values, values, unit="$_$", outside={odd: (values, values)}, ax=ax),
        figures.error_against_uncertainty(values, values, label=odd, unit="$_$"),
        rank_correlation({odd: values, "b": -values}).plot(),
        selective_prediction({odd: values}, error=values**2, resamples=0).plot(),
    ]
    for axes in drawn:
        axes.figure.draw_without_rendering()
    assert drawn[0].get_xlabel().endswith("CRPS, $_$")


def test_new_figures_refuse_what_does_not_fit() -> None:
    with pytest.raises(ShapeError, match="of the same points"):
        figures.noise_and_ignorance(np.ones(3), np.ones(4))
    with pytest.raises(ShapeError, match="of the same points"):
        figures.error_against_uncertainty(np.ones(3), np.ones(4))
    with pytest.raises(InvalidValueError, match="at least 1"):
        figures.error_against_uncertainty([], [])


def on_a_page(draw: Any, *, width: float = WIDTH, height: float = 4.4) -> Any:
    return render(draw, name="test", width=width, height=height)[1]


def visible_texts(axes: Any) -> list[Text]:
    """All texts but the labels of ticks beyond the ends of an axis, which are not drawn."""
    hidden = set()
    for axis, (low, high) in ((axes.xaxis, sorted(axes.get_xlim())), (axes.yaxis, sorted(axes.get_ylim()))):
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        hidden |= {text for tick in ticks for text in (tick.label1, tick.label2) if not low <= tick.get_loc() <= high}
    return [text for text in axes.findobj(Text) if text.get_visible() and text.get_text() and text not in hidden]


def test_on_a_page_no_text_overlaps_another_or_leaves_the_figure(
    selective: TaskResult, detection: TaskResult, correlation: RankCorrelation
) -> None:
    ens, y = ensemble(300)
    d, found = up.decompose(ens), up.calibration(ens, y)
    long = "kilowatt hours"
    outside = {"a file with a rather long name": (d.aleatoric, 9.0 * d.epistemic), "another": (d.aleatoric, 0.0 * d.epistemic)}
    drawn = {
        "scatter": on_a_page(lambda ax: figures.noise_and_ignorance(d.aleatoric, d.epistemic, unit=long, ax=ax), height=4.0),
        "outside": on_a_page(
            lambda ax: figures.noise_and_ignorance(d.aleatoric, d.epistemic, outside=outside, ax=ax), height=4.3
        ),
        "unnamed": on_a_page(lambda ax: figures.noise_and_ignorance(d.aleatoric, d.epistemic, ax=ax), height=4.0),
        "distributions": on_a_page(lambda ax: figures.distributions(d.aleatoric, d.epistemic, unit=long, ax=ax), height=3.2),
        "retention": on_a_page(lambda ax: figures.retention_curves(selective, ax=ax, error=f"mean squared error ({long}²)")),
        "roc": on_a_page(lambda ax: figures.roc_curves(detection, ax=ax), height=4.9),
        "coverage": on_a_page(lambda ax: figures.coverage(found, ax=ax), height=4.2),
        "pit": on_a_page(lambda ax: figures.pit_histogram(found, ax=ax), height=3.6),
        "alike": on_a_page(lambda ax: figures.rank_correlation(correlation, ax=ax)),
    }
    for name, axes in drawn.items():
        canvas = FigureCanvasAgg(axes.figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        texts = visible_texts(axes)
        boxes = {text: text.get_window_extent(renderer) for text in texts}
        frame = axes.figure.bbox.padded(2.0)
        for text, box in boxes.items():
            assert frame.x0 <= box.x0 <= box.x1 <= frame.x1, (name, text.get_text())
            assert frame.y0 <= box.y0 <= box.y1 <= frame.y1, (name, text.get_text())
        for text, other in combinations(texts, 2):
            inside = [boxes[each].expanded(0.9, 0.9) for each in (text, other)]
            assert not inside[0].overlaps(inside[1]), (name, text.get_text(), other.get_text())


def test_curves_of_excess_risks_are_of_those_that_see_the_members() -> None:
    doubt = np.arange(50.0)
    names = {
        "crps.excess.mixture.matched": doubt,
        "crps.excess.members.members": doubt[::-1],
        "crps.total.members.members": doubt**2 % 7,
    }
    ax = figures.retention_curves(up.selective_prediction(names, error=doubt, resamples=0))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert not any("mixture.matched" in label for label in labels)
    assert any(
        label.startswith("crps.excess.members.members (PRR") and label.endswith("\ndisagreement, CRPS") for label in labels
    )
