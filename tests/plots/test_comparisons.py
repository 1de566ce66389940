"""Intervals and the heat map: measures beside each other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from matplotlib.colors import same_color

from uqprism import plots as figures
from uqprism.errors import InvalidValueError
from uqprism.plots.style import BLUE, GREY, ORANGE
from uqprism.tasks import TaskResult
from uqprism.tasks.rank_correlation import RankCorrelation, rank_correlation

from .conftest import PRR_TITLE, legend


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


def test_without_resamples_intervals_are_dots_and_there_must_be_one(selective: TaskResult) -> None:
    ax = figures.intervals(dataclasses.replace(selective, replicates=None), top=5)
    assert not ax.collections
    assert ax.get_legend() is None
    assert len(ax.get_lines()) == 1
    with pytest.raises(InvalidValueError, match="top must be at least 1"):
        figures.intervals(selective, top=0)


def test_the_heat_map_is_the_matrix_in_clustered_order(correlation: RankCorrelation) -> None:
    part = correlation.select([name for name in correlation.names if name.startswith("crps.")])
    ax = figures.rank_correlation(part)
    (image,) = ax.get_images()
    expected = part.select(part.order()).matrix
    np.testing.assert_array_equal(image.get_array().filled(np.nan), expected)
    assert image.get_clim() == (-1.0, 1.0)
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert [text.get_text() for text in labels] == list(part.order())
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


def test_many_measures_have_a_strip_of_risks_instead_of_names(correlation: RankCorrelation, rng: np.random.Generator) -> None:
    ax = figures.rank_correlation(correlation)
    assert not ax.get_xticks().size
    assert not ax.get_yticks().size
    assert legend(ax) == ["total risk", "Bayes risk", "excess risk"]
    strip = {lot.get_label(): lot for lot in ax.collections}
    rows = sorted(float(ends[:, 1].mean()) for ends in strip["excess risk"].get_segments())
    assert rows == [row for row, name in enumerate(correlation.order()) if ".excess." in name]
    assert same_color(strip["excess risk"].get_color()[0], ORANGE)
    # Columns of other names have none.
    ax = figures.rank_correlation(rank_correlation({f"column {i}": rng.normal(size=9) for i in range(61)}))
    assert not ax.collections
    assert ax.get_legend() is None
