"""Coverage, its histogram, and the error against the uncertainty."""

from __future__ import annotations

import numpy as np
from scipy import stats

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism import plots as figures

from .conftest import lines


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
