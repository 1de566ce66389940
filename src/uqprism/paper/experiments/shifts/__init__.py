"""Shifts of a posterior: how every measure responds when means or variances move or spread, exactly.

The paper (Characterization of Uncertainty Measures) has a posterior over Gaussians: the mean is uniform on (-1, 1) and,
independently, the variance on (1, 2). Four shifts move or spread one of them: the means to (1, 3), the variances to (2, 3), the
means to (-2, 2), the variances to (0.5, 2.5).

Nothing is drawn. The posterior is a weighted ensemble on the nodes of a Gauss-Legendre rule in both parameters, so that a mean
over members is the rule for an integral over the posterior; the integrands are smooth, and the error falls exponentially with
the nodes. A second, coarser rule estimates it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.measures import published
from uqprism.paper.experiment import Experiment, Picture, Result, first_line, register
from uqprism.paper.experiments.shifts.claims import NONE, ORIGINAL, SHIFTS, Answers, all_claims
from uqprism.paper.jobs import Job
from uqprism.paper.store import Artefact, Store, as_data
from uqprism.plots.style import BLUE, GREY, RISK_COLOURS, new_figure, styled

if TYPE_CHECKING:
    from uqprism import EnsemblePrediction, MeasureTable


Interval = tuple[float, float]


@dataclass(frozen=True)
class Posterior:
    """A mean and a variance, each uniform on an interval, independent of each other."""

    mean: Interval
    variance: Interval


POSTERIORS = {
    ORIGINAL: Posterior((-1.0, 1.0), (1.0, 2.0)),
    SHIFTS[0]: Posterior((1.0, 3.0), (1.0, 2.0)),
    SHIFTS[1]: Posterior((-1.0, 1.0), (2.0, 3.0)),
    SHIFTS[2]: Posterior((-2.0, 2.0), (1.0, 2.0)),
    SHIFTS[3]: Posterior((-1.0, 1.0), (0.5, 2.5)),
}


@dataclass(frozen=True)
class Config:
    """The settings; the defaults are the preset `paper`. There is no seed, because nothing is drawn.

    Attributes:
        nodes: number of nodes in mean and in variance.
        coarser_nodes: number of nodes of the coarser rule.
    """

    nodes: int = 16  # agrees with 12 to nine digits
    coarser_nodes: int = 12


@dataclass(frozen=True)
class Quadrature:
    """A job: all measures of all posteriors, with this number of nodes in each parameter."""

    nodes: int
    posteriors: tuple[Posterior, ...] = tuple(POSTERIORS.values())  # here, because the key decides what is reused


def jobs(config: Config) -> list[Job]:
    """One job for each rule."""
    return [_job(config.nodes), _job(config.coarser_nodes)]


def _job(nodes: int) -> Job:
    # Members are pairs of nodes, and measures go over pairs of members.
    return Job(f"{nodes} x {nodes} nodes", Artefact("measures", Quadrature(nodes)), seconds=2e-5 * nodes**4)


def work(job: Job, _: Store) -> MeasureTable:
    """Evaluate every measure, (posteriors,)."""
    from uqprism import evaluate

    return evaluate(weighted(job.key))


def weighted(rule: Quadrature) -> EnsemblePrediction:
    """The posteriors as one ensemble of the nodes, (nodes * nodes, posteriors), weighted by the rule."""
    from uqprism import EnsemblePrediction

    nodes, weights = np.polynomial.legendre.leggauss(rule.nodes)
    share = (nodes + 1.0) / 2.0  # of the way through an interval
    along_mean, along_variance = (grid.ravel() for grid in np.meshgrid(share, share, indexing="ij"))

    def placed(interval: Interval, along: np.ndarray) -> np.ndarray:
        return interval[0] + (interval[1] - interval[0]) * along

    return EnsemblePrediction.gaussian(
        mean=np.stack([placed(each.mean, along_mean) for each in rule.posteriors], axis=1),
        variance=np.stack([placed(each.variance, along_variance) for each in rule.posteriors], axis=1),
        weights=np.outer(weights, weights).ravel() / 4.0,  # Gauss-Legendre weights add up to 2
        member_axis=0,  # many members of few points
    )


def gather(config: Config, store: Store) -> Result:
    """Compare the paper's sentences with the numbers, and tabulate all measures."""
    fine, coarse = (store.get(job.artefact) for job in jobs(config))
    answers = Answers({name: np.asarray(fine[name]) for name in fine})
    return Result(
        config=as_data(config),
        seeds={},
        claims=all_claims(answers),
        tables={"Relative change of every measure": answers.rows()},
        notes=_notes(config, answers, _error(fine, coarse)),
        arrays={**answers.values, "posteriors": np.array([(*each.mean, *each.variance) for each in POSTERIORS.values()])},
    )


def _error(fine: MeasureTable, coarse: MeasureTable) -> float:
    """The largest difference between the two rules, relative to the number itself."""
    return max(
        # A measure that is zero is compared as it is.
        float(np.max(np.abs(fine[name] - coarse[name]) / np.where(fine[name] == 0.0, 1.0, np.abs(fine[name]))))
        for name in fine
    )


