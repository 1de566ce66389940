"""The two parts of the uncertainty: against each other at each point, and their distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.errors import ShapeError
from uqprism.measures.vocabulary import has_shares
from uqprism.plots.style import BLACK, BLUE, GREY, PURPLE, RISK_COLOURS, SKY, axes_or_new, edges, scaled
from uqprism.plots.words import DISAGREEMENT, NOISE, from_set, quantity
from uqprism.support.optional import require

CELLS = 48  # of the density, to a side
DRAWN = 3_000  # points; more hide each other
BARS = 40
MARKERS = "^DsvP"  # of OOD points, by data set
COLOURS = (PURPLE, BLACK, SKY)  # of the same points; none is the colour of a risk or near it
SHORT_NAME, LONGEST_NAME = 6, 24  # in a legend: of two columns, of one


def noise_and_disagreement(
    aleatoric: Any,
    epistemic: Any,
    *,
    rule: str = "crps",
    unit: str = "",
    drawn: Any = None,
    density: bool | None = None,
    ood: Mapping[str, tuple[Any, Any]] | None = None,
    label: str = "",
    ax: Any = None,
) -> Any:
    """Noise against disagreement at every point: as dots or, of very many points, as a density with some as dots.

    An axis is logarithmic where the numbers need it; next to zero, if some are, it is linear.

    Args:
        aleatoric: the Bayes risk, (points,).
        epistemic: the excess risk, (points,).
        rule: of both, for the axes.
        unit: of the target, for the axes.
        drawn: which points are dots; by default up to 3,000, see `sample`; an empty list for none.
        density: whether grey cells show all points, the stronger the more; by default where not all are dots.
        ood: both risks of OOD points by the name of their data set, each with its own colour and marker.
        label: what both are counted in, for the axes; by default the rule and its unit.
        ax: axes to draw on; None for a new figure.
    """
    noise, disagreement = _both(aleatoric, epistemic)
    others = {name: _both(*both) for name, both in (ood or {}).items()}
    every = [np.concatenate([known, *(both[i] for both in others.values())]) for i, known in enumerate((noise, disagreement))]
    rows = sample(noise, disagreement) if drawn is None else np.asarray(drawn, dtype=np.intp)
    with axes_or_new(ax, 4.6) as axes:
        for which, values in zip("xy", every, strict=True):
            scaled(axes, which, values)
        if density or (density is None and len(rows) < len(noise)):
            _density(axes, noise, disagreement, [edges(values, CELLS) for values in every])
        if len(rows):
            axes.plot(noise[rows], disagreement[rows], "o", color=BLUE, markersize=2.2, markeredgewidth=0, alpha=0.55)
        if others:
            _draw_ood(axes, others, dots=drawn is None)
        if has_shares(rule, every[0]):  # under other rules zero is no natural end, and equal parts mean nothing
            _equal_parts(axes)
        if axes.get_legend_handles_labels()[0]:
            columns = 2 if others and max(map(len, others)) <= SHORT_NAME else 1
            axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2, ncols=columns, columnspacing=1.2)
        axes.set_xlabel(f"{NOISE}: {label or quantity(rule, unit)}")
        axes.set_ylabel(f"{DISAGREEMENT}:\n{label or quantity(rule, unit)}")
    return axes


def distributions(
    aleatoric: Any, epistemic: Any, *, rule: str = "crps", unit: str = "", label: str = "", plain: bool = False, ax: Any = None
) -> Any:
    """The distributions of noise and disagreement over the points, in shared bins.

    Args:
        aleatoric: the Bayes risk, (points,).
        epistemic: the excess risk, (points,).
        rule: of both, for the axes.
        unit: of the target, for the axes.
        label: what both are counted in, for the axis; by default the rule and its unit.
        plain: whether points are called rows.
        ax: axes to draw on; None for a new figure.
    """
    noise, disagreement = _both(aleatoric, epistemic)
    together = np.concatenate([noise, disagreement])
    ends = edges(together, BARS)
    with axes_or_new(ax, 3.2) as axes:
        scaled(axes, "x", together)
        for values, risk, name in ((noise, "bayes", NOISE), (disagreement, "excess", DISAGREEMENT)):
            colour = RISK_COLOURS[risk]
            shares = 100.0 * np.histogram(values, ends)[0] / max(1, len(values))
            axes.stairs(shares, ends, color=colour, fill=True, alpha=0.35)
            axes.stairs(shares, ends, color=colour, linewidth=1.4, label=name)
        axes.set_xlabel(label or quantity(rule, unit))
        axes.set_ylabel("rows (%)" if plain else "points (%)")
        axes.set_ylim(bottom=0.0)
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    return axes


def sample(aleatoric: Any, epistemic: Any, most: int = DRAWN, *, seed: int = 0) -> np.ndarray:
    """Which points to draw if there are too many: the most uncertain of either kind, and others at random; sorted."""
    noise, disagreement = _both(aleatoric, epistemic)
    if len(noise) <= most:
        return np.arange(len(noise))
    top = most // 20
    extreme = np.unique(np.concatenate([np.argpartition(values, -top)[-top:] for values in (noise, disagreement)]))
    others = np.setdiff1d(np.arange(len(noise)), extreme, assume_unique=True)
    drawn = np.random.default_rng(seed).choice(others, most - len(extreme), replace=False)
    return np.sort(np.concatenate([extreme, drawn]))


def _both(aleatoric: Any, epistemic: Any) -> tuple[np.ndarray, np.ndarray]:
    noise, disagreement = (to_numpy(values).astype(np.float64).reshape(-1) for values in (aleatoric, epistemic))
    if noise.shape != disagreement.shape:
        raise ShapeError(f"aleatoric and epistemic must be of the same points, got {noise.shape} and {disagreement.shape}")
    return noise, disagreement


def kind_of(place: int) -> tuple[str, str]:
    """Colour and marker of the OOD data set at this place among them."""
    return COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]


def _draw_ood(axes: Any, others: Mapping[str, tuple[np.ndarray, np.ndarray]], *, dots: bool) -> None:
    """Draw OOD points, a sample of very many; without dots, only their names in the legend."""
    axes.plot([], [], "o", color=BLUE, markersize=3.5, label="known rows")
    for place, (name, (noise, disagreement)) in enumerate(others.items()):
        colour, marker = kind_of(place)
        how: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none", "markeredgewidth": 0}
        if dots:
            rows = sample(noise, disagreement)
            axes.plot(noise[rows], disagreement[rows], **how, markersize=3.0, alpha=0.7)
        axes.plot([], [], **how, markersize=4.5, label=_for_legend(name))


def _for_legend(name: str) -> str:
    """Where OOD points are from, with a long name cut."""
    shown = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return from_set(shown).removeprefix("with ")


def _density(axes: Any, noise: np.ndarray, disagreement: np.ndarray, cells: list[np.ndarray]) -> None:
    """Grey cells, the stronger the more points, on a log scale of counts: a few lone points still show."""
    counts = np.histogram2d(noise, disagreement, bins=cells)[0].T
    shade = np.log1p(counts) / max(np.log1p(counts.max(initial=0.0)), 1e-300)
    colours = require("matplotlib.colors", extra="report")
    clear = colours.LinearSegmentedColormap.from_list("clear", [(*colours.to_rgb(GREY), a) for a in (0.0, 0.75)])
    image = axes.pcolormesh(*cells, np.ma.masked_equal(shade, 0.0), cmap=clear, vmin=0.0, vmax=1.0, rasterized=True)
    image.set_gid("density")


def _equal_parts(axes: Any) -> None:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    low, high = max(left, bottom), min(right, top)
    if low < high:
        start = max(low, 1e-9 * high)
        line = np.append(low, np.geomspace(start, high, 200))  # a curve where one axis is logarithmic and the other is not
        axes.plot(line, line, color="black", linewidth=0.8, linestyle=(0, (4, 3)), label="as much of one as of the other")
    axes.set(xlim=(left, right), ylim=(bottom, top))
