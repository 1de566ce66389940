"""Choose which points to label.

A curve is to be learned everywhere, but nine in ten points of the pool are on the left. A Gaussian process starts from five
labels and gets five more in each round. Labels chosen at random are mostly on the left, like the pool. Labels chosen by excess
risk (the disagreement) cover the range, and the error falls faster. The band is one standard deviation between twenty runs.
"""

import sys

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import uqprism as up
from uqprism.plots.style import GREY, ORANGE, new_figure, styled

WAYS = {"crps.excess.members.members": (ORANGE, "excess risk"), "random": (GREY, "at random")}


@styled()
def draw(quick: bool = False):
    """Where the labels are bought, and how the test error falls."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-3.0, -1.5, size=900), rng.uniform(-1.5, 3.0, size=100)])
    y = np.sin(2.0 * x) + 0.1 * rng.normal(size=1000)
    grid = np.linspace(-3.0, 3.0, 200)
    process = GaussianProcessRegressor(RBF(0.7) + WhiteKernel(0.01), optimizer=None)
    how = {"initial": 5, "batch_size": 5, "rounds": 8, "test": (grid[:, None], np.sin(2.0 * grid)), "scores": "rank"}

    figure, (left, right) = new_figure(3.4, ncols=2)
    for way, (colour, label) in WAYS.items():
        bought, errors = [], []
        for seed in range(1 if quick else 20):
            learner = up.ActiveLearner(process, x[:, None], y, acquisition=way, random_state=seed, **how)
            errors.append([state.metrics["rmse"] for state in learner])
            bought.append(x[learner.labelled])
        runs = np.concatenate(bought)
        left.hist(runs, np.linspace(-3, 3, 25), weights=np.full(len(runs), 1 / len(bought)), color=colour, alpha=0.6, label=label)
        labels, mean, spread = 5 * np.arange(1, 9), np.mean(errors, axis=0), np.std(errors, axis=0)
        right.fill_between(labels, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
        right.plot(labels, mean, color=colour, label=label)
    left.set(xlabel="x", ylabel="labels bought, per run", xlim=(-3, 3))
    left.legend(title="bought")
    right.set(xlabel="labels", ylabel="root mean squared error", ylim=(0, None))
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if sys.argv[1:] else "active_learning.png", dpi=130)
