"""`evaluate` and `decompose`: from an ensemble to measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from uqprism.arrays import Array, is_traced, namespace
from uqprism.backends.choose import BackendName, compute
from uqprism.backends.fair import without_own_pairs
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.prediction import BUILD
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError
from uqprism.families.quadrature import Exactness
from uqprism.measures import (
    ApproximationLike,
    Measure,
    MeasuresLike,
    MeasureTable,
    RuleLike,
    is_set,
    only_defined,
    resolve_approximation,
    resolve_rule,
    select_measures,
)
from uqprism.registry import unknown
from uqprism.support.tables import data_frame
from uqprism.synonyms import RISKS, no_attribute, word

Estimator = Literal["plugin", "unbiased"]
HINTS = {name: word("risk", name) for name in RISKS}


@dataclass(frozen=True)
class Decomposition:
    """The three risks at every point, (*points); total = bayes + excess.

    Attributes:
        exactness: `Exactness(method, tolerance)` for "total", "bayes" and "excess".
    """

    total: Array
    bayes: Array
    excess: Array
    exactness: Mapping[str, Exactness]

    @property
    def aleatoric(self) -> Array:
        """The Bayes risk: noise that no amount of data removes."""
        return self.bayes

    @property
    def epistemic(self) -> Array:
        """The excess risk: what more data could reduce, according to these models."""
        return self.excess

    if not TYPE_CHECKING:  # a type checker would take every attribute for known

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, HINTS)

    def to_pandas(self, index: Any = None) -> Any:
        """A `pandas.DataFrame` with columns total, bayes and excess and a row per point, with this index if there is one."""
        return data_frame({"total": self.total, "bayes": self.bayes, "excess": self.excess}, index)


def decompose(
    ensemble: EnsemblePrediction,
    rule: RuleLike = "crps",
    *,
    prediction: ApproximationLike = "members",
    truth: ApproximationLike = "members",
    estimator: Estimator = "plugin",
) -> Decomposition:
    """Split the uncertainty at every point into noise and what more data could reduce.

    Args:
        ensemble: the ensemble.
        rule: a rule or its name.
        prediction: the approximation for the prediction: members, mixture, matched, pooled or one of your own.
        truth: the approximation for the truth.
        estimator: "plugin" averages over all pairs of members (the paper's 1/M^2); "unbiased" leaves out each member's pair
            with itself, and is for members in both roles. Of members known by draws, under CRPS, other kernel rules and squared
            error, it leaves out each draw's pair with itself too, in Bayes risks as well; an excess may then be negative.
    """
    _check_ensemble(ensemble)  # before the rule, which may be the variances of a call with arrays
    scorer = resolve_rule(rule)
    prediction, truth = resolve_approximation(prediction), resolve_approximation(truth)
    if estimator == "unbiased" and (prediction, truth) != ("members", "members"):
        raise ArgumentError(
            "estimator='unbiased' is for prediction='members' and truth='members', "
            f"got {prediction!r} and {truth!r}; use 'plugin'"
        )
    wanted = {
        "total": Measure(scorer.name, "total", prediction, truth, scorer),
        "bayes": Measure(scorer.name, "bayes", None, truth, scorer),
        "excess": Measure(scorer.name, "excess", prediction, truth, scorer),
    }
    # In one call, so that the three share centred moments, pairs and quadrature nodes.
    table = evaluate(ensemble, list(wanted.values()), estimator=estimator)
    exactness = {risk: table.exactness[measure.name] for risk, measure in wanted.items()}
    return Decomposition(table[wanted["total"]], table[wanted["bayes"]], table[wanted["excess"]], exactness)


def evaluate(
    ensemble: EnsemblePrediction,
    measures: MeasuresLike = None,
    *,
    estimator: Estimator = "plugin",
    backend: BackendName = "auto",
) -> MeasureTable:
    """Compute measures together, sharing all work between them.

    Args:
        ensemble: the ensemble.
        measures: names, patterns, sets and `Measure`s as `select_measures` takes them: "crps.*", "usual"; by default "all", the
            144 of the paper's four rules. Of these two sets, measures that the members do not have are left out, with a warning:
            draws have no density, which log and quadratic need.
        estimator: for measures with members in both roles, see `decompose`.
        backend: "auto" takes a fused kernel for Gaussian members and for draws where it is faster (processors need the extra
            `fast`); "reference" the readable code that all kernels are tested against; "fused" requires a kernel.
    """
    _check_ensemble(ensemble)
    for what, value, known in (("estimator", estimator, get_args(Estimator)), ("backend", backend, get_args(BackendName))):
        if value not in known:
            raise unknown(what, value, known)
    wanted = select_measures(measures)
    if is_set(measures):  # a measure that is asked for by its name is an error if the members do not have it
        wanted = only_defined(wanted, ensemble.members)
    with np.errstate(
        over="ignore", under="ignore", invalid="ignore"
    ):  # a result that is out of range is infinite or zero, as it should be
        done = compute(ensemble.flat(), wanted if estimator == "plugin" else _parts(wanted), backend)
    values, exactness = done.values, done.exactness
    if estimator == "unbiased":
        share = _share_of_distinct_pairs(ensemble)
        values, exactness = _unbiased(wanted, without_own_pairs(ensemble.flat(), wanted, values, backend), exactness, share)
    shape = ensemble.points_shape
    table = {m.name: values[m.name] for m in wanted}
    if len(shape) != 1:  # backends take points along one axis
        table = {name: namespace(x).reshape(x, shape) for name, x in table.items()}
    return MeasureTable(table, {m.name: exactness[m.name] for m in wanted}, wanted)


def _check_ensemble(given: object) -> None:
    """Refuse what is no ensemble, with the way to make one of it."""
    if isinstance(given, EnsemblePrediction):
        return
    way_out = "up.from_frame makes one of a table" if hasattr(given, "columns") else BUILD
    if isinstance(given, MeasureTable | Decomposition):
        way_out = "its measures are computed already; pass the ensemble that they are of"
    raise ArrayTypeError(f"ensemble must be an EnsemblePrediction, got {type(given).__name__}; {way_out}")


def _over_pairs(measure: Measure) -> bool:
    return (measure.prediction, measure.truth) == ("members", "members")


def _parts(wanted: Sequence[Measure]) -> list[Measure]:
    """What unbiased estimates are made of: totals over pairs of members are a Bayes risk and an excess."""
    parts = []
    for m in wanted:
        if m.risk == "total" and _over_pairs(m):
            excess = Measure(m.rule, "excess", m.prediction, m.truth, m.scorer)
            parts += [Measure(m.rule, "bayes", None, m.truth, m.scorer), excess]
        else:
            parts.append(m)
    return list({m.name: m for m in parts}.values())


def _unbiased(
    wanted: Sequence[Measure], values: Mapping[str, Array], exactness: Mapping[str, Exactness], share: float | Array
) -> tuple[dict[str, Array], dict[str, Exactness]]:
    """Excesses over pairs of members divided by the weight of the pairs of different members, and the totals they are part of."""
    corrected, how = dict(values), dict(exactness)
    for m in filter(_over_pairs, wanted):
        # A pair of a member with itself has an excess of zero, so the sum is the same and only the weight of the pairs changes.
        bayes, excess = f"{m.rule}.bayes.members", f"{m.rule}.excess.members.members"
        xp = namespace(values[excess])
        with np.errstate(over="ignore", under="ignore"):  # what a narrow result cannot hold becomes infinite or zero
            value = xp.astype(values[excess] / share, values[excess].dtype)
            corrected[m.name] = values[bayes] + value if m.risk == "total" else value
        if m.risk == "total":
            # As exact as the worse of the two parts.
            how[m.name] = max(
                exactness[bayes], exactness[excess], key=lambda known: (known.method == "quadrature", known.tolerance)
            )
    return corrected, how


def _share_of_distinct_pairs(ensemble: EnsemblePrediction) -> float | Array:
    """The weight of all pairs of different members."""
    if ensemble.n_members < 2:
        raise InvalidValueError("estimator='unbiased' needs at least two members, got one; use 'plugin'")
    if ensemble.weights is None:
        return 1.0 - 1.0 / ensemble.n_members
    share = 1.0 - namespace(ensemble.weights).sum(ensemble.weights**2)
    if not is_traced(share) and not float(share) > 0.0:
        raise InvalidValueError("estimator='unbiased' needs at least two members with weight, got one; use 'plugin'")
    return share