def _notes(config: Config, answers: Answers, error: float) -> tuple[str, ...]:
    tiny = answers.values["crps.excess.mixture.matched"]
    return (
        f"Exact: with {config.nodes} nodes in each parameter no number differs by more than {error:.1g} of itself from that with "
        f"{config.coarser_nodes}, also those that are a millionth of the others.",
        "Excess 3a,2 compares the mixture with the Gaussian of the same mean and variance. Under CRPS it is "
        f"{tiny[0]:.2e} before and {tiny[2]:.2e} after the variances move: nothing, on the axis of a figure, and a fall by "
        f"{-answers.change('crps.excess.mixture.matched', SHIFTS[1]):.0%} of itself. “Stays the same” is true of the bar, not of "
        "the measure; whoever ranks points by it sees the fall.",
        "The matched and the pooled Gaussian see only the mean variance and the spread of the means, so their Bayes risks cannot "
        "answer to a spread of the variances; those of the members fall, because the entropy of a Gaussian is concave in its "
        "variance under every rule but squared error, where it is the variance. So Bayes risks that stay are those of the "
        "stand-ins, in any posterior.",
        "Labels are those of the paper's tables, by (truth, prediction). Its blank cells, of the log score with a mixture, are "
        "filled; claims are decided on the 57 cells that the paper fills, unless they say otherwise.",
    )


def draw(result: Result) -> dict[str, Picture]:
    """The paper's figure."""
    return {"shifts": _figure(result)}


TITLES = {"crps": "CRPS", "log": "Log", "squared_error": "Squared error", "quadratic": "Quadratic"}
GAP = 2  # between two rules, in widths of a bar
TICKS = (-1.0, -0.1, 0.0, 0.1, 1.0, 10.0, 100.0)


def _figure(result: Result) -> Picture:
    """A row per shift: on the left the posterior before and after, on the right every measure's relative change."""
    answers = Answers({name: values for name, values in result.arrays.items() if name != "posteriors"})
    with styled():
        figure, axes = new_figure(8.4, nrows=4, ncols=2, width_ratios=[1.0, 4.6], sharex="col", sharey="col")
        for (left, right), shift in zip(axes, SHIFTS, strict=True):
            _posterior(left, result.arrays["posteriors"], shift)
            _bars(right, answers, shift)
        axes[-1, 0].set_xlabel("mean")
        for rule, (start, stop) in _places().items():
            middle = (start + stop - 1) / 2
            axes[0, 1].annotate(
                TITLES[rule], (middle, 1.0), (0, 3), xycoords=("data", "axes fraction"), ha="center", textcoords="offset points"
            )
        _label(axes[-1, 1])
        handles = [_patch(colour, name.replace("bayes", "Bayes")) for name, colour in RISK_COLOURS.items()]
        handles += [_patch(GREY, f"changes by less than {NONE:.0%}"), _cross("always zero")]
        figure.legend(handles=handles, loc="outside lower center", ncols=5)
    caption = (
        "Left: the posterior over mean and variance, grey before and blue after the shift. Right: the change of each measure, "
        "relative to its size before; the axis is linear up to 10 % and logarithmic beyond. Grey: less than 1 %; crosses: always "
        "zero; pale: cells that the paper leaves blank. Labels are by (truth, prediction), as in the paper's tables."
    )
    return Picture(figure, caption)


def _posterior(ax: Any, posteriors: Any, shift: str) -> None:
    from matplotlib.patches import Rectangle

    for box, colour in ((posteriors[0], GREY), (posteriors[1 + SHIFTS.index(shift)], BLUE)):
        low_mean, high_mean, low, high = box
        corner, width, height = (low_mean, low), high_mean - low_mean, high - low
        ax.add_patch(Rectangle(corner, width, height, facecolor=colour, alpha=0.3, edgecolor=colour, linewidth=1.0))
    ax.set(xlim=(-2.4, 3.4), ylim=(0.0, 3.4), xticks=(-2, 0, 2), ylabel="variance", title=shift)


def _places() -> dict[str, tuple[int, int]]:
    """The first and last place of each rule's bars."""
    width = len(published.measures(("crps",)))
    return {rule: (i * (width + GAP), i * (width + GAP) + width) for i, rule in enumerate(TITLES)}


def _bars(ax: Any, answers: Answers, shift: str) -> None:
    filled = published.table("ood_detection_mean")
    for rule, (start, _) in _places().items():
        for place, measure in enumerate(published.measures((rule,)), start):
            change = answers.change(measure, shift)
            if not np.any(answers.values[measure.name]):
                ax.plot(place, 0.0, marker="x", color=GREY, markersize=3.0, markeredgewidth=0.7)
                continue
            colour = GREY if abs(change) < NONE else RISK_COLOURS[measure.risk]
            shown = change if abs(change) >= NONE else 0.012  # so that the bar can be seen
            ax.bar(place, shown, width=0.8, color=colour, alpha=1.0 if measure.name in filled else 0.45)
    ax.axhline(0.0, color="black", linewidth=0.6)
    ax.set_yscale("symlog", linthresh=0.1, linscale=0.7)
    ax.set(ylim=(-1.3, 400.0), yticks=TICKS, yticklabels=[f"{tick:+.0%}" if tick else "0" for tick in TICKS])
    ax.set(xlim=(-1.0, _places()["quadratic"][1]), ylabel="relative change")
    ax.tick_params(axis="y", labelsize=7)
    ax.tick_params(axis="x", length=0.0)
    ax.minorticks_off()


def _label(ax: Any) -> None:
    """Label every bar by its superscript."""
    places: list[int] = []
    labels: list[str] = []
    for rule, (start, stop) in _places().items():
        places += range(start, stop)
        labels += [published.label(measure.name).split("{")[1].removesuffix("}") for measure in published.measures((rule,))]
    ax.set_xticks(places, labels, rotation=90, fontsize=4.6)  # all that fits
    ax.tick_params(axis="x", pad=1)


def _patch(colour: str, label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def _cross(label: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker="x", color=GREY, markersize=4.0, label=label)


EXPERIMENT = register(
    Experiment(
        name="shifts",
        summary=first_line(__doc__),
        presets={"quick": Config(nodes=8, coarser_nodes=6), "paper": Config()},
        jobs=jobs,
        work=work,
        gather=gather,
        draw=draw,
    )
)
