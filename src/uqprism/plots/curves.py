"""Curves, a line for each measure: retention, ROC, learning."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError
from uqprism.measures import RISKS, Measure
from uqprism.measures.vocabulary import measure_in_words
from uqprism.plots.style import OTHER_COLOURS, RISK_COLOURS, axes_or_new
from uqprism.plots.words import ErrorWords

Names = str | Iterable[str | Measure] | None

BEST = 3
NEW_LINE = "\n"
LABEL = 58  # characters of a line in a legend
ALIKE = 0.005  # of a curve's height, on average: nearer ones would hide each other
DASHED, DOTTED = (0, (5, 3)), (0, (1, 1.5))
STROKES = ("solid", DOTTED, "dashdot")  # dashes are for chance


def retention_curves(
    result: Any, measures: Names = None, ax: Any = None, *, error: str | ErrorWords = "mean error", plain: bool = False
) -> Any:
    """The mean error of the points kept as the most uncertain ones are rejected, with the oracle and a random order.

    Args:
        result: of `selective_prediction`.
        measures: those to draw; by default the recommended one and the best of each risk that looks different; of excess
            risks only those in which the members have a role.
        ax: axes to draw on; None for a new figure.
        error: what the mean is called, with its unit; or words for errors of one kind, which may show the root of the mean.
        plain: whether measures are named in words, and points are called rows.
    """
    words = error if isinstance(error, ErrorWords) else ErrorWords(error, "")
    many = "rows" if plain else "points"
    kept = 100.0 * _curve(result, "retention")
    chosen = _chosen(result, measures)
    with axes_or_new(ax, 4.2) as axes:
        for name, look in zip(chosen, _looks(chosen), strict=True):
            label = _label(name, f"{result.describe().short} {result[name]:.3f}", plain=plain)
            axes.plot(kept, words.shown(_curve(result, name)), label=label, **look)
        axes.plot(
            kept,
            words.shown(_curve(result, "random order")),
            color="black",
            linestyle=DASHED,
            linewidth=1.0,
            label="random order",
        )
        axes.plot(
            kept,
            words.shown(_curve(result, "oracle order")),
            color="black",
            linewidth=1.0,
            label="oracle: largest errors go first",
        )
        axes.set(xlabel=f"{many} kept, the most certain first (%)", xlim=(0, 100))
        axes.set_ylabel(f"{words.axis}{' ' if len(words.axis) < 20 else NEW_LINE}of the {many} kept")
        _legend_above(axes, result.describe().title)
    return axes


def roc_curves(result: Any, measures: Names = None, ax: Any = None, *, plain: bool = False) -> Any:
    """ROC curves: the share of OOD points flagged, for each share of known points flagged, with chance.

    Args:
        result: of `ood_detection`.
        measures: those to draw; by default the recommended one and the best of each risk that looks different.
        ax: axes to draw on; None for a new figure.
        plain: whether measures are named in words, and points are called rows.
    """
    alarms = 100.0 * _curve(result, "false_positive_rate")
    chosen = _chosen(result, measures)
    auroc = result.metrics.get("auroc", result)
    with axes_or_new(ax, 4.8) as axes:
        for name, look in zip(chosen, _looks(chosen), strict=True):
            axes.plot(alarms, 100.0 * _curve(result, name), label=_label(name, f"AUROC {auroc[name]:.3f}", plain=plain), **look)
        axes.plot([0, 100], [0, 100], color="black", linestyle=DASHED, linewidth=1.0, label="chance (AUROC 0.500)")
        axes.set(xlim=(0, 100), ylim=(0, 101))
        axes.set_xlabel(f"known {'rows' if plain else 'points'} flagged by mistake (%): false positive rate")
        axes.set_ylabel("unfamiliar inputs found (%): true positive rate")
        _legend_above(axes, result.describe("auroc").title)
    return axes


def learning_curves(comparison: Any, acquisitions: Names = None, ax: Any = None) -> Any:
    """The test error as labels are bought, a line for each way to choose the points.

    Shaded is one standard deviation between runs to either side, where there are several.

    Args:
        comparison: of active learning with several acquisitions.
        acquisitions: those to draw; by default the five best and `random`.
        ax: axes to draw on; None for a new figure.
    """
    labelled = _curve(comparison, "labelled")
    chosen = comparison.ranked()[:5] if acquisitions is None else _listed(comparison, acquisitions)
    if acquisitions is None and "random" in comparison and "random" not in chosen:
        chosen.append("random")
    looks, about = _looks([name for name in chosen if name != "random"]), comparison.describe()
    with axes_or_new(ax, 3.6) as axes:
        for name in chosen:
            look: Mapping[str, Any] = next(looks) if name != "random" else {"color": "black", "linestyle": DASHED}
            mean, spread = _curve(comparison, name), _spread(comparison, name)
            if spread is not None:
                axes.fill_between(labelled, mean - spread, mean + spread, color=look["color"], alpha=0.15, linewidth=0)
            axes.plot(labelled, mean, label=name, **look)
        axes.set(xlabel="labelled points", ylabel=f"{about.meaning or about.short} of the test set")
        axes.margins(x=0.0)
        _legend_above(axes, "shaded: one standard deviation between runs" if axes.collections else None)
    return axes


def _legend_above(axes: Any, title: str | None) -> None:
    """A legend over the axes, where no curve can run through it."""
    width = int(12.5 * axes.figure.get_size_inches()[0])  # in letters
    title = textwrap.fill(title, width) if title is not None else None
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), title=title, alignment="left", borderaxespad=0.2)


def _curve(result: Any, name: str) -> np.ndarray:
    if name not in result.curves:
        parts = f"; draw one of its parts: {', '.join(map(repr, list(result.parts)[:5]))}" if result.parts else ""
        raise ArgumentError(f"result must have a curve {name!r} for this figure, got a result of {result.task}{parts}")
    return np.asarray(result.curves[name])


def _spread(result: Any, name: str) -> np.ndarray | None:
    """The standard deviation of a curve: that of the result, or else between its parts; None for a single run."""
    if f"{name} spread" in result.curves:
        return np.asarray(result.curves[f"{name} spread"])
    runs = [part.curves[name] for part in result.parts.values() if name in part.curves]
    return np.std(runs, axis=0, ddof=1) if len(runs) > 1 else None


def _looks(names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The look of each line: the colour of its risk if that is free, and no look twice until all are used."""
    every = list(product(STROKES, (*RISK_COLOURS.values(), *OTHER_COLOURS)))
    free: list[tuple[Any, str]] = []
    for name in names:
        own = RISK_COLOURS.get(_kind(name))
        free = free or list(every)
        look = min(free, key=lambda each: (each[1] != own, each[1] not in OTHER_COLOURS))
        free.remove(look)
        yield {"color": look[1], "linestyle": look[0], "linewidth": 1.4}


