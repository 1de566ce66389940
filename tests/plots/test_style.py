"""All figures: axes, settings, names that are no formulas, and texts that do not overlap."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism import plots as figures
from uqprism.errors import InvalidValueError, ShapeError
from uqprism.plots.svg import render
from uqprism.report.charts import WIDTH
from uqprism.tasks import TaskResult, selective_prediction
from uqprism.tasks.rank_correlation import RankCorrelation, rank_correlation

from .conftest import lines


def test_every_result_draws_itself_on_the_axes_it_is_given(
    selective: TaskResult, detection: TaskResult, correlation: RankCorrelation, learning: TaskResult
) -> None:
    for result, words in ((selective, "kept"), (detection, "flagged"), (correlation, "measures"), (learning, "labelled")):
        mine = Figure().subplots()
        assert result.plot(ax=mine) is mine
        assert words in mine.get_xlabel()
    assert lines(selective.plot(measures=["log.bayes.mixture"])).keys() == {"log.bayes.mixture", "random", "oracle:"}


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


@pytest.mark.parametrize("given", [False, True], ids=["new axes", "axes of somebody else"])
def test_names_and_units_are_no_formulas(given: bool) -> None:
    values, odd = np.linspace(1.0, 2.0, 50), r"my $\frac$ score"
    ax = Figure().subplots() if given else None
    drawn = [
        figures.noise_and_disagreement(values, values, unit="$_$", ood={odd: (values, values)}, ax=ax),
        figures.error_against_uncertainty(values, values, label=odd, unit="$_$"),
        rank_correlation({odd: values, "b": -values}).plot(),
        selective_prediction({odd: values}, error=values**2, resamples=0).plot(),
    ]
    for axes in drawn:
        axes.figure.draw_without_rendering()
    assert drawn[0].get_xlabel().endswith("CRPS, $_$")


def test_new_figures_refuse_what_does_not_fit() -> None:
    for draw in (figures.noise_and_disagreement, figures.error_against_uncertainty):
        with pytest.raises(ShapeError, match="of the same points"):
            draw(np.ones(3), np.ones(4))
    with pytest.raises(InvalidValueError, match="at least 1"):
        figures.error_against_uncertainty([], [])


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
    parts, long = (d.aleatoric, d.epistemic), "kilowatt hours"
    ood = {"a file with a rather long name": (d.aleatoric, 9.0 * d.epistemic), "another": (d.aleatoric, 0.0 * d.epistemic)}
    drawn = {
        "scatter": (4.0, lambda ax: figures.noise_and_disagreement(*parts, unit=long, ax=ax)),
        "outside": (4.3, lambda ax: figures.noise_and_disagreement(*parts, ood=ood, ax=ax)),
        "unnamed": (4.0, lambda ax: figures.noise_and_disagreement(*parts, ax=ax)),
        "distributions": (3.2, lambda ax: figures.distributions(*parts, unit=long, ax=ax)),
        "retention": (4.4, lambda ax: figures.retention_curves(selective, ax=ax, error=f"mean squared error ({long}²)")),
        "roc": (4.9, lambda ax: figures.roc_curves(detection, ax=ax)),
        "coverage": (4.2, lambda ax: figures.coverage(found, ax=ax)),
        "pit": (3.6, lambda ax: figures.pit_histogram(found, ax=ax)),
        "alike": (4.4, lambda ax: figures.rank_correlation(correlation, ax=ax)),
    }
    for name, (height, draw) in drawn.items():
        axes = render(draw, name="test", width=WIDTH, height=height)[1]
        canvas = FigureCanvasAgg(axes.figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        boxes = {text: text.get_window_extent(renderer) for text in visible_texts(axes)}
        frame = axes.figure.bbox.padded(2.0)
        for text, box in boxes.items():
            assert frame.x0 <= box.x0 <= box.x1 <= frame.x1, (name, text.get_text())
            assert frame.y0 <= box.y0 <= box.y1 <= frame.y1, (name, text.get_text())
        for text, other in combinations(boxes, 2):
            inside = [boxes[each].expanded(0.9, 0.9) for each in (text, other)]
            assert not inside[0].overlaps(inside[1]), (name, text.get_text(), other.get_text())
