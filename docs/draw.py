"""Draw the pictures of the task pages: the code of those pages, with the figures saved. Run after changing a figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import uqprism as up
from uqprism import tasks
from uqprism.data.synthetic import sine
from uqprism.report.drawing import save_as

PICTURES = Path(__file__).parent / "pictures"


def main() -> None:
    """Every picture, from one ensemble; the learning curves from loops of their own."""
    inputs, targets = sine(150, seed=0)
    held, truth = sine(1000, seed=1)
    model = up.DeepEnsembleRegressor(n_members=10, random_state=0).fit(inputs, targets)
    ensemble = model.predict_ensemble(held)
    table, error = up.evaluate(ensemble), tasks.prediction_error(ensemble, truth)
    outside = {"left": np.linspace(-5.0, -3.0, 300), "right": np.linspace(3.0, 5.0, 300)}
    aliens = {name: up.evaluate(model.predict_ensemble(x[:, None])) for name, x in outside.items()}
    drawn = {
        "retention": up.selective_prediction(table, error=error),
        "roc": up.ood_detection(table, aliens),
        "correlation": up.rank_correlation(table),
        "intervals": up.select_measure(table, error=error),
        "learning": _comparison(),
    }
    PICTURES.mkdir(exist_ok=True)
    for name, result in drawn.items():
        save_as(result.plot().figure, PICTURES / f"{name}.png")


def _comparison() -> up.TaskResult:
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor

    inputs, targets = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(targets))
    test, pool = order[:100], order[100:]
    return tasks.compare_acquisitions(
        RandomForestRegressor(min_samples_leaf=5),
        inputs[pool],
        targets[pool],
        acquisitions=["random", "log.excess.members.members", "crps.total.members.members"],
        seeds=5,
        initial=20,
        batch_size=10,
        rounds=12,
        test=(inputs[test], targets[test]),
        scores="standardised",
    )


if __name__ == "__main__":
    main()
