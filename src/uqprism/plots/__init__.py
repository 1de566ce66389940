"""Figures of what tasks found: each function draws a result, on given axes or on a new figure, and returns the axes."""

from uqprism.plots.calibration import coverage, error_against_uncertainty, group_count, pit_histogram
from uqprism.plots.comparisons import MOST_NAMES, intervals, rank_correlation
from uqprism.plots.curves import learning_curves, retention_curves, roc_curves
from uqprism.plots.parts import distributions, kind_of, noise_and_disagreement, sample
from uqprism.plots.promises import promise
from uqprism.plots.watching import evidence, penalties

__all__ = [
    "MOST_NAMES",
    "coverage",
    "distributions",
    "error_against_uncertainty",
    "evidence",
    "group_count",
    "intervals",
    "kind_of",
    "learning_curves",
    "noise_and_disagreement",
    "penalties",
    "pit_histogram",
    "promise",
    "rank_correlation",
    "retention_curves",
    "roc_curves",
    "sample",
]
