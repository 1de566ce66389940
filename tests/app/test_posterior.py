"""The posterior explorer, without its page."""

from __future__ import annotations

import numpy as np
import pytest

from uqprism.app.posterior import GRID, SHIFTS, Answer, Shift, answers, densities
from uqprism.paper.experiments.shifts import POSTERIORS


def test_the_buttons_make_the_posteriors_of_the_paper() -> None:
    for (name, shift), (known, posterior) in zip(SHIFTS.items(), POSTERIORS.items(), strict=True):
        assert name in (known, "no change")
        assert shift.posterior() == posterior


def test_squared_error_answers_as_its_formulas_say() -> None:
    """The means have variance s^2 / 3, so the squared distance of two is twice that; noise is the mean variance."""
    shift = Shift(mean_shift=1.0, mean_spread=1.5, variance_shift=0.7, variance_spread=0.5)
    found = answers(shift)
    assert len(found) == 144
    assert found["squared_error.excess.members.members"].after == pytest.approx(2.0 * 1.5**2 / 3.0)
    assert found["squared_error.bayes.members"].after == pytest.approx(1.5 + 0.7)
    assert found["squared_error.bayes.members"].before == pytest.approx(1.5)
    assert found["squared_error.total.members.members"].change == pytest.approx((1.5 + 2.2) / (1.5 + 2.0 / 3.0) - 1.0)


def test_moving_all_means_changes_no_measure() -> None:
    assert max(abs(answer.after - answer.before) for answer in answers(Shift(mean_shift=2.0)).values()) < 1e-12


def test_models_that_agree_leave_nothing_to_remove() -> None:
    found = answers(Shift(mean_spread=0.0, variance_spread=0.0))
    assert max(abs(answer.after) for name, answer in found.items() if ".excess." in name) < 1e-12


def test_densities_are_of_the_posterior_that_is_shown() -> None:
    found = densities(Shift(mean_shift=1.0))
    step = GRID[1] - GRID[0]
    for curve in (*found.members, found.average, found.average_before):
        assert curve.sum() * step == pytest.approx(1.0, abs=1e-4)
    assert (found.average * GRID).sum() * step == pytest.approx(1.0, abs=1e-3)
    assert (found.average_before * GRID).sum() * step == pytest.approx(0.0, abs=1e-3)


def test_a_change_from_nothing_has_no_relative_size() -> None:
    assert np.isnan(Answer(0.0, 1.0).change)
    assert Answer(-2.0, -1.0).change == 0.5


def test_measures_are_exact_to_the_digits_shown_where_the_sliders_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against twice as many nodes, where members are farthest apart and narrowest."""
    corner = Shift(mean_spread=3.0, variance_shift=-0.4, variance_spread=2.0)
    found = answers(corner)
    monkeypatch.setattr("uqprism.app.posterior.NODES", 32)
    for name, answer in answers(corner).items():
        assert found[name].after == pytest.approx(answer.after, rel=5e-5, abs=1e-9), name
