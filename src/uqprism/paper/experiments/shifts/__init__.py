"""Shifts of a posterior: how every measure answers when means or variances move or spread, exactly.

The paper (Characterization of Uncertainty Measures) has a posterior over Gaussians: the mean is uniform on (-1, 1) and,
independently, the variance on (1, 2). Four shifts move or spread one of them: the means to (1, 3), the variances to (2, 3), the
means to (-2, 2), the variances to (0.5, 2.5).

Nothing is drawn. The posterior is a weighted ensemble on the nodes of a Gauss-Legendre rule in both parameters, so that a mean
over members is the rule for an integral over the posterior; the integrands are smooth, and the error falls exponentially with
the nodes. A second, coarser rule tells how large it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uqprism.paper.artefacts import Artefact, Store, as_data
from uqprism.paper.base import Experiment, Picture, Result, first_line
from uqprism.paper.experiments.shifts.claims import ORIGINAL, SHIFTS, Answers, all_claims
from uqprism.paper.jobs import Job

if TYPE_CHECKING:
    from uqprism import EnsemblePrediction, MeasureTable

Interval = tuple[float, float]


@dataclass(frozen=True)
class Posterior:
    """Mean and variance, each uniform on an interval, independent of each other."""

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
    """The settings; the defaults are the preset `paper`. Nothing is drawn, so there is no seed.

    Attributes:
        nodes: of the rule, in mean and in variance.
        coarser_nodes: of the rule that it is compared with, to see the error.
    """

    nodes: int = 16
    coarser_nodes: int = 12


@dataclass(frozen=True)
class Rule:
    """A job: all measures of all posteriors, with so many nodes in each parameter."""

    nodes: int
    posteriors: tuple[Posterior, ...] = tuple(POSTERIORS.values())


def jobs(config: Config) -> list[Job]:
    """The rule and the coarser one."""
    return [_job(config.nodes), _job(config.coarser_nodes)]


def _job(nodes: int) -> Job:
    return Job(f"{nodes} x {nodes} nodes", Artefact("measures", Rule(nodes)), seconds=2e-5 * nodes**4)


def work(job: Job, _: Store) -> MeasureTable:
    """Every measure, (posteriors,)."""
    from uqprism import evaluate

    return evaluate(weighted(job.key))


def weighted(rule: Rule) -> EnsemblePrediction:
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
        weights=np.outer(weights, weights).ravel() / 4.0,
    )


def gather(config: Config, store: Store) -> Result:
    """The paper's sentences against the numbers, and all of them in a table."""
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
        float(np.max(np.abs(fine[name] - coarse[name]) / np.where(fine[name] == 0.0, 1.0, np.abs(fine[name])))) for name in fine
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
    from uqprism.paper.experiments.shifts import figures

    return {"shifts": figures.shifts(result)}


EXPERIMENT = Experiment(
    name="shifts",
    summary=first_line(__doc__),
    presets={"quick": Config(nodes=8, coarser_nodes=6), "paper": Config()},
    jobs=jobs,
    work=work,
    gather=gather,
    draw=draw,
)
