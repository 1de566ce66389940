"""Which measures agree.

Two measures that rank the points in the same order give the same result in every task. Of the twelve measures with members in
both roles, under four rules, total risks rank points nearly alike under every rule, and so do Bayes risks (noise). The rules
differ in the excess risk (the disagreement).
"""

import sys

import uqprism as up
from uqprism import plots
from uqprism.paper.data.synthetic import sine
from uqprism.plots.style import new_figure, styled


@styled()
def draw(quick: bool = False):
    """A heat map of Kendall's tau-b, like measures beside each other."""
    X, y = sine(150, seed=0)
    model = up.DeepEnsembleRegressor(n_members=10, max_epochs=2 if quick else 1000, patience=150, random_state=0).fit(X, y)
    ens = model.predict_ensemble(sine(200 if quick else 1000, seed=1)[0])
    pairs = [measure for measure in up.catalogue() if {measure.prediction, measure.truth} <= {"members", None}]

    figure, axes = new_figure(5.4)
    plots.rank_correlation(up.rank_correlation(up.evaluate(ens, pairs)), ax=axes)
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if sys.argv[1:] else "rank_correlation.png", dpi=130)
