"""What deviations each head predicts far from the data, with embedded columns and without; draws docs/pictures/far.png.

python benchmarks/far.py
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import public

from uqprism.plots.style import save_as, styled
from uqprism.training import MLP, TabularMLP, train

HERE = Path(__file__).parent
CELLS, PICTURE = HERE / "far.json", HERE.parent / "docs/pictures/far.png"
HEADS = (
    "natural",
    "mean_variance",
    "beta_nll",
    "warm_up",
    "crps",
    "laplace",
    "mixture",
    "histogram",
    "quantiles",
    "evidential",
)
DISTANCES = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0)
SHARE = 0.02  # of points that may have a smaller deviation at the greatest distance


def measure() -> dict[str, dict[str, list[float]]]:
    """For each head and network the share of points, at each distance, with a smaller deviation than the median inside."""
    x, y = public.load("friedman, unequal noise")
    rng = np.random.default_rng(0)
    training, test = rng.permutation(len(y))[:1500].reshape(2, -1)[:, :750]
    direction = rng.normal(size=(2000, x.shape[1]))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    origin = x[rng.choice(training, len(direction))]
    found: dict[str, dict[str, list[float]]] = {}
    for name, network in (("embedded columns", TabularMLP()), ("columns as they are", MLP())):
        for head in HEADS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = train(x[training], y[training], network=network, head=head, seed=0, device="cpu", progress=False)
            inside = np.median(_deviation(model, x[test]))
            rows = (origin + distance * direction * x.std(0) for distance in DISTANCES)
            found.setdefault(name, {})[head] = [float(np.mean(_deviation(model, each) < inside)) for each in rows]
            print(name, head, found[name][head], flush=True)
    return found


def _deviation(model: Any, rows: Any) -> Any:
    return model.predict_ensemble(rows).matched.scale


def draw(found: dict[str, dict[str, list[float]]]) -> None:
    """Two panels, a line for each head."""
    import matplotlib.pyplot as plt

    with styled():
        figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
        for axis, (name, heads) in zip(axes, found.items(), strict=True):
            for place, (head, shares) in enumerate(heads.items()):
                axis.plot(DISTANCES, shares, marker="o", markersize=3, label=head, color=f"C{place}")
            axis.axhline(SHARE, color="0.5", linewidth=0.8, linestyle=":")
            axis.set(title=name, xscale="log", xlabel="distance from a training row, in standard deviations")
        axes[0].set_ylabel("share of points with a smaller\ndeviation than the median inside")
        axes[1].legend(fontsize="small", ncols=2)
        save_as(figure, PICTURE)


if __name__ == "__main__":
    if not CELLS.exists():
        CELLS.write_text(json.dumps(measure(), indent=1) + "\n")
    draw(json.loads(CELLS.read_text()))
