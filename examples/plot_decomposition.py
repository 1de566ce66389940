"""Noise and disagreement.

Ten networks learn a sine from 150 points, noisy on the right and missing in the middle. The expected penalty (here the CRPS, in
units of y) splits at every x: the noise follows the true noise of the data, and the disagreement is large where there are no
data.
"""

import sys

import numpy as np
from matplotlib import rcParams

import uqprism as up
from uqprism.paper.data.synthetic import sine
from uqprism.plots.style import BLUE, GREEN, ORANGE, new_figure, styled


@styled()
def draw(quick: bool = False):
    """The data with the prediction above, its penalty in two parts below."""
    X, y = sine(150, seed=0)
    kept = np.abs(X[:, 0] + 0.2) > 0.7
    model = up.DeepEnsembleRegressor(n_members=10, max_epochs=2 if quick else 1000, patience=150, random_state=0)
    model.fit(X[kept], y[kept])

    x = np.linspace(-4.5, 4.5, 50 if quick else 400)
    ens = model.predict_ensemble(x[:, None])
    split = up.decompose(ens, rule="crps")

    figure, (above, below) = new_figure(5.0, nrows=2, sharex=True, height_ratios=(3, 2))
    mean, scale = ens.matched.mean, ens.matched.scale
    above.fill_between(
        x, mean - 2 * scale, mean + 2 * scale, color=BLUE, alpha=0.15, linewidth=0, label="± 2 standard deviations"
    )
    above.plot(x, np.asarray(ens.members.mean).T, color=BLUE, linewidth=0.5, alpha=0.6)
    above.plot([], [], color=BLUE, linewidth=0.8, label="members' means")
    above.plot(X[kept], y[kept], ".", color=rcParams["text.color"], markersize=3, label="training data")
    above.set(ylabel="y", ylim=(-3.5, 3.5))
    below.stackplot(x, split.aleatoric, split.epistemic, colors=(GREEN, ORANGE), labels=("noise", "disagreement"))
    below.set(xlabel="x", ylabel="expected CRPS (units of y)", xlim=(x[0], x[-1]), ylim=(0, 0.9))
    above.legend(ncols=3, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    below.legend(loc="upper center", ncols=2, bbox_to_anchor=(0.5, 1.0))
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if sys.argv[1:] else "decomposition.png", dpi=130)
