"""Approximations: each turns an ensemble into candidates, a weighted batch of distributions.

`members` gives all of them; `mixture`, `matched` and `pooled` give one. Candidates are centred with the ensemble and share
its centred moments, so that the difference between any two of them is formed from those and never from rounded results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from uqprism.arrays import Array, constant, expand, is_traced, merged, namespace, working
from uqprism.errors import InvalidValueError
from uqprism.families.base import Family
from uqprism.families.centring import Centring, standardise
from uqprism.families.draws import Draws
from uqprism.families.gaussian import Gaussian, Surrogate
from uqprism.families.laplace import Laplace
from uqprism.families.logistic import Logistic
from uqprism.families.mixture import Mixture
from uqprism.families.quadrature import SharedGrid
from uqprism.families.student_t import StudentT
from uqprism.registry import Registry

NEAR = 1e-5  # the disagreement below which a difference of distributions has lost half its digits
STRETCHES = (5e-4, 1e-3, 1.5e-3, 2e-3)  # disagreements to compute it from instead: small enough for a cubic
OF_MEANS = (3e-4, 6e-4, 9e-4, 1.2e-3, 1.5e-3)  # the same for differences of means, which keep more digits


@dataclass(frozen=True)
class Candidates:
    """Distributions (candidates, *points) and their weights, which sum to one over the candidates."""

    distribution: Family
    weights: Array
    shared_grid: SharedGrid | None = None

    @classmethod
    def single(cls, distribution: Family, shared_grid: SharedGrid | None = None) -> Candidates:
        """One candidate for each point, from a batch (*points)."""
        xp = namespace(distribution.mean)
        batch = len(distribution.batch_shape)
        raised = distribution.map(lambda x: expand(x, x.ndim - batch))
        return cls(raised, xp.ones_like(raised.mean), shared_grid)

    @cached_property
    def rows(self) -> tuple[Family, Array]:
        """Distribution and weights with an empty axis after the candidates': (candidates, 1, *points)."""
        if self.weights.shape[0] == 1:
            return self.columns  # the same object, so that grids evaluate it once
        return self._with_axis(1)

    @cached_property
    def columns(self) -> tuple[Family, Array]:
        """Distribution and weights with an empty axis before the candidates': (1, candidates, *points)."""
        return self._with_axis(0)

    def _with_axis(self, axis: int) -> tuple[Family, Array]:
        batch = len(self.distribution.batch_shape)
        spread = self.distribution.map(lambda x: expand(x, x.ndim - batch + axis))
        spread.shared_grid = self.shared_grid  # which `map` leaves behind
        return spread, expand(self.weights, axis)

    def affine(self, centring: Centring) -> Candidates:
        """The same candidates in the units of y."""
        return Candidates(self.distribution.affine(centring.centre, centring.unit), self.weights)