def _listed(result: Any, names: str | Iterable[str | Measure]) -> list[str]:
    wanted = [str(name) for name in ([names] if isinstance(names, str) else names)]
    for name in wanted:
        result[name]  # an unknown one raises and suggests the nearest
    return wanted


def _chosen(result: Any, names: Names) -> list[str]:
    """The measures to draw, by default the recommended one and the best of each risk, the best first."""
    if names is not None:
        return _listed(result, names)
    ranked = result.ranked()
    best_of: dict[str, str] = {}
    for name in filter(_is_worth_a_line, ranked):
        best_of.setdefault(_kind(name), name)
    chosen = [name for name in [result.recommended] if name in result]
    for name in list(best_of.values())[:BEST]:
        if not any(_alike(_curve(result, name), _curve(result, other)) for other in chosen):
            chosen.append(name)
    return sorted(chosen, key=ranked.index)


def _is_worth_a_line(name: str) -> bool:
    """Whether a measure shows what its risk stands for: without the members, an excess risk shows no disagreement."""
    _, risk, *roles = name.split(".") if name.count(".") > 1 else ("", "")
    return risk != "excess" or "members" in roles


def _label(name: str, score: str, *, plain: bool) -> str:
    """A measure in a legend, in words and by its name, or if plain in words alone."""
    words = measure_in_words(name)
    if plain:
        return textwrap.fill(f"{words or name} ({score})", LABEL)
    short = words.partition(" (")[0]  # the name says which approximations
    return f"{name} ({score}){NEW_LINE}{short}" if short else f"{name} ({score})"


def _kind(name: str) -> str:
    """Measures of one risk are of one kind; anything else is a kind of its own."""
    return next((part for part in name.split(".")[1:2] if part in RISKS), name)


def _alike(curve: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.abs(curve - other).mean() <= ALIKE * np.ptp(curve))
