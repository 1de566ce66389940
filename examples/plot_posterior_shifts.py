"""What a measure does when the members move.

Ten members, and three changes: all variances doubled, the means spread twice as far, all means moved by one. More variance
should raise the noise and leave the disagreement unchanged. More spread should raise the disagreement and leave the noise
unchanged. Moving all means should change nothing. Each bar is the ratio of a measure after the change to before. Excess risks
under CRPS, log and quadratic score *fall* when the variances grow, because the same distance matters less between wider
members; under squared error they do not change. (Totals and noise of the log and the quadratic score may be negative, so their
ratios mean nothing and are left out.)
"""

import sys

import numpy as np

import uqprism as up
from uqprism.plots.style import BLUE, GREEN, ORANGE, new_figure, styled

RISKS = {
    "total.members.members": (BLUE, "total"),
    "bayes.members": (GREEN, "noise (Bayes)"),
    "excess.members.members": (ORANGE, "excess"),
}


@styled()
def draw(quick: bool = False):
    """The ratio of each risk to what it was before."""
    rng = np.random.default_rng(0)
    n = 20 if quick else 500  # points, over which risks are averaged
    mean, variance = rng.normal(size=(10, n)), np.exp(0.3 * rng.normal(size=(10, n)))
    centre = mean.mean(axis=0)
    shifts = {"variances doubled": (mean, 2 * variance), "means twice as far apart": (centre + 2 * (mean - centre), variance)}
    shifts["all means moved"] = (mean + 1.0, variance)
    before = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, variance=variance))

    figure, panels = new_figure(3.5, ncols=3, sharey=True)
    for axes, (name, (m, v)) in zip(panels, shifts.items(), strict=True):
        after = up.evaluate(up.EnsemblePrediction.gaussian(mean=m, variance=v))
        for place, rule in enumerate(("crps", "log", "quadratic", "squared_error")):
            for offset, (risk, (colour, label)) in zip((-0.27, 0.0, 0.27), RISKS.items(), strict=True):
                old, new = (table[f"{rule}.{risk}"].mean() for table in (before, after))
                if "excess" in risk or rule in ("crps", "squared_error"):
                    axes.bar(place + offset, new / old, 0.25, color=colour, label=label if place == 0 else None)
        axes.axhline(1.0, color="black", linewidth=0.8, linestyle="dashed")
        axes.set_xticks(range(4), ["CRPS", "log", "quadratic", "squared error"], rotation=30, ha="right")
        axes.set(title=name, yscale="log", ylim=(0.3, 5))
    panels[0].set_yticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
    panels[0].set_yticks([], minor=True)
    panels[0].set_ylabel("after / before")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if sys.argv[1:] else "posterior_shifts.png", dpi=130)
