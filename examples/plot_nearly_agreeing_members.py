"""Members that nearly agree.

Members that trained well differ little, and their excess risk is of second order in the difference. The textbook formula,
expected penalty minus noise, subtracts two numbers that agree in nearly all digits, and what is left is rounding error: below a
spread of 1e-3 in single precision and of 1e-7 in double, it no longer ranks points. uqprism computes the excess from the
differences between members, and follows the truth, also in single precision.
"""

import sys

import numpy as np
from scipy.special import erf

import uqprism as up
from uqprism.plots.style import BLUE, ORANGE, RED, new_figure, styled


def textbook(mean, scale):
    """Mean CRPS between all members less their mean entropy, by the printed formulas, in the precision of the arrays."""
    gap, width = mean[:, None] - mean, np.sqrt(scale[:, None] ** 2 + scale**2)
    t = gap / width
    distance = width * (np.sqrt(2 / np.pi).astype(t.dtype) * np.exp(-t * t / 2) + t * erf(t / np.sqrt(2).astype(t.dtype)))
    return (distance - (scale[:, None] + scale) / np.sqrt(np.pi).astype(t.dtype)).mean(axis=(0, 1))


@styled()
def draw(quick: bool = False):
    """Excess CRPS of ten members as they come closer, by both formulas."""
    rng = np.random.default_rng(0)
    spread = np.geomspace(1e-9, 1.0, 10 if quick else 90)
    mean, scale = spread * rng.normal(size=(10, 1)), np.ones((10, len(spread)))
    figure, axes = new_figure(3.8)
    for precision, colour in ((np.float64, BLUE), (np.float32, RED)):
        naive = textbook(mean.astype(precision), scale.astype(precision))
        axes.plot(spread, naive, ".", color=colour, markersize=5, label=f"textbook formula, {precision.__name__}")
    ens = up.EnsemblePrediction.gaussian(mean=mean.astype(np.float32), scale=scale.astype(np.float32))
    axes.plot(spread, up.decompose(ens, rule="crps").epistemic, color=ORANGE, linewidth=3, alpha=0.6, label="uqprism, float32")
    ens = up.EnsemblePrediction.gaussian(mean=mean, scale=scale)
    axes.plot(spread, up.decompose(ens, rule="crps").epistemic, color="black", linewidth=1, label="uqprism, float64")
    axes.set(xscale="log", yscale="log", xlabel="spread of the members, in scales", ylabel="excess CRPS")
    axes.legend(loc="upper left")
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if sys.argv[1:] else "nearly_agreeing_members.png", dpi=130)
