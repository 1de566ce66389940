"""Figures of what tasks found: each function draws a result, on given axes or on a new figure, and returns the axes."""

from uqprism.report.figures.correlation import rank_correlation
from uqprism.report.figures.curves import learning_curves, retention_curves, roc_curves
from uqprism.report.figures.intervals import intervals

__all__ = ["intervals", "learning_curves", "rank_correlation", "retention_curves", "roc_curves"]