class CentredEnsemble:
    """A centred ensemble with the moments that its candidates share, each computed once."""

    def __init__(self, members: Family, weights: Array) -> None:
        self.weights = working(weights)
        # As they came: what two members have in common is rounded when it is centred, and so is a small difference.
        self._given = members.widened()
        self.members, self.centring = standardise(self._given, self.weights)
        if isinstance(self.members, Gaussian):
            self.members.deviation = self._deviations(self.members)
        self._candidates: dict[str, Candidates] = {}

    def average(self, values: Array) -> Array:
        """The weighted mean over the members."""
        return namespace(values).sum(self.weights * values, axis=0)

    @cached_property
    def variance_of_means(self) -> Array:
        """V, the variance that the members' disagreement adds to the mixture's, (*points)."""
        direct = self._direct_variance_of_means()
        if self.means_are_exact:
            return direct
        # Distances of surrogates are of second order in it, and closed forms keep two digits more than integrals.
        return self.along_ray(
            CentredEnsemble._direct_variance_of_means, direct, spikes=False, within=10.0 * NEAR, stretches=OF_MEANS
        )

    def _direct_variance_of_means(self) -> Array:
        # The members were centred at their `centre`, which need not be the mean in every family.
        offset = self.members.mean - self.average(self.members.mean)
        return self.average(offset * offset)

    @property
    def means_are_exact(self) -> bool:
        """True if the mean is a parameter, so that differences of means keep their digits."""
        return isinstance(self.members, Gaussian | Draws | Laplace | Logistic | StudentT)

    def along_ray(
        self,
        risk: Callable[[CentredEnsemble], Array],
        direct: Array,
        *,
        spikes: bool = True,
        within: float = NEAR,
        stretches: tuple[float, ...] = STRETCHES,
    ) -> Array:
        """A risk of second order in the disagreement; where members nearly agree, from ensembles that agree less.

        There a difference of nearly equal distributions keeps none of its digits. Along the ray on which all differences of
        parameters grow together, the risk over the square of the factor is smooth: its value at the ensemble follows from some
        ensembles on that ray that disagree enough.
        """
        gap = self.members.differences(spikes=spikes)
        xp = namespace(gap)
        near = (gap > 0.0) & (gap < within)
        if not is_traced(gap) and not bool(xp.any(near)):
            return direct
        gap = xp.where(near, gap, xp.full_like(gap, within))
        values = []
        for stretch in stretches:
            factor = xp.where(near, stretch / gap, xp.ones_like(gap))
            values.append(risk(self.stretched(factor)) / factor / factor)
        # Where bounds of densities differ, the risk grows like another power, and the direct value has its digits.
        near = near & (values[1] < 1.05 * values[0]) & (values[0] < 1.05 * values[1])
        found = xp.zeros_like(gap)
        for i, value in enumerate(values):
            weight = xp.ones_like(gap)
            for j, other in enumerate(stretches):
                if j != i:
                    weight = weight * (gap - other) / (stretches[i] - other)
            found = found + weight * xp.where(near, value, xp.zeros_like(value))
        return xp.where(near, found, direct)

    @cached_property
    def mean_variance(self) -> Array:
        """The mean of the members' variances, (*points)."""
        return self.average(self.members.variance)

    def _deviations(self, members: Gaussian) -> Array:
        """Each member's variance minus the mean variance, formed from differences of what is exact."""
        if members.given_variance is None:
            # The difference of two squares, factored: nearly equal scales have an exact difference.
            gap = (members.scale - members.scale[0]) * (members.scale + members.scale[0])
        else:
            gap = members.variance - members.variance[0]
        gap = gap - self.average(gap)
        return gap - self.average(gap)

    @cached_property
    def mixture(self) -> Family:
        """The average of the distributions; samples are simply put together."""
        if isinstance(self.members, Draws):
            # Each draw keeps its weight within its member, times that of the member.
            draws, weights = self.members.draws, self.members.weights * self.weights
            return Draws(*(merged(x, draws.ndim - 2) for x in (draws, weights)), check=False)
        return Mixture._of(self.members, self.weights).flattened()

    @cached_property
    def shared_grid(self) -> SharedGrid:
        """The grid on which this ensemble's integrals are taken."""
        # Surrogates that cannot be formed are left out; members and mixture can be computed without them.
        known: list[Family] = [self.mixture]
        if _usable(self._total_variance):
            known.append(self.matched)
        if _usable(self.mean_variance):
            known.append(self.pooled)
        if isinstance(self.members, Mixture):
            # The log density of each member bends where its own leading component changes.
            depth, count = len(self.members.batch_shape), self.weights.shape[0]
            known += [self.members.map(lambda x, i=i: x[(slice(None),) * (x.ndim - depth) + (i,)]) for i in range(count)]  # type: ignore[misc]
        return SharedGrid(*known)

    @property
    def _total_variance(self) -> Array:
        return self.mean_variance + self.variance_of_means

    @cached_property
    def _mean(self) -> Array:
        """The mean of the mixture, which is zero by the centring, with its gradient."""
        mean = self.average(self.members.mean)
        xp = namespace(mean)
        # Infinite where a member has no mean; such have no surrogates.
        return xp.where(xp.isfinite(constant(mean)), mean - constant(mean), xp.zeros_like(mean))

    @cached_property
    def matched(self) -> Surrogate:
        """One Gaussian with the mixture's mean and variance."""
        require_variance(self._total_variance, "matched")
        spread = self.variance_of_means
        zero = namespace(spread).zeros_like(spread)
        # The deviation is the variance of the means itself, not a difference of variances.
        return Surrogate(mean=self._mean, variance=self._total_variance, deviation=spread, missing=zero)

    @cached_property
    def pooled(self) -> Surrogate:
        """One Gaussian with the mixture's mean and the mean of the members' variances."""
        require_variance(self.mean_variance, "pooled")
        zero = namespace(self.mean_variance).zeros_like(self.mean_variance)
        return Surrogate(mean=self._mean, variance=self.mean_variance, deviation=zero, missing=self.variance_of_means)

    def stretched(self, factor: Array) -> CentredEnsemble:
        """The ensemble with the members' differences from the first multiplied by a factor (*points), in the same coordinates."""
        depth = len(self.members.batch_shape)

        def stretch(x: Array) -> Array:
            first = x[(slice(None),) * (x.ndim - depth) + (slice(0, 1),)]
            same = x == first  # also where both are infinite
            zero = namespace(x).zeros_like(x)
            step = namespace(x).where(same, zero, x) - namespace(x).where(same, zero, first + zero)
            return first + factor * step

        given = self._given.map(stretch)
        return self._with(given, given.relative_to(self.centring.centre, self.centring.unit), self.weights)

    def at(self, points: Array) -> CentredEnsemble:
        """The ensemble at some of its points, given by their positions along one axis."""
        given, members = (family.map(lambda x: x[..., points]) for family in (self._given, self.members))
        other = self._with(given, members, self.weights[:, points])
        whole = self.centring
        other.centring = Centring(whole.centre[points], whole.unit[points], whole.log_unit[points])
        return other

    def _with(self, given: Family, members: Family, weights: Array) -> CentredEnsemble:
        """Other members in the same coordinates."""
        other = object.__new__(CentredEnsemble)
        other._given, other.members, other.weights = given, members, weights
        other.centring, other._candidates = self.centring, {}
        return other

    def candidates(self, name: str) -> Candidates:
        """The candidates of the approximation of this name."""
        if name not in self._candidates:
            self._candidates[name] = approximations.get(name)(self)
        return self._candidates[name]


