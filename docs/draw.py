"""Draw the pictures of the task pages and the gallery; run after changing a figure. With names of examples, only theirs."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

import uqprism as up
from uqprism import tasks
from uqprism.paper.data.synthetic import sine
from uqprism.plots.style import PLAIN, STYLE, new_figure, save_as, styled

PICTURES = Path(__file__).parent / "pictures"
EXAMPLES = Path(__file__).parent.parent / "examples"
INK, PAPER = "#d7d9e0", "#1e2129"  # the theme's dark scheme
DARK = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), PAPER),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}


def main() -> None:
    """All of them, or those of the examples that were named."""
    PICTURES.mkdir(exist_ok=True)
    if not sys.argv[1:]:
        _landing()
        _tasks()
        _watched()
    for name in sys.argv[1:] or sorted(path.stem.removeprefix("plot_") for path in EXAMPLES.glob("plot_*.py")):
        _example(name)


def _example(name: str) -> None:
    """The picture of an example, in 128 colours: a page of them should load at once."""
    path = PICTURES / f"gallery_{name}.png"
    save_as(runpy.run_path(str(EXAMPLES / f"plot_{name}.py"))["draw"](), path)
    Image.open(path).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def _landing() -> None:
    """The picture of the landing page, for readers of light and of dark pages."""
    draw = runpy.run_path(str(EXAMPLES / "plot_decomposition.py"))["draw"]
    for name, changes in {"light": {}, "dark": DARK}.items():
        with matplotlib.rc_context(changes):
            save_as(draw(), PICTURES / f"landing_{name}.png")


def _tasks() -> None:
    """The pictures of the tasks' pages, from one ensemble; the learning curves from loops of their own."""
    inputs, targets = sine(150, seed=0)
    held, truth = sine(1000, seed=1)
    model = up.DeepEnsembleRegressor(n_members=10, random_state=0).fit(inputs, targets)
    ensemble = model.predict_ensemble(held)
    table, error = up.evaluate(ensemble), tasks.prediction_error(ensemble, truth)
    outside = {"left": np.linspace(-5.0, -3.0, 300), "right": np.linspace(3.0, 5.0, 300)}
    unfamiliar = {name: up.evaluate(model.predict_ensemble(x[:, None])) for name, x in outside.items()}
    drawn = {
        "retention": up.selective_prediction(table, error=error),
        "roc": up.ood_detection(table, unfamiliar),
        "correlation": up.rank_correlation(table),
        "intervals": up.select_measure(table, error=error),
        "learning": _comparison(),
        "audit": _audit(),
    }
    for name, result in drawn.items():
        save_as(result.plot().figure, PICTURES / f"{name}.png")


def _watched() -> None:
    """A stream in which inputs become unfamiliar: the evidence, and the estimate where it meets outcomes."""
    rng = np.random.default_rng(0)

    def predictions(rows: int, disagreement: float = 0.2) -> up.EnsemblePrediction:
        scale = rng.uniform(0.5, 1.5, rows) * np.exp(0.05 * rng.normal(size=(5, rows)))
        return up.EnsemblePrediction.gaussian(mean=disagreement * rng.normal(size=(5, rows)), scale=scale)

    reference = predictions(2000)
    watch = up.Watch(reference, target=reference.sample(1, seed=0)[0])
    for window in range(40):
        batch = predictions(500, 0.2 if window < 28 else 0.6)
        watch.update(batch, target=None if window % 3 else batch.sample(1, seed=window)[0])
    with styled({**STYLE, **PLAIN}):
        figure, (above, below) = new_figure(6.4, nrows=2)
        watch.plot(above)
        watch.plot_penalty(below)
        save_as(figure, PICTURES / "watch.png")


def _audit() -> up.Audit:
    """The example of the page on audits, with more epochs, parts and repeats."""
    from uqprism.training import MLP, StackedFit

    fit = StackedFit(n_members=5, bootstrap=True, network=MLP((50, 50)), max_epochs=300, batch_size=32)
    return up.audit(fit, *sine(1000, seed=0), repeats=4)


def _comparison() -> up.TaskResult:
    """The example of the page on active learning, with more rounds and seeds."""
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    inputs = rng.uniform(-2.0, 2.0, size=(3000, 2))
    targets = np.where(inputs[:, 0] > 0.0, np.sin(4.0 * inputs[:, 0]), 0.0) + 0.1 * rng.normal(size=3000)
    return tasks.compare_acquisitions(
        RandomForestRegressor(n_estimators=50, min_samples_leaf=3),
        tasks.Pool.of(inputs[:2000], targets[:2000], (inputs[2000:], targets[2000:])),
        ["random", "crps.excess.members.members", "crps.bayes.members"],
        tasks.LoopSettings(initial=50, batch_size=20, rounds=10, scores="rank"),
        seeds=5,
    )


if __name__ == "__main__":
    main()
