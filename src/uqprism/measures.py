"""Measures: every (rule, risk, prediction, truth) by one name, computed together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from uqprism.approximations import Candidates, CentredEnsemble, approximations
from uqprism.arrays import Array, is_traced, namespace, to_numpy
from uqprism.chunks import index_like, split
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError, UnknownNameError
from uqprism.quadrature import Exactness, recording
from uqprism.registry import unknown
from uqprism.risks import Risks
from uqprism.rules import PAPER, Rule, rules
from uqprism.storage import read_npz, require, write_npz

FORMAT = "uqprism.MeasureTable"
RISKS = ("total", "bayes", "excess")
APPROXIMATIONS = ("members", "mixture", "matched", "pooled")
PAPER_INDEX = {"members": "1", "mixture": "2", "matched": "3a", "pooled": "3b"}

Order = Literal["prediction,truth", "truth,prediction"]
ORDERS: tuple[Order, ...] = get_args(Order)
Estimator = Literal["plugin", "unbiased"]
RuleLike = str | Rule | type[Rule]
ApproximationLike = str | Callable[[CentredEnsemble], Candidates]


def resolve_rule(rule: RuleLike) -> Rule:
    """The rule of this name, or the rule itself."""
    if isinstance(rule, type) and issubclass(rule, Rule):
        rule = rule()
    if isinstance(rule, Rule):
        if "." in rule.name:
            raise InvalidValueError(f"rule names must have no dots, got {rule.name!r}; pass another name=")
        return rule
    return rules.get(rule)()


def resolve_approximation(approximation: ApproximationLike) -> str:
    """The name under which this approximation is registered."""
    if isinstance(approximation, str):
        approximations.get(approximation)
        return approximation
    name = approximations.name_of(approximation)
    if name is None:
        raise ArgumentError(f"{approximation!r} is no approximation; register the function with @approximations.register(name)")
    return name


@dataclass(frozen=True, order=True)
class Measure:
    """One number per point: a risk under a rule, with a stand-in for the prediction and one for the truth.

    A Bayes risk has no prediction: it is None. `str(measure)` is the name, `rule.risk.prediction.truth` or `rule.bayes.truth`.
    """

    rule: str
    risk: str
    prediction: str | None
    truth: str
    scorer: Rule | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.risk not in RISKS:
            raise unknown("risk", self.risk, RISKS)
        if (self.prediction is None) != (self.risk == "bayes"):
            wanted = "no prediction" if self.risk == "bayes" else "a prediction"
            raise ArgumentError(f"{self.risk} risks have {wanted}, got {self.prediction!r}")

    @classmethod
    def parse(cls, name: str) -> Measure:
        """The measure of this name; an unknown part raises and suggests the nearest."""
        parts = name.split(".")
        if len(parts) < 2 or len(parts) != (3 if parts[1] == "bayes" else 4):
            raise UnknownNameError(
                f"unknown measure {name!r}; measures are named rule.risk.prediction.truth, or rule.bayes.truth, for example "
                "crps.excess.members.members"
            )
        scorer = resolve_rule(parts[0])
        if parts[1] not in RISKS:
            raise unknown("risk", parts[1], RISKS)
        roles = [resolve_approximation(role) for role in parts[2:]]
        return cls(parts[0], parts[1], None if parts[1] == "bayes" else roles[0], roles[-1], scorer)

    @property
    def name(self) -> str:
        """The one name of this measure."""
        return ".".join(part for part in (self.rule, self.risk, self.prediction, self.truth) if part is not None)

    def __str__(self) -> str:
        return self.name

    def resolved(self) -> Rule:
        """The rule itself."""
        return self.scorer if self.scorer is not None else resolve_rule(self.rule)

    def paper_label(self, *, order: Order) -> str:
        """The paper's superscript, such as R_exc^{1,3a}.

        Its appendix orders the indices (prediction, truth), its tables and experiments (truth, prediction), so there is no
        default.
        """
        if order not in ORDERS:
            raise unknown("order", order, ORDERS)
        symbol = {"total": "tot", "bayes": "Bayes", "excess": "exc"}[self.risk]
        roles = [self.truth] if self.prediction is None else [self.prediction, self.truth]
        if order == "truth,prediction":
            roles.reverse()
        return f"R_{symbol}^{{{','.join(PAPER_INDEX.get(role, role) for role in roles)}}}"


def catalogue(rules: Iterable[RuleLike] = PAPER) -> list[Measure]:
    """All measures of these rules: 16 totals, 4 Bayes risks and 16 excesses each; by default the paper's four rules, 144."""
    found = []
    for rule in map(resolve_rule, [rules] if isinstance(rules, str | Rule) else rules):
        pairs = [(prediction, truth) for prediction in APPROXIMATIONS for truth in APPROXIMATIONS]
        found += [Measure(rule.name, "total", *pair, rule) for pair in pairs]
        found += [Measure(rule.name, "bayes", None, truth, rule) for truth in APPROXIMATIONS]
        found += [Measure(rule.name, "excess", *pair, rule) for pair in pairs]
    return found


