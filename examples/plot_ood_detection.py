"""Detect inputs unlike the training data.

Networks are trained between -3 and 3 and then used on both sides of that range. Left: the excess risk (the disagreement) of
known and of unfamiliar inputs; inputs above a threshold are flagged. Right: how many unfamiliar inputs are found for how many
known inputs flagged by mistake.
"""

import sys

import numpy as np

import uqprism as up
from uqprism.paper.data.synthetic import sine
from uqprism.plots.style import BLUE, GREEN, ORANGE, PURPLE, new_figure, styled

EXCESS, NOISE = "log.excess.members.members", "log.bayes.members"


@styled()
def draw(quick: bool = False):
    """Histograms of the excess risk, and the ROC curves of excess and Bayes risk."""
    X, y = sine(150, seed=0)
    model = up.DeepEnsembleRegressor(n_members=10, max_epochs=2 if quick else 1000, patience=150, random_state=0).fit(X, y)
    known = up.evaluate(model.predict_ensemble(sine(1000, seed=1)[0]), [EXCESS, NOISE])
    outside = np.concatenate([np.linspace(-5.0, -3.0, 300), np.linspace(3.0, 5.0, 300)])
    unfamiliar = up.evaluate(model.predict_ensemble(outside[:, None]), [EXCESS, NOISE])
    result = up.ood_detection(known, unfamiliar, resamples=0)

    figure, (left, right) = new_figure(3.8, ncols=2)
    bins = np.geomspace(1e-3, 1e2, 50)
    for table, colour, label in ((known, BLUE, "known inputs"), (unfamiliar, PURPLE, "unfamiliar inputs")):
        left.hist(np.clip(table[EXCESS], bins[0], bins[-1]), bins, color=colour, alpha=0.7, label=label)
    left.set(xscale="log", xlabel="excess risk, log score (nats)", ylabel="inputs")
    left.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    alarms = 100 * np.asarray(result.curves["false_positive_rate"])
    for name, colour, label in ((EXCESS, ORANGE, "excess risk"), (NOISE, GREEN, "noise (Bayes risk)")):
        found = 100 * np.asarray(result.curves[name])
        right.plot(alarms, found, color=colour, label=f"{label}: AUROC {result[name]:.3f}")
    right.plot([0, 100], [0, 100], color="black", linestyle="dashed", linewidth=0.8, label="chance: AUROC 0.500")
    right.set(xlabel="known inputs flagged by mistake (%)", ylabel="unfamiliar inputs found (%)", xlim=(0, 100), ylim=(0, 101))
    right.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if sys.argv[1:] else "ood_detection.png", dpi=130)