def _usable(variance: Array) -> bool:
    """True if a Gaussian can have this variance at every point."""
    xp = namespace(variance)
    # The values of a traced array are not known yet, so they are trusted.
    return is_traced(variance) or bool(xp.all(xp.isfinite(variance) & (variance > 0.0)))


def require_variance(variance: Array, name: str) -> None:
    """Refuse an approximation of this name whose variance is no Gaussian's somewhere."""
    if not _usable(variance):
        raise InvalidValueError(
            f"{name} needs a positive, finite variance at every point, and some points have none (a Student t with two or fewer "
            "degrees of freedom, or single or identical samples); use members and mixture instead"
        )


@dataclass(frozen=True)
class Approximation:
    """What represents an ensemble as the prediction or the truth, with all that is said about it; call it for its candidates.

    Attributes:
        name: as in measure names.
        function: from a `CentredEnsemble` to its `Candidates`.
        single: whether there is one candidate per point.
        keeps_mean: whether that candidate has the mean of the mixture.
        effort: how hard it is to compute and to explain; of equally good measures the one with less effort comes first.
        paper_index: the paper's index, such as 3a.
        label: in a list to choose from, in plain words.
        meaning: in a sentence, in plain words.
        prediction: what one predicts with if it represents the prediction, in plain words.
    """

    name: str
    function: Callable[[CentredEnsemble], Candidates]
    single: bool = False
    keeps_mean: bool = False
    effort: int = 4
    paper_index: str = ""
    label: str = ""
    meaning: str = ""
    prediction: str = ""

    def __post_init__(self) -> None:
        plain = f"the approximation {self.name}"
        for field, default in {"paper_index": self.name, "label": self.name, "meaning": plain, "prediction": plain}.items():
            object.__setattr__(self, field, getattr(self, field) or default)

    def __call__(self, ensemble: CentredEnsemble) -> Candidates:
        """The candidates of this ensemble."""
        return self.function(ensemble)


approximations: Registry[Approximation] = Registry("approximation", "uqprism.ensemble")


def approximation(name: str, **about: Any) -> Callable[[Callable[[CentredEnsemble], Candidates]], Approximation]:
    """Decorator that makes a function the approximation `name`; `about` are further attributes of `Approximation`."""

    def add(function: Callable[[CentredEnsemble], Candidates]) -> Approximation:
        return approximations.register(name)(Approximation(name, function, **about))

    return add


@approximation(
    "members",
    effort=0,
    paper_index="1",
    label="each model in turn",
    meaning="each model takes its turn, and the penalties are averaged",
    prediction="one of the models, picked at random",
)
def members(ensemble: CentredEnsemble) -> Candidates:
    """Each member in turn: risks are averaged over them."""
    return Candidates(ensemble.members, ensemble.weights, ensemble.shared_grid)


@approximation(
    "mixture",
    single=True,
    keeps_mean=True,
    effort=3,
    paper_index="2",
    label="the average of all models",
    meaning="one distribution, the average of those that the models predict",
    prediction="the average of all models",
)
def mixture(ensemble: CentredEnsemble) -> Candidates:
    """The average of the distributions."""
    return Candidates.single(ensemble.mixture, ensemble.shared_grid)


@approximation(
    "matched",
    single=True,
    keeps_mean=True,
    effort=2,
    paper_index="3a",
    label="a bell curve like the average",
    meaning="one bell curve (a Gaussian) with the mean and the variance of that average",
    prediction="one bell curve like the average of all models",
)
def matched(ensemble: CentredEnsemble) -> Candidates:
    """One Gaussian with the mixture's mean and variance."""
    return Candidates.single(ensemble.matched, ensemble.shared_grid)


@approximation(
    "pooled",
    single=True,
    keeps_mean=True,
    effort=1,
    paper_index="3b",
    label="a bell curve without disagreement",
    meaning="one bell curve (a Gaussian) with that mean, and the models' own variances averaged: their disagreement is left out",
    prediction="one bell curve without the models' disagreement",
)
def pooled(ensemble: CentredEnsemble) -> Candidates:
    """One Gaussian with the mixture's mean and the mean of the members' variances."""
    return Candidates.single(ensemble.pooled, ensemble.shared_grid)
