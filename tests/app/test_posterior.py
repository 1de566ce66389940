"""The posterior explorer, without its page."""

from __future__ import annotations

import numpy as np
import pytest

from uqprism.app.posterior import GRID, SHIFTS, Change, Shift, changes, densities
from uqprism.paper.experiments.shifts import POSTERIORS


def test_the_buttons_make_the_posteriors_of_the_paper() -> None:
    for (name, shift), (known, posterior) in zip(SHIFTS.items(), POSTERIORS.items(), strict=True):
        assert name in (known, "no change")
        assert shift.posterior() == posterior


def test_squared_error_answers_as_its_formulas_say() -> None:
    """The means have variance s^2 / 3, so the squared distance of two is twice that; noise is the mean variance."""
    shift = Shift(mean_shift=1.0, mean_spread=1.5, variance_shift=0.7, variance_spread=0.5)
    found = changes(shift)
    assert len(found) == 144
    assert found["squared_error.excess.members.members"].after == pytest.approx(2.0 * 1.5**2 / 3.0)
    assert found["squared_error.bayes.members"].after == pytest.approx(1.5 + 0.7)
    assert found["squared_error.bayes.members"].before == pytest.approx(1.5)
    assert found["squared_error.total.members.members"].relative == pytest.approx((1.5 + 2.2) / (1.5 + 2.0 / 3.0) - 1.0)


def test_moving_all_means_changes_no_measure() -> None:
    assert max(abs(change.after - change.before) for change in changes(Shift(mean_shift=2.0)).values()) < 1e-12


def test_models_that_agree_leave_nothing_to_remove() -> None:
    found = changes(Shift(mean_spread=0.0, variance_spread=0.0))
    assert max(abs(change.after) for name, change in found.items() if ".excess." in name) < 1e-12


def test_densities_are_of_the_posterior_that_is_shown() -> None:
    found = densities(Shift(mean_shift=1.0))
    step = GRID[1] - GRID[0]
    for curve in (*found.members, found.average, found.average_before):
        assert curve.sum() * step == pytest.approx(1.0, abs=1e-4)
    assert (found.average * GRID).sum() * step == pytest.approx(1.0, abs=1e-3)
    assert (found.average_before * GRID).sum() * step == pytest.approx(0.0, abs=1e-3)


def test_a_change_from_nothing_has_no_relative_size() -> None:
    assert np.isnan(Change(0.0, 1.0).relative)
    assert Change(-2.0, -1.0).relative == 0.5


def test_measures_are_exact_to_the_digits_shown_where_the_sliders_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against twice as many nodes, where members are farthest apart and narrowest."""
    corner = Shift(mean_spread=3.0, variance_shift=-0.4, variance_spread=2.0)
    found = changes(corner)
    monkeypatch.setattr("uqprism.app.posterior.NODES", 32)
    for name, change in changes(corner).items():
        assert found[name].after == pytest.approx(change.after, rel=5e-5, abs=1e-9), name
