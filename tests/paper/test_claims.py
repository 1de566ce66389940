"""What is said of the two parameterisations is what the curves say: hand-made curves with known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from uqprism.paper.experiments.parameterization import claims
from uqprism.paper.experiments.parameterization.claims import Networks, Reference

REFERENCE = Reference(steps_per_epoch=8, true_loss=0.0, edge=3.0, far=12.0, spread=2.0)
GRID = np.linspace(-12.0, 12.0, 241)
BEYOND = np.maximum(np.abs(GRID) - 3.0, 0.0)


def networks(
    loss: np.ndarray, mean: np.ndarray = GRID * 0.0, scale: np.ndarray = GRID * 0.0 + 1.0, restarts: int = 0
) -> Networks:
    """Three networks that are all the same."""
    curves = np.repeat(loss[:, None], 3, axis=1)
    return Networks(curves, curves, restarts, GRID, np.tile(mean, (3, 1)), np.tile(scale, (3, 1)))


def falling(epochs: int) -> np.ndarray:
    """One nat, then zero from this epoch on, of 100."""
    return np.where(np.arange(1, 101) >= epochs, 0.0, 1.0)


def zigzag(size: float) -> np.ndarray:
    return size * (np.arange(100) % 2)


def test_steps_count_epochs_until_the_level_and_all_of_them_where_it_is_never_reached() -> None:
    curves = np.array([[3.0, 1.0, 9.0], [2.0, 0.0, 9.0], [1.0, 5.0, 9.0]])
    assert claims.steps_to(curves, 2.0, 10).tolist() == [20, 10, 30]
    assert claims.steps_to(curves, curves.min(0), 10).tolist() == [30, 20, 10]


def test_more_steps_needs_both_ways_of_counting() -> None:
    quick, slow = networks(falling(10)), networks(falling(40))
    claim = claims.more_steps(quick, slow, REFERENCE)
    assert claim.holds
    assert claim.numbers["standard_steps_to_own_best"] == 80
    assert claim.numbers["natural_steps_to_true_loss"] == 320
    assert claim.numbers["pairs_where_natural_needs_more"] == 3
    assert not claims.more_steps(slow, quick, REFERENCE).holds
    # It soon reaches a best of its own that is far from the truth: slow by one count only.
    stuck = networks(falling(5) + 1.0)
    claim = claims.more_steps(quick, stuck, REFERENCE)
    assert claim.numbers["natural_never_at_true_loss"] == 3
    assert claim.numbers["natural_steps_to_true_loss"] == 800
    assert not claim.holds


def test_roughness_is_the_change_from_epoch_to_epoch_after_the_first_fifth() -> None:
    wild_start = np.concatenate([np.linspace(50.0, 0.0, 20), zigzag(0.3)[:80]])[:, None]
    assert claims.roughness(wild_start)[0] == pytest.approx(0.3)
    spike = np.zeros((100, 1))
    spike[60] = 4.0
    assert claims.largest_rise(spike)[0] == 4.0
    assert claims.roughness(spike)[0] == pytest.approx(8.0 / 79)


@pytest.mark.parametrize(("size", "restarts", "holds"), [(0.1, 0, True), (0.4, 0, False), (0.8, 0, False), (0.1, 1, False)])
def test_much_more_stable_means_half_the_change_and_no_more_divergence(size: float, restarts: int, holds: bool) -> None:
    claim = claims.more_stable(networks(zigzag(0.6)), networks(zigzag(size), restarts=restarts))
    assert claim.numbers["validation_roughness_ratio"] == pytest.approx(0.6 / size)
    assert claim.holds is holds


@pytest.mark.parametrize(
    ("standard", "natural", "holds"),
    [
        (np.exp(-BEYOND), (1.0 + BEYOND) ** -0.5, True),
        (np.exp(0.1 * BEYOND), (1.0 + BEYOND) ** -0.5, False),  # does not collapse
        (np.exp(-BEYOND), np.exp(-0.5 * BEYOND), False),  # both do
        (np.exp(-BEYOND), np.exp(0.5 * BEYOND), False),  # natural is not constant either
    ],
)
def test_variance_away_from_data(standard: np.ndarray, natural: np.ndarray, holds: bool) -> None:
    claim = claims.variance_collapses(networks(zigzag(1), scale=standard), networks(zigzag(1), scale=natural), REFERENCE)
    assert claim.holds is holds
    assert claim.numbers["standard_scale_ratio"] == pytest.approx(standard[0])
    assert claim.numbers["natural_scale_ratio_right"] == pytest.approx(natural[-1])


def test_scale_ratios_of_both_sides_are_averaged_as_factors() -> None:
    one_sided = networks(zigzag(1), scale=np.where(GRID < -3.0, np.exp(-BEYOND), 1.0))
    claim = claims.variance_collapses(one_sided, networks(zigzag(1)), REFERENCE)
    assert claim.numbers["standard_scale_ratio"] == pytest.approx(np.exp(-4.5))
    assert claim.numbers["standard_sides_collapsed"] == 0.5


@pytest.mark.parametrize(
    ("standard", "natural", "holds"),
    [
        (0.5 * GRID, 0.5 * np.tanh(GRID), True),
        (0.5 * np.tanh(GRID), 0.5 * np.tanh(GRID), False),  # standard stays
        (0.5 * GRID, 0.5 * GRID, False),  # natural goes
        (4.0 * np.sin(3.0 * GRID), 0.0 * GRID, False),  # standard moves, in no line
    ],
)
def test_mean_away_from_data(standard: np.ndarray, natural: np.ndarray, holds: bool) -> None:
    claim = claims.mean_goes_on(networks(zigzag(1), mean=standard), networks(zigzag(1), mean=natural), REFERENCE)
    assert claim.holds is holds
    if standard[-1] == 6.0:
        assert claim.numbers["standard_mean_change"] == pytest.approx(0.5 * 4.5 / 2.0)
        assert claim.numbers["standard_straightness"] == pytest.approx(1.0)


def test_all_claims_are_made_of_medians_over_networks() -> None:
    odd = networks(falling(10))
    odd = replace(odd, validation=np.column_stack([falling(10), falling(10), falling(90)]))
    claim, *others = claims.all_claims(standard=odd, natural=networks(falling(40)), reference=REFERENCE)
    assert claim.numbers["standard_steps_to_own_best"] == 80
    assert claim.numbers["pairs_where_natural_needs_more"] == 2
    assert len(others) == 3
