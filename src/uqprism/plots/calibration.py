"""Calibration: the coverage of intervals, the PIT histogram, and the error against the uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.errors import InvalidValueError, ShapeError
from uqprism.plots.style import BLUE, GREY, axes_or_new, scaled
from uqprism.plots.words import ErrorWords

FEWEST = 20  # points of a group: of fewer, an interval of their mean error would promise too much
BAND = {"color": GREY, "alpha": 0.25, "linewidth": 0}


def coverage(calibration: Any, ax: Any = None) -> Any:
    """The share of targets inside central intervals of each level, with the range expected by chance.

    Args:
        calibration: of `uqprism.calibration`.
        ax: axes to draw on; None for a new figure.
    """
    levels, covered, low, high = (
        np.array([row[name] for row in calibration.rows()]) for name in ("level", "coverage", "low", "high")
    )
    with axes_or_new(ax, 4.2) as axes:
        axes.fill_between(100.0 * levels, 100.0 * low, 100.0 * high, label="by chance, 95 times in 100 at each level", **BAND)
        axes.plot([0, 100], [0, 100], color="black", linestyle=(0, (5, 3)), linewidth=1.0, label="as promised")
        found = 100.0 * covered
        axes.plot(100.0 * levels, found, color=BLUE, marker="o", markersize=3.5, linewidth=1.4, label="found")
        axes.set(xlim=(0, 100), ylim=(0, 100))
        axes.set_xlabel("level of the interval (%)")
        axes.set_ylabel("targets inside it (%)")
        axes.legend(loc="upper left")
    return axes


def pit_histogram(calibration: Any, bins: int = 20, ax: Any = None) -> Any:
    """In which part of their predicted distributions targets fell: level if predictions are right, U-shaped if too narrow.

    Args:
        calibration: of `uqprism.calibration`.
        bins: parts of equal probability.
        ax: axes to draw on; None for a new figure.
    """
    counts, edges = calibration.histogram(bins), np.linspace(0.0, 100.0, bins + 1)
    share = 100.0 / max(1, calibration.n_points)
    low, high = (share * count for count in calibration.histogram_by_chance(bins))
    with axes_or_new(ax, 3.4) as axes:
        axes.fill_between([0.0, 100.0], low, high, label="all bars by chance, 95 times in 100", **BAND)
        axes.stairs(share * counts, edges, fill=True, color=BLUE, alpha=0.6, label="found")
        axes.axhline(100.0 / bins, color="black", linestyle=(0, (5, 3)), linewidth=1.0, label="as promised")
        axes.hlines([low, high], 0.0, 100.0, color=GREY, linewidth=0.8)
        axes.set(xlim=(0, 100))
        axes.set_ylim(0.0, 1.12 * max(high, share * counts.max(initial=0)))
        axes.set_xlabel("predicted probability of a value up to the target (%)")
        axes.set_ylabel("targets (%)")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    return axes


def error_against_uncertainty(
    uncertainty: Any,
    error: Any,
    *,
    kind: str | ErrorWords = "squared",
    label: str = "uncertainty",
    unit: str = "",
    bins: int = 10,
    ax: Any = None,
) -> Any:
    """The error of points that are about equally uncertain, in groups of as many points each.

    Lines are 95 % intervals of a group's mean (Student's t).

    Args:
        uncertainty: of each point.
        error: of each point, of this kind.
        kind: `squared`, of which the root of the mean is drawn, or `absolute`, `nll`, `crps`, or any name; or words for it.
        label: what the uncertainty is, for the axis.
        unit: of the target, for the axis.
        bins: how many groups; fewer where there are fewer than 20 points for each.
        ax: axes to draw on; None for a new figure.
    """
    doubt, wrong = (to_numpy(values).astype(np.float64).reshape(-1) for values in (uncertainty, error))
    if doubt.shape != wrong.shape:
        raise ShapeError(f"uncertainty and error must be of the same points, got {doubt.shape} and {wrong.shape}")
    if bins < 1 or not len(doubt):
        raise InvalidValueError(f"bins and points must be at least 1, got {bins} and {len(doubt)}")
    words = ErrorWords.of(kind, unit) if isinstance(kind, str) else kind
    parts = np.array_split(np.argsort(doubt, kind="stable"), group_count(len(doubt), bins))
    middle = np.array([doubt[part].mean() for part in parts])
    means = np.array([wrong[part].mean() for part in parts])
    errors = np.array([_half_width(wrong[part]) for part in parts])
    low, high = words.shown(np.maximum(means - errors, 0.0 if wrong.min() >= 0.0 else -np.inf)), words.shown(means + errors)
    with axes_or_new(ax, 3.6) as axes:
        scaled(axes, "x", middle)
        axes.vlines(middle, low, high, color=BLUE, linewidth=1.2)
        axes.plot(middle, words.shown(means), "o", color=BLUE, markersize=5)
        axes.set_xlabel(label)
        axes.set_ylabel(words.axis)
        if words.root or wrong.min() >= 0.0:
            axes.set_ylim(bottom=0.0)
    return axes


def group_count(points: int, most: int = 10) -> int:
    """Into how many groups so many points go: each has 20 or more, unless there is only one."""
    return min(most, max(1, points // FEWEST))


def _half_width(values: np.ndarray) -> float:
    """Of the 95 % interval of the mean; unknown for a single value."""
    from scipy.special import stdtrit

    n = len(values)
    return float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
