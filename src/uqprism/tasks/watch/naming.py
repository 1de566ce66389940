"""Tell noise from unfamiliar inputs: by what moved, relative to what."""

from __future__ import annotations

from collections.abc import Mapping

from uqprism.tasks.watch.words import AGREEMENT, CALIBRATION, NOISE, PENALTY, UNFAMILIAR

LEAST = 0.2  # of the move of the noise that the share of the disagreement must reach to be more than its echo


def kind_of(quantity: str, direction: str, moved: Mapping[str, float]) -> str:
    """What has changed.

    Noise and disagreement often move together: models of noisy data disagree more there, and far from their data they state
    another noise, too. The share of the disagreement tells the two apart, because it stays where both move alike.

    Args:
        quantity: of the test that found the change.
        direction: of its ranks.
        moved: how far the mean ranks of `bayes`, `excess` and `share` are from the middle.
    """
    if quantity in {PENALTY, CALIBRATION}:
        return quantity
    noise, share = moved["bayes"], moved["share"]
    if share > 0.0 and share >= LEAST * abs(noise):
        return UNFAMILIAR
    if quantity == "excess" and share < 0.0 and abs(share) > abs(noise):
        return AGREEMENT if direction == "lower" else UNFAMILIAR
    return NOISE