class MeasureTable(Mapping[str, Array]):
    """Measures by name, each an array (*points), with how exact each is.

    Attributes:
        exactness: `Exactness(method, tolerance)` by measure name.
        measures: the `Measure`s in this table, with the rules they were computed by.
    """

    def __init__(
        self, values: Mapping[str, Array], exactness: Mapping[str, Exactness], measures: Sequence[Measure] | None = None
    ) -> None:
        shapes = {tuple(x.shape) for x in values.values()}
        if len(shapes) > 1:
            raise InvalidValueError(f"measures must have one shape, got {sorted(shapes)}")
        self._values, self.exactness = dict(values), dict(exactness)
        self.measures = [_named(name) for name in values] if measures is None else list(measures)

    def __getitem__(self, measure: str | Measure) -> Array:
        name = str(measure)
        if name not in self._values:
            raise unknown("measure in this table", name, self._values)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, measure: object) -> bool:
        return str(measure) in self._values

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a column per measure and a row per point."""
        pandas = require("pandas", extra="pandas")
        return pandas.DataFrame({name: to_numpy(x).reshape(-1) for name, x in self._values.items()})

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with a column per measure and a row per point."""
        pyarrow = require("pyarrow", extra="cli")
        return pyarrow.table({name: to_numpy(x).reshape(-1) for name, x in self._values.items()})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with a JSON header, whole or not at all; read it back with `load`."""
        header = {name: list(exactness) for name, exactness in self.exactness.items()}
        write_npz(path, FORMAT, {"exactness": header}, {name: to_numpy(x) for name, x in self._values.items()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MeasureTable:
        """Read what `save` wrote, as NumPy arrays."""
        header, arrays = read_npz(path, FORMAT)
        return cls(arrays, {name: Exactness(*entry) for name, entry in header["exactness"].items()})

    def __repr__(self) -> str:
        shape = next((tuple(x.shape) for x in self._values.values()), ())
        return f"<MeasureTable: {len(self)} measures, points {shape}>"


def _named(name: str) -> Measure:
    rule, risk, *roles = name.split(".")
    return Measure(rule, risk, None if risk == "bayes" else roles[0], roles[-1])


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
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    estimator: Estimator = "plugin",
) -> MeasureTable:
    """Compute measures together, sharing all work between them.

    Args:
        ensemble: the ensemble.
        measures: names or `Measure`s; by default all 144 of the paper's four rules.
        estimator: for measures with members in both roles, see `decompose`.
    """
    if not isinstance(ensemble, EnsemblePrediction):
        raise ArrayTypeError(f"ensemble must be an EnsemblePrediction, got {type(ensemble).__name__}; build one first")
    if estimator not in get_args(Estimator):
        raise unknown("estimator", estimator, get_args(Estimator))
    wanted = _wanted(measures)
    correction = _correction(ensemble, estimator)
    flat = ensemble.flat()
    parts, order = split(flat)
    done: list[dict[str, Array]] = []
    exactness: dict[str, Exactness] = {}
    for part in parts:
        values, exactness = _evaluate_chunk(part, wanted, correction)
        done.append(values)
    like = flat.members.centre
    xp, shape = namespace(like), ensemble.points_shape
    table = {}
    for measure in wanted:
        pieces = [values.pop(measure.name) for values in done]  # popped, so that no result is held twice
        whole = xp.concat(pieces, axis=0) if len(pieces) > 1 else pieces[0]
        if order is not None:
            whole = xp.take(whole, index_like(np.argsort(order), whole), axis=0)
        table[measure.name] = xp.reshape(whole, shape)
    return MeasureTable(table, exactness, wanted)


def _parsed(measure: object) -> Measure:
    if isinstance(measure, Measure):
        return measure
    if isinstance(measure, str):
        return Measure.parse(measure)
    raise ArgumentError(f"measures must be names or Measures, got {measure!r}; catalogue() lists them")


def log_bayes_mixture_bounds(ensemble: EnsemblePrediction) -> tuple[Array, Array]:
    """A lower and an upper bound on `log.bayes.mixture`, the entropy of the mixture, without any integral.

    The entropy is concave, so the members' mean entropy lies below (Jensen); a Gaussian has the largest entropy of all
    distributions with its variance, so the matched Gaussian's lies above. The lower bound is off by the mutual information, at
    most log(members).
    """
    table = evaluate(ensemble, ["log.bayes.members", "log.bayes.matched"])
    return table["log.bayes.members"], table["log.bayes.matched"]


def _wanted(measures: str | Measure | Sequence[str | Measure] | None) -> list[Measure]:
    """The measures asked for, each once."""
    if measures is None:
        return catalogue()
    if isinstance(measures, str | Measure):
        measures = [measures]
    found = [_parsed(m) for m in measures]
    _check_names(found)
    return list({m.name: m for m in found}.values())


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


def _check_names(wanted: Sequence[Measure]) -> None:
    """Refuse two rules of one name: their measures could not be told apart."""
    seen: dict[str, Rule] = {}
    for measure in wanted:
        rule = measure.resolved()
        other = seen.setdefault(measure.rule, rule)
        if other is not rule and (type(other) is not type(rule) or vars(other) != vars(rule)):
            raise ArgumentError(f"two different rules named {measure.rule!r}; give each its own with name=")


def _evaluate_chunk(
    part: EnsemblePrediction, wanted: Sequence[Measure], correction: float | Array | None
) -> tuple[dict[str, Array], dict[str, Exactness]]:
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
        return risks.bayes(measure.truth)
    pair = measure.prediction, measure.truth
    if pair == ("members", "members") and correction is not None:
        excess = risks.excess(*pair) / correction
        return excess if measure.risk == "excess" else risks.bayes(measure.truth) + excess
    return risks.excess(*pair) if measure.risk == "excess" else risks.total(*pair)


def _exactness(tolerances: list[float], worked: Any, given: Any) -> Exactness:
    """Closed forms keep ten digits and quadratures eight in double precision, four and a half and four in single."""
    double = "64" in str(worked)
    rounding = 0.0 if "64" in str(given) else (6e-8 if "32" in str(given) else 5e-3)
    if not tolerances:
        return Exactness("closed form", max(1e-10 if double else 2e-5, rounding))
    return Exactness("quadrature", max(*tolerances, 0.0 if double else 2e-4, rounding))
