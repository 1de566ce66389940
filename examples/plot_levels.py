"""How many bars or levels are enough.

Gaussian members, given by bars or by quantiles. The error falls with the square of their number, if levels are equally far
apart in scales of a Gaussian; of equal steps in probability the outermost decide, whose share is one over the number.
"""

import sys

import numpy as np
from scipy.special import ndtr, ndtri

import uqprism as up
from uqprism.plots.style import BLUE, GREEN, ORANGE, new_figure, styled

COUNTS = (25, 50, 100, 200, 400, 800)
MEASURES = {"crps.bayes.members": "CRPS, noise", "log.bayes.members": "log score, noise"}
KINDS = {"bars": ("s-", BLUE), "levels: equal steps in scales": ("o-", GREEN), "levels: in probability": ("^-", ORANGE)}


def given(kind: str, count: int, mean: np.ndarray, scale: np.ndarray) -> up.EnsemblePrediction:
    """The same members by so many bars or levels."""
    if kind == "bars":
        edges = np.linspace(-12.0, 12.0, count + 1)
        mass = np.maximum(np.diff(ndtr((edges[:, None, None] - mean) / scale), axis=0), 1e-300).swapaxes(0, 1)
        return up.EnsemblePrediction.histogram(edges=edges, probabilities=mass / mass.sum(axis=1, keepdims=True))
    levels = ndtr(np.linspace(-7.0, 7.0, count)) if "scales" in kind else (np.arange(count) + 0.5) / count
    values = (mean + scale * ndtri(levels)[:, None, None]).swapaxes(0, 1)
    return up.EnsemblePrediction.quantiles(levels=levels, values=values, tails="gaussian")


def errors(kind: str, counts: tuple[int, ...]) -> dict[str, np.ndarray]:
    """The relative error of each measure, averaged over points, for each count."""
    mean, scale = np.random.default_rng(1).normal(size=(2, 4, 30)) * np.array([1.0, 0.2])[:, None, None]
    truth = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=(scale := np.exp(scale))), list(MEASURES))
    tables = [up.evaluate(given(kind, count, mean, scale), list(MEASURES)) for count in counts]
    return {m: np.array([np.mean(np.abs(t[m] - truth[m])) / np.mean(np.abs(truth[m])) for t in tables]) for m in MEASURES}


@styled()
def draw(quick: bool = False):
    """A panel for each measure, with lines of slopes one and two."""
    figure, axes = new_figure(3.2, ncols=2, sharey=True)
    found = {kind: errors(kind, counts := COUNTS[:3] if quick else COUNTS) for kind in KINDS}
    for ax, (measure, title) in zip(axes, MEASURES.items(), strict=True):
        for kind, (style, colour) in KINDS.items():
            ax.loglog(counts, found[kind][measure], style, markersize=4, linewidth=1, color=colour, label=kind)
        for slope, label in ((1.0, "1/n"), (2.0, "1/n²")):
            line = 2.0 * found["bars"][measure][0] * (np.array(counts) / counts[0]) ** -slope
            ax.loglog(counts, line, "--", color="0.6", linewidth=0.8)
            ax.annotate(label, (counts[-1], line[-1]), color="0.5", ha="right", va="bottom")
        ax.set(title=title, xlabel="n, bars or levels", xticks=counts, xticklabels=counts)
        ax.minorticks_off()
    axes[0].set_ylabel("relative error")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if sys.argv[1:] else "levels.png", dpi=130)
