"""The two parts of the uncertainty: points, densities, distributions."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import same_color

from uqprism import plots as figures
from uqprism.plots.style import RISK_COLOURS

from .conftest import legend


def test_all_points_are_dots_if_they_are_few_and_a_sample_over_a_density_if_not() -> None:
    rng = np.random.default_rng(0)
    noise, ignorance = np.exp(rng.normal(size=(2, 5000)) * 2.0)
    few = figures.noise_and_disagreement(noise[:50], ignorance[:50], unit="km")
    assert not few.collections
    dots = few.get_lines()[0]
    np.testing.assert_array_equal(np.sort(dots.get_xdata()), np.sort(noise[:50]))
    many = figures.noise_and_disagreement(noise, ignorance, unit="km")
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
    axes = figures.noise_and_disagreement(noise, ignorance, drawn=[])
    shade = axes.collections[0].get_array()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    edges = np.linspace(left, right, 49), np.linspace(bottom, top, 49)
    counts = np.histogram2d(noise, ignorance, bins=edges)[0].T
    assert counts.sum() == 4000
    np.testing.assert_allclose(shade.filled(0.0).reshape(counts.shape), np.log1p(counts) / np.log1p(counts.max()))


def test_the_line_of_equal_parts_is_for_rules_whose_parts_are_shares() -> None:
    values = np.linspace(1.0, 2.0, 30)
    for rule, lines in (("crps", 2), ("squared_error", 2), ("log", 1), ("quadratic", 1)):
        assert len(figures.noise_and_disagreement(values, values, rule=rule).get_lines()) == lines


def test_equal_parts_are_equal_on_axes_of_different_kinds() -> None:
    noise, ignorance = np.linspace(1.0, 2.0, 40), np.geomspace(1e-3, 3.0, 40)
    axes = figures.noise_and_disagreement(noise, ignorance)
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    x, y = axes.get_lines()[-1].get_data()
    np.testing.assert_array_equal(x, y)
    assert len(x) > 50  # a curve: two ends would be joined by a straight line


def test_zero_has_a_place_on_an_axis_that_needs_a_logarithm() -> None:
    ignorance = np.concatenate([np.zeros(5), [1e-20], np.geomspace(1e-4, 10.0, 60)])
    noise = np.linspace(1.0, 2.0, len(ignorance))
    for options in ({}, {"drawn": [], "density": True}):
        axes = figures.noise_and_disagreement(noise, ignorance, **options)
        assert axes.get_yscale() == "symlog"
        assert axes.get_ylim()[0] == 0.0
        assert axes.get_yticks()[:2].tolist() == [0.0, 1e-4]
    low, tiny, first, second = axes.transData.transform([(1.0, y) for y in (0.0, 1e-20, 1e-4, 1e-3)])[:, 1]
    assert tiny - low < 0.01 < first - low < second - first
    outlines = [patch for patch in figures.distributions(noise, ignorance).patches if not patch.get_fill()]
    assert outlines[1].get_data().values.sum() == pytest.approx(100.0)


def test_ood_points_have_colours_markers_and_names_of_their_own() -> None:
    values = np.linspace(1.0, 2.0, 30)
    names = ["left", "_right$x$", "a file with a name that is far too long for a legend"]
    ood = {name: (values, values * 10.0 ** (i + 1)) for i, name in enumerate(names)}
    axes = figures.noise_and_disagreement(values, values, rule="log", ood=ood)
    axes.figure.draw_without_rendering()
    drawn = [line for line in axes.get_lines() if len(line.get_xdata()) == 30]
    assert len({(line.get_color(), line.get_marker()) for line in drawn}) == len({line.get_color() for line in drawn}) == 4
    np.testing.assert_array_equal(drawn[2].get_ydata(), 100.0 * values)
    assert not {line.get_color() for line in drawn[1:]} & set(RISK_COLOURS.values())
    bottom, top = axes.get_ylim()
    assert bottom < 1.0
    assert top > 2000.0
    known, *others = [text.get_text() for text in axes.get_legend().get_texts()]
    assert (known, others) == ("known rows", [f"from “{name}”" for name in ("left", "_right$x$", "a file with a name that…")])


def test_distributions_are_shares_of_the_points_in_common_bins() -> None:
    rng = np.random.default_rng(0)
    noise, ignorance = np.exp(rng.normal(size=(2, 300)))
    axes = figures.distributions(noise, ignorance, rule="squared_error", unit="km")
    outlines = [patch for patch in axes.patches if not patch.get_fill()]
    for patch, values, risk in zip(outlines, (noise, ignorance), ("bayes", "excess"), strict=True):
        assert same_color(patch.get_edgecolor(), RISK_COLOURS[risk])
        shares, edges, _ = patch.get_data()
        np.testing.assert_allclose(shares, 100.0 * np.histogram(values, edges)[0] / 300)
        assert shares.sum() == pytest.approx(100.0)
    assert axes.get_xlabel() == "squared error, km²"
    assert legend(axes) == ["noise (aleatoric)", "disagreement (epistemic)"]


def test_tensors_with_gradients_are_drawn_as_numbers() -> None:
    import torch

    noise, ignorance = torch.rand(2, 50, requires_grad=True).unbind()
    for draw in (figures.noise_and_disagreement, figures.distributions, figures.error_against_uncertainty):
        assert draw(noise, ignorance) is not None
