"""Reject the least certain predictions.

Rank the predictions by an uncertainty, give the most uncertain ones to a person, and see how the mean error of the rest falls.
Most of the error here is noise (x > 0). Total and Bayes risk find it; the excess risk, which contains no noise, does not.
"""

import sys

import uqprism as up
from uqprism import plots
from uqprism.paper.data.synthetic import sine
from uqprism.plots.style import new_figure, styled


@styled()
def draw(quick: bool = False):
    """One retention curve for each kind of risk."""
    X, y = sine(150, seed=0)
    X_new, y_new = sine(200 if quick else 2000, seed=1)
    model = up.DeepEnsembleRegressor(n_members=10, max_epochs=2 if quick else 1000, patience=150, random_state=0).fit(X, y)
    ens = model.predict_ensemble(X_new)

    measures = ["crps.total.members.members", "crps.bayes.members", "crps.excess.members.members"]
    error = up.prediction_error(ens, y_new)  # squared
    result = up.selective_prediction(up.evaluate(ens, measures), error=error, resamples=0)

    figure, axes = new_figure(4.4)
    plots.retention_curves(result, measures, ax=axes)
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1] if sys.argv[1:] else "selective_prediction.png", dpi=130)
