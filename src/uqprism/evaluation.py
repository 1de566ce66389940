"""Compute measures together: by a fused kernel where one serves, by the readable reference path elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from uqprism.arrays import Array, is_traced, namespace
from uqprism.backends.choose import Backend, choose
from uqprism.backends.parts import fits_one_part, index_like, put, split
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.approximations import CentredEnsemble
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError
from uqprism.families.quadrature import Exactness, recording
from uqprism.measures import (
    ApproximationLike,
    Measure,
    MeasuresLike,
    MeasureTable,
    RuleLike,
    resolve_approximation,
    resolve_rule,
    select_measures,
)
from uqprism.measures.risks import Risks
from uqprism.registry import unknown
from uqprism.support.tables import data_frame

Estimator = Literal["plugin", "unbiased"]


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
        """The excess risk: what more data would remove."""
        return self.excess

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
    """Split the uncertainty at every point into noise and what more data would remove.

    Args:
        ensemble: the ensemble.
        rule: a rule or its name.
        prediction: what stands in for the prediction: members, mixture, matched or pooled.
        truth: what stands in for the truth.
        estimator: "plugin" averages over all pairs of members (the paper's 1/M^2); "unbiased" leaves out each member's pair
            with itself, and is for members in both roles.
    """
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
    table = evaluate(ensemble, list(wanted.values()), estimator=estimator)
    exactness = {risk: table.exactness[measure.name] for risk, measure in wanted.items()}
    return Decomposition(table[wanted["total"]], table[wanted["bayes"]], table[wanted["excess"]], exactness)


def evaluate(
    ensemble: EnsemblePrediction,
    measures: MeasuresLike = None,
    *,
    estimator: Estimator = "plugin",
    backend: Backend = "auto",
) -> MeasureTable:
    """Compute measures together, sharing all work between them.

    Args:
        ensemble: the ensemble.
        measures: names, patterns, sets and `Measure`s as `select_measures` takes them: "crps.*", "usual"; by default "all", the
            144 of the paper's four rules.
        estimator: for measures with members in both roles, see `decompose`.
        backend: "auto" takes a fused kernel for Gaussian members where it pays (processors need the extra `fast`);
            "reference" the readable path that defines the truth; "fused" insists on a kernel.
    """
    given: object = ensemble
    if not isinstance(given, EnsemblePrediction):
        way_out = "up.from_frame makes one of a table" if hasattr(given, "columns") else "build one first"
        raise ArrayTypeError(f"ensemble must be an EnsemblePrediction, got {type(given).__name__}; {way_out}")
    for what, value, known in (("estimator", estimator, get_args(Estimator)), ("backend", backend, get_args(Backend))):
        if value not in known:
            raise unknown(what, value, known)
    wanted = select_measures(measures)
    correction = _correction(ensemble, estimator)
    flat = ensemble.flat()
    chosen = choose(flat, backend, small=fits_one_part(flat))
    fused = [m for m in wanted if chosen is not None and chosen.covers(m)]
    values: dict[str, Array] = {}
    exactness: dict[str, Exactness] = {}
    if chosen is not None and fused:
        done = chosen.compute(flat, fused, None if correction is None else float(correction))
        dtype = flat.members.centre.dtype
        kinds = {t: _exactness([t] if t else [], done.worked, dtype) for t in set(done.tolerances.values())}
        values, exactness = done.values, {name: kinds[t] for name, t in done.tolerances.items()}
    rest = [m for m in wanted if m.name not in values]
    if rest:
        more, how = _reference(flat, rest, correction)
        values, exactness = {**values, **more}, {**exactness, **how}
    if fused:
        for at, affected in done.declined:
            patch, _ = _reference(flat[at], [m for m in fused if m.name in affected], correction)
            values |= {name: put(values[name], at, repaired) for name, repaired in patch.items()}
    shape = ensemble.points_shape
    table = {m.name: values[m.name] for m in wanted}
    if len(shape) != 1:
        table = {name: namespace(x).reshape(x, shape) for name, x in table.items()}
    return MeasureTable(table, {m.name: exactness[m.name] for m in wanted}, wanted)


def _reference(
    flat: EnsemblePrediction, wanted: Sequence[Measure], correction: float | Array | None
) -> tuple[dict[str, Array], dict[str, Exactness]]:
    """The readable path: in parts whose temporaries stay small."""
    parts, order = split(flat.counted())
    done: list[dict[str, Array]] = []
    exactness: dict[str, Exactness] = {}
    for part in parts:
        values, exactness = evaluate_chunk(part, wanted, correction)
        done.append(values)
    xp = namespace(flat.members.centre)
    table = {}
    for measure in wanted:
        pieces = [values.pop(measure.name) for values in done]  # popped, so that no result is held twice
        whole = xp.concat(pieces, axis=0) if len(pieces) > 1 else pieces[0]
        if order is not None:
            whole = xp.take(whole, index_like(np.argsort(order), whole), axis=0)
        table[measure.name] = whole
    return table, exactness


def _correction(ensemble: EnsemblePrediction, estimator: Estimator) -> float | Array | None:
    """What members/members excesses are divided by: the weight of pairs of different members; None for all pairs."""
    if estimator == "plugin":
        return None
    if ensemble.n_members < 2:
        raise InvalidValueError("estimator='unbiased' needs at least two members, got one; use 'plugin'")
    if ensemble.weights is None:
        return 1.0 - 1.0 / ensemble.n_members
    correction = 1.0 - namespace(ensemble.weights).sum(ensemble.weights**2)
    if not is_traced(correction) and not float(correction) > 0.0:
        raise InvalidValueError("estimator='unbiased' needs at least two members with weight, got one; use 'plugin'")
    return correction


def evaluate_chunk(
    part: EnsemblePrediction, wanted: Sequence[Measure], correction: float | Array | None
) -> tuple[dict[str, Array], dict[str, Exactness]]:
    """Measures of points that are few enough to be taken at once, and how exact each is."""
    centred = CentredEnsemble(part.members, part.member_weights())
    known: dict[str, Risks] = {}
    values, exactness = {}, {}
    dtype = part.members.centre.dtype
    for measure in wanted:
        if measure.rule not in known:
            known[measure.rule] = Risks(centred, measure.resolved())
        risks = known[measure.rule]
        with recording() as tolerances:
            value = _risk(risks, measure, correction)
        xp = namespace(value)
        exactness[measure.name] = _exactness(tolerances, value.dtype, dtype)
        with np.errstate(over="ignore", under="ignore"):  # what a narrow result cannot hold becomes infinite or zero
            values[measure.name] = xp.astype(value, dtype)
    return values, exactness


def _risk(risks: Risks, measure: Measure, correction: float | Array | None) -> Array:
    if measure.prediction is None:
        return risks.get("bayes", measure.truth)
    pair = measure.prediction, measure.truth
    if pair == ("members", "members") and correction is not None:
        excess = risks.get("excess", *pair) / correction
        return excess if measure.risk == "excess" else risks.get("bayes", measure.truth) + excess
    return risks.get(measure.risk, *pair)


def _exactness(tolerances: Sequence[float], worked: Any, given: Any) -> Exactness:
    """Closed forms keep ten digits and quadratures eight in double precision, four and a half and four in single."""
    double = "64" in str(worked)
    rounding = 0.0 if "64" in str(given) else (6e-8 if "32" in str(given) else 5e-3)
    if not tolerances:
        return Exactness("closed form", max(1e-10 if double else 2e-5, rounding))
    return Exactness("quadrature", max(*tolerances, 0.0 if double else 2e-4, rounding))
