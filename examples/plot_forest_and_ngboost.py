"""Three models, one call.

A random forest, ten NGBoost models on resampled rows and a Gaussian process learn from the same points, none of them between 0
and 1.5 or beyond ±3. `up.from_model` takes all three. The disagreement of the process rises in the gap and outside. Trees
repeat the value of their nearest leaf where there are no data, and nearly the same one, so the disagreement of the forest and
of the boosted trees is no larger there than among the data.
"""

import sys

import numpy as np
from ngboost import NGBRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import uqprism as up
from uqprism.plots.style import GREEN, ORANGE, new_figure, styled

PARTS = ("noise", "disagreement")


@styled()
def draw(quick: bool = False):
    """Noise and disagreement along x, for each model."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(300, 1))
    X = X[(X[:, 0] < 0.0) | (X[:, 0] > 1.5)]
    y = np.sin(2.0 * X[:, 0]) + 0.2 * rng.normal(size=len(X))
    trees = 10 if quick else 200
    boosted = {"n_estimators": trees, "random_state": 0, "verbose": False}
    resampled = rng.integers(len(X), size=(10, len(X)))
    models = {
        "random forest, 200 trees": RandomForestRegressor(n_estimators=trees, min_samples_leaf=5, random_state=0).fit(X, y),
        "ten NGBoost models": [NGBRegressor(**boosted).fit(X[rows], y[rows]) for rows in resampled[: 2 if quick else 10]],
        "Gaussian process": GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1)).fit(X, y),
    }
    x = np.linspace(-3.8, 3.8, 40 if quick else 300)
    figure, panels = new_figure(3.2, ncols=3, sharey=True)
    for axes, (name, model) in zip(panels, models.items(), strict=True):
        split = up.decompose(up.from_model(model, x[:, None]), rule="crps")
        for low, high in ((-5.0, -3.0), (0.0, 1.5), (3.0, 5.0)):
            axes.axvspan(low, high, color="black", alpha=0.06, linewidth=0)
        axes.stackplot(x, split.aleatoric, split.epistemic, colors=(GREEN, ORANGE), labels=PARTS)
        axes.set(title=name, xlabel="x (shaded: no data)", xlim=(-3.8, 3.8))
    panels[0].set_ylabel("expected CRPS (units of y)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if sys.argv[1:] else "forest_and_ngboost.png", dpi=130)
