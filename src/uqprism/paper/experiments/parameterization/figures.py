"""The two figures, drawn from a result and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.paper.base import Picture, Result
from uqprism.paper.data.synthetic import SINE_REGION, sine_mean
from uqprism.plots.style import BLUE, GREY, ORANGE, new_figure, styled

PANELS = {"standard": "Standard: mean and variance", "natural": "Natural parameters"}
THIN = {"linewidth": 0.3, "alpha": 0.2}
DASHED = (0, (4, 3))


def loss(result: Result) -> Picture:
    """Training and validation loss by epoch, left standard, right natural."""
    arrays = result.arrays
    with styled():
        figure, axes = new_figure(3.2, ncols=2, sharey=True, sharex=True)
        for ax, (name, title) in zip(axes, PANELS.items(), strict=True):
            curves = {"training": (arrays[f"{name}_training"], BLUE), "validation": (arrays[f"{name}_validation"], ORANGE)}
            epochs = np.arange(1, len(curves["training"][0]) + 1)
            shown = _shown(result, name)
            for values, colour in curves.values():
                ax.plot(epochs, np.delete(values, shown, axis=1), color=colour, **THIN)
            for label, (values, colour) in curves.items():
                ax.plot(epochs, values[:, shown], color=colour, linewidth=1.0, label=label)
            ax.axhline(float(arrays["true_loss"]), color="black", linewidth=0.8, linestyle=DASHED, label="true distribution")
            ax.set(title=title, xlabel="epoch", xscale="log", xlim=(1, len(epochs)))
        axes[0].set_ylabel("negative log-likelihood per row")
        axes[0].set_ylim(*_loss_limits(arrays))
        axes[1].legend(loc="upper right")
    count = arrays["natural_training"].shape[1]
    caption = (
        f"Training and validation loss with the standard (left) and the natural (right) parameterisation: {count} networks each; "
        "bold: the best of the first training set; dashed: the validation loss of the distribution that the data come from."
    )
    return Picture(figure, caption)


def _shown(result: Result, name: str) -> int:
    """The best network of the first training set, so that both panels show the same data."""
    return int(result.arrays[f"{name}_validation"][:, : result.config["n_networks"]].min(0).argmin())


def _loss_limits(arrays: Any) -> tuple[float, float]:
    """From below the lowest loss to what the networks start from, higher spikes cut off."""
    curves = [arrays[f"{name}_{part}"] for name in PANELS for part in ("training", "validation")]
    low = min(float(each.min()) for each in curves)
    start = max(float(np.median(each[0])) for each in curves)
    return low - 0.05 * (start - low), start


def prediction(result: Result) -> Picture:
    """Mean and two standard deviations of the best network, far beyond the data; left standard, right natural."""
    arrays = result.arrays
    grid = arrays["grid"]
    inside = np.linspace(*SINE_REGION, 301)
    with styled():
        figure, axes = new_figure(2.9, ncols=2, sharey=True, sharex=True)
        for ax, (name, title) in zip(axes, PANELS.items(), strict=True):
            mean, scale = arrays[f"{name}_mean"], arrays[f"{name}_scale"]
            best = _shown(result, name)
            ax.axvspan(*SINE_REGION, color=GREY, alpha=0.12, linewidth=0)
            ax.scatter(arrays["inputs"], arrays["targets"], s=1.5, color=GREY, linewidths=0, rasterized=True, label="data")
            ax.plot(grid, np.delete(mean, best, axis=0).T, color=BLUE, linewidth=0.5, alpha=0.4)
            ax.fill_between(
                grid,
                mean[best] - 2 * scale[best],
                mean[best] + 2 * scale[best],
                color=ORANGE,
                alpha=0.35,
                linewidth=0,
                label="± 2 standard deviations",
            )
            ax.plot(grid, mean[best], color=BLUE, linewidth=1.4, label="mean of the best network")
            ax.plot(inside, sine_mean(inside), color="black", linewidth=0.8, linestyle=DASHED, label="true mean")
            ax.set(title=title, xlabel="x", xlim=(grid[0], grid[-1]))
        axes[0].set_ylabel("y")
        axes[0].set_ylim(*_prediction_limits(result))
        figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=4, markerscale=3)
    caption = (
        "Predictions far beyond the data (shaded), standard (left) and natural (right): mean and two standard deviations of the "
        "best network of the first training set, whose rows are shown; thin: the means of the networks of all training sets, "
        "some of which leave the panel."
    )
    return Picture(figure, caption)


def _prediction_limits(result: Result) -> tuple[float, float]:
    """Room for the data and twice what the bold means need: a mean that grows exponentially would hide all others."""
    arrays = result.arrays
    shown = np.concatenate([arrays["targets"], *(arrays[f"{name}_mean"][_shown(result, name)] for name in PANELS)])
    low, high = float(shown.min()), float(shown.max())
    return low - 0.5 * (high - low), high + 0.5 * (high - low)
