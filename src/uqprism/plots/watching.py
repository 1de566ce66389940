"""A stream under watch: the evidence of a change, and what predictions cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.measures.vocabulary import RISK_NAMES, rule_words
from uqprism.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, OTHER_COLOURS, RED, RISK_COLOURS, axes_or_new
from uqprism.support.numbers import tick

MOST_LINES = 6
COLOURS = {**RISK_COLOURS, "penalty": BLUE, "calibration": OTHER_COLOURS[0]}


def evidence(watch: Any, ax: Any = None) -> Any:
    """The evidence of each test by window, on an axis of powers of ten, with the threshold and the alarms.

    Of many tests, those with the most evidence are drawn.

    Args:
        watch: an `uqprism.Watch`.
        ax: axes to draw on; None for a new figure.
    """
    history = watch.history
    largest = {name: float(np.max(history[f"evidence.{name}"], initial=-np.inf)) for name in watch.thresholds}
    shown = sorted(largest, key=lambda name: -largest[name])[:MOST_LINES]
    threshold = float(np.log10(max(watch.thresholds.values())))
    with axes_or_new(ax, 3.4) as axes:
        others = iter((GREY, RED, BLACK, BLUE, GREEN, ORANGE))
        for name in (name for name in watch.thresholds if name in shown):
            quantity, _, group = name.partition("[")
            label = f"{RISK_NAMES.get(quantity, quantity)}{f' in group {group[:-1]}' if group else ''}"
            colour = next(others, GREY) if group else COLOURS[quantity]
            axes.plot(history["window"], history[f"evidence.{name}"], color=colour, linewidth=1.4, label=label)
        axes.axhline(threshold, color=GREY, linestyle="--", linewidth=1.0, label="alarm")
        for alarm in watch.alarms:
            axes.axvline(alarm.window, color=RED, linewidth=0.8, alpha=0.6)
        top = max([threshold, *(largest[name] for name in shown)])
        low = min([-1.0, *(float(np.min(history[f"evidence.{name}"], initial=0.0)) for name in shown)])
        if top > 4.0 * threshold:  # the way up to the threshold stays visible below huge evidence
            axes.set_yscale("symlog", linthresh=threshold, linscale=1.5)
            powers = 10.0 ** np.arange(np.ceil(np.log10(2.0 * threshold)), np.floor(np.log10(top)) + 1.0)
            marks = [0.0, round(threshold, 1), *powers.tolist()]
            axes.set_yticks(marks, [tick(mark) for mark in marks])
            axes.minorticks_off()
        axes.set_ylim(1.1 * low, 1.15 * top)
        axes.set_xlabel("window")
        axes.set_ylabel("evidence of a change, powers of ten")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=5, borderaxespad=0.2)
    return axes


def penalties(watch: Any, ax: Any = None) -> Any:
    """The estimate of the mean penalty by window with its interval, and the mean penalty where outcomes are known.

    Args:
        watch: an `uqprism.Watch`.
        ax: axes to draw on; None for a new figure.
    """
    history, words = watch.history, rule_words(watch.rule)
    known = np.isfinite(history["penalty"])
    corrected = watch.correction.rows > 0
    with axes_or_new(ax, 3.2) as axes:
        estimate = "estimate without outcomes" if corrected else "what the models expect"
        axes.plot(history["window"], history["estimate"], color=BLUE, linewidth=1.4, label=estimate)
        axes.fill_between(history["window"], history["low"], history["high"], color=BLUE, alpha=0.18, linewidth=0)
        if known.any():
            axes.plot(history["window"][known], history["penalty"][known], "o", color=ORANGE, markersize=3.5, label="outcomes")
        for alarm in watch.alarms:
            axes.axvline(alarm.window, color=RED, linewidth=0.8, alpha=0.6)
        axes.set_xlabel("window")
        axes.set_ylabel(f"mean {words.name} of a prediction")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2)
    return axes
