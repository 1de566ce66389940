"""What an ensemble promises, and what happens: excess, noise and realised penalty of each test row under several measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uqprism.arrays import from_numpy, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, UqprismError
from uqprism.evaluation import evaluate
from uqprism.measures import Measure, MeasuresLike, select_measures
from uqprism.rules.kernel import KernelRule

MOST_MEMBERS = 10  # of each training set, where members of several are compared in pairs


@dataclass(frozen=True)
class Measured:
    """The ensembles of one size and repeat, judged on the test rows.

    Attributes:
        excess: (measures, rows), the mean over the training sets.
        noise: the Bayes risk of the measure's truth, (measures, rows).
        penalty: what the measure's prediction cost, (measures, rows).
        within: the mean excess between two members of one training set, (measures,).
        between: that between members of two training sets, which share no row; NaN for a single one.
    """

    excess: np.ndarray
    noise: np.ndarray
    penalty: np.ndarray
    within: np.ndarray
    between: np.ndarray

    @classmethod
    def of(cls, ensembles: Sequence[EnsemblePrediction], targets: np.ndarray, measures: Sequence[Measure]) -> Measured:
        """Judge the ensembles of several training sets of one size."""
        rows = [_rows(each, targets, measures) for each in ensembles]
        excess, noise, penalty = np.mean(rows, axis=0)
        return cls(excess, noise, penalty, *_pairs(ensembles, measures))

    def arrays(self) -> dict[str, np.ndarray]:
        """By name, to keep in a file."""
        return dict(vars(self))


def _rows(ensemble: EnsemblePrediction, targets: np.ndarray, measures: Sequence[Measure]) -> np.ndarray:
    """Excess, noise and penalty, (3, measures, rows)."""
    names = [name for each in measures for name in (each.name, noise_of(each))]
    table = evaluate(ensemble, list(dict.fromkeys(names)))
    scored: dict[tuple[str, str], np.ndarray] = {}
    for each in measures:
        key = each.rule, str(each.prediction)
        if key not in scored:
            scored[key] = realised(ensemble, targets, each)
    found = [[table[each.name] for each in measures], [table[noise_of(each)] for each in measures]]
    return np.array([[to_numpy(x) for x in row] for row in found] + [[scored[e.rule, str(e.prediction)] for e in measures]])


def noise_of(measure: Measure) -> str:
    """The Bayes risk that the excess is beside."""
    return f"{measure.rule}.bayes.{measure.truth}"


def realised(ensemble: EnsemblePrediction, targets: np.ndarray, measure: Measure) -> np.ndarray:
    """What the measure's prediction cost in each row, (rows,); of members the mean."""
    rule = measure.resolved()
    y = from_numpy(targets, ensemble.members.centre)
    if measure.prediction == "members":
        weights = to_numpy(ensemble.member_weights())
        weights = weights.reshape(weights.shape[0], -1) if weights.ndim > 1 else weights[:, None]
        return np.asarray((weights * to_numpy(rule.score(ensemble.members, y))).sum(axis=0))
    if measure.prediction == "mixture" and isinstance(rule, KernelRule):
        # The spread of the mixture from `evaluate`, which has kernels for it: it takes all pairs of members.
        spread = to_numpy(evaluate(ensemble, [f"{rule.name}.bayes.mixture"])[f"{rule.name}.bayes.mixture"])
        return np.asarray(to_numpy(rule.gap_to(ensemble.mixture, y)) - spread)
    return np.asarray(to_numpy(rule.score(getattr(ensemble, str(measure.prediction)), y)))


def _pairs(ensembles: Sequence[EnsemblePrediction], measures: Sequence[Measure]) -> tuple[np.ndarray, np.ndarray]:
    """The mean excess of two members of one training set, and of two, (measures,) each."""
    names = [f"{measure.rule}.excess.members.members" for measure in measures]
    known = [each for each in map(_thinned, ensembles) if each is not None]
    unknown = np.full(len(measures), np.nan)
    if len(known) < len(ensembles):
        return unknown, unknown
    members = known[0].n_members
    own = np.mean([_means(each, names) for each in known], axis=0)
    within = own * members / (members - 1) if members > 1 else np.zeros(len(measures))  # a member does not disagree with itself
    if len(known) < 2 or len({each.n_members for each in known}) > 1:
        return within, unknown
    joined = type(known[0].members).joined([each.members for each in known], 0)
    share = 1.0 / len(known)  # of all pairs, those in one training set
    return within, (_means(EnsemblePrediction(joined, check=False), names) - share * own) / (1.0 - share)


def _means(ensemble: EnsemblePrediction, names: Sequence[str]) -> np.ndarray:
    """The means of measures over the rows."""
    table = evaluate(ensemble, list(dict.fromkeys(names)))  # all in one pass
    return np.array([float(to_numpy(table[name]).mean()) for name in names])


def _thinned(ensemble: EnsemblePrediction) -> EnsemblePrediction | None:
    """A few evenly spaced members; None for members of unequal weight."""
    if ensemble.weights is not None:
        return None
    if ensemble.n_members <= MOST_MEMBERS:
        return ensemble
    kept = (2 * np.arange(MOST_MEMBERS) + 1) * ensemble.n_members // (2 * MOST_MEMBERS)
    depth = len(ensemble.members.batch_shape)
    members = ensemble.members.map(lambda x: x[(slice(None),) * (x.ndim - depth) + (kept,)])
    return EnsemblePrediction(members, check=False)


def excesses(measures: MeasuresLike) -> list[Measure]:
    """The excess risks that are asked for; by default those between members, under the paper's four rules."""
    if measures is None:
        return [each for each in select_measures("usual") if each.risk == "excess"]
    found = select_measures(measures)
    kept = [each for each in found if each.shows_disagreement]  # a pattern may match others too
    if not kept:
        raise ArgumentError(
            f"measures must have an excess risk between members, or between them and an approximation, got {found[0].name}, "
            "which promises nothing"
        )
    return kept


def computable(ensemble: EnsemblePrediction, measures: Sequence[Measure], targets: np.ndarray) -> list[Measure]:
    """The measures that these members have; draws have no density, for example."""
    kept, problem = [], None
    for each in measures:
        try:
            rows = _rows(ensemble[:2], targets[:2], [each])
        except UqprismError as error:
            problem = error
            continue
        if np.isfinite(rows).all():
            kept.append(each)
    if not kept:
        raise problem or ArgumentError("no measure is finite for these predictions; take measures='crps.excess.members.members'")
    return kept
