"""Where the rules disagree.

Two members predict. Left: both have unit scale and their means move apart. The excess under squared error and log score grows
with the square of the distance, under CRPS with the distance, and under the quadratic score it stops growing once the members
no longer overlap. Right: the means agree and one scale grows. Squared error does not change, and the log score changes most.
"""

import sys

import numpy as np

import uqprism as up
from uqprism.plots.style import GREY, PURPLE, RED, SKY, new_figure, styled

RULES = {"squared_error": (GREY, "dotted"), "log": (PURPLE, "solid"), "crps": (RED, "solid"), "quadratic": (SKY, "dashed")}


@styled()
def draw(quick: bool = False):
    """Excess risk of two members against their distance, and against the ratio of their scales."""
    n = 10 if quick else 200
    distance, ratio = np.linspace(0.0, 6.0, n), np.linspace(1.0, 6.0, n)
    apart = up.EnsemblePrediction.gaussian(mean=[-distance / 2, distance / 2], scale=np.ones((2, n)))
    wider = up.EnsemblePrediction.gaussian(mean=np.zeros((2, n)), scale=[np.ones(n), ratio])

    figure, (left, right) = new_figure(3.6, ncols=2)
    for rule, (colour, stroke) in RULES.items():
        left.plot(distance, up.decompose(apart, rule=rule).epistemic, color=colour, linestyle=stroke, label=rule)
        right.plot(ratio, up.decompose(wider, rule=rule).epistemic, color=colour, linestyle=stroke)
    left.set(xlabel="distance of the means, in scales", ylabel="excess risk", ylim=(0, 4), xlim=(0, 6))
    right.set(xlabel="scale of one member, the other's is 1", ylim=(-0.02, 2), xlim=(1, 6))
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if sys.argv[1:] else "rules_disagree.png", dpi=130)
