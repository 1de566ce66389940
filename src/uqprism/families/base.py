"""What every family of distributions can do."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np

from uqprism.arrays import Array, coerce, constant, expand, is_jax, is_traced, namespace, to_numpy, working
from uqprism.errors import InvalidValueError, ShapeError, UnsupportedError
from uqprism.families.elementwise import PointwiseForm
from uqprism.families.panels import Landmarks, Places
from uqprism.families.quadrature import TOLERANCE, SharedGrid, integrate
from uqprism.families.sampling import Seed, count_of, random_levels, several_levels
from uqprism.families.stored import Stored
from uqprism.registry import Registry

families: Registry[type[Family]] = Registry("family", "uqprism.families")


POWERS = {"location": 1, "bound": 1, "scale": 1, "variance": 2, "shape": 0}
"""The power of the unit by which a parameter of each kind is multiplied when y becomes centre + unit * y.

Locations and bounds also move; bounds may be infinite.
"""


CHECKED = 2**22  # numbers that are checked at once
LARGEST = 1e153
BOUNDS = {"location": (-LARGEST, LARGEST), "scale": (1 / LARGEST, LARGEST), "variance": (LARGEST**-2, LARGEST**2)}
"""What parameters of each kind may be, so that squares of them and sums of those neither overflow nor lose digits."""

NARROWEST = 2e-154
"""The least scale of a member as a part of the distances between members and of their scales: its square keeps all digits."""


class Family(Stored, ABC):
    """A batch of distributions on the real line.

    A family names its parameters, its density, distribution function and moments; every rule then works by quadrature.
    Closed forms are added pair by pair with `functionals.closed_form`. What the quadrature must resolve is declared: `support`,
    `tails` and `landmarks`.

    Attributes:
        parameters: the kind of each parameter, one of `POWERS`, which says how it moves when y becomes centre + unit * y.
        tolerance: the relative error that integrals over the density may have, larger only for densities with poles.
        form: what fused kernels are compiled from; None for a family that only the reference computes.
        constants: names of attributes that are no arrays and stay as they are when parameters change.
        bends: whether the log density of a mixture may bend where its leading component changes, other than at landmarks.
        smooth_to_bounds: whether the density is smooth up to its bounds, so that kernels need no panels that shrink towards them.
        given: the arguments from which it is made, with their kinds, where these are not the parameters themselves.
    """

    name: ClassVar[str]
    parameters: ClassVar[dict[str, str]]
    tolerance: ClassVar[float] = TOLERANCE
    form: ClassVar[PointwiseForm | None] = None
    constants: ClassVar[tuple[str, ...]] = ()
    bends: ClassVar[bool] = True
    smooth_to_bounds: ClassVar[bool] = False
    given: ClassVar[dict[str, str] | None] = None
    components: Family | None = None  # only mixtures have some
    shared_grid: SharedGrid | None = None  # the ensemble whose grid resolves this distribution, if it came from one

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "quantile" in vars(cls):  # a family writes it for levels that broadcast against the batch
            cls.quantile = several_levels(cls.quantile)  # type: ignore[method-assign]

    def __init__(self, *, check: bool = True, **given: Array) -> None:
        for name, x in prepare(self.parameters, check, **given).items():
            setattr(self, name, x)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch: () for one distribution."""
        return tuple(getattr(self, next(iter(self.parameters))).shape)

    def map(self, function: Callable[[Array], Array]) -> Self:
        """The same family with `function` applied to every parameter array, as for indexing, reshaping or casting."""
        # Not by the constructor: the values are checked already, and some parameters are no arguments of it.
        clone = self._bare()
        for name in self.parameters:
            value = getattr(self, name)
            setattr(clone, name, None if value is None else function(value))
        return clone

    def _bare(self) -> Self:
        """The same without parameters."""
        clone = object.__new__(type(self))
        for name in self.constants:
            setattr(clone, name, getattr(self, name))
        return clone

    def arrays(self) -> list[Array]:
        """All parameter arrays, in the order in which `map` visits them."""
        found: list[Array] = []

        def visit(x: Array) -> Array:
            found.append(x)
            return x

        self.map(visit)
        return found

    def widened(self) -> Self:
        """The same in working precision."""
        return self.map(working)

    def affine(self, centre: Array, unit: Array) -> Self:
        """The distribution of centre + unit * Y, for unit > 0."""
        return self._moved(lambda x, power: x * unit**power, lambda x: centre + x)

    def relative_to(self, centre: Array, unit: Array) -> Self:
        """The distribution of (Y - centre) / unit, for unit > 0; subtracts first, so that nothing is rounded twice."""
        return self._moved(lambda x, power: x / unit**power, lambda x: x, lambda x: x - centre)

    def _moved(
        self,
        rescale: Callable[[Array, int], Array],
        after: Callable[[Array], Array],
        before: Callable[[Array], Array] = lambda x: x,
    ) -> Self:
        clone = self._bare()
        for name, kind in self.parameters.items():
            x = getattr(self, name)
            if x is not None and kind in ("location", "bound"):
                x = after(rescale(before(x), POWERS[kind]))
            elif x is not None:
                x = rescale(x, POWERS[kind])
            setattr(clone, name, x)
        return clone

    def recalibrated(self, weights: Array, *, noise: float, disagreement: float) -> Self:
        """Members `noise` times as wide about their own centres, which are `disagreement` times as far from their mean.

        The first axis of the batch runs over the members, whose weights are (members, ...). A family whose values have bounds
        says by itself what that means, because these must stay.
        """
        inner: Family = self
        while inner.components is not None:
            inner = inner.components
        if self.lattice is not None or (inner.has_bounds and any(bound is not None for bound in inner.support)):
            why = "have bounds" if self.lattice is None else "are counts"
            raise UnsupportedError(f"{self.name} members cannot be recalibrated by factors, because their values {why}")
        return self._about_centres(weights, noise, disagreement)

    def _about_centres(self, weights: Array, noise: float, disagreement: float) -> Self:
        centre = self.centre
        common = namespace(centre).sum(weights * centre, axis=0)
        return self.relative_to(centre, 1.0).affine(common + disagreement * (centre - common), noise)

    def differences(self, *, spikes: bool) -> Array:
        """How far entries of the first axis of the batch are from its first entry: the largest over the parameters, (*batch[1:]).

        One stands for a difference that changes the distribution altogether; with `spikes`, that changes its narrowest landmark.
        """
        spread = constant(self.spread)
        xp = namespace(spread)
        if spikes and not self.reads_quantiles:
            spread = xp.minimum(spread, xp.min(constant(self.landmarks().width), axis=0))
        spread = xp.min(spread, axis=0)
        found = xp.zeros_like(spread)
        for name, kind in self.parameters.items():
            x = getattr(self, name)
            if x is not None:
                x = constant(x)
                unit = spread ** POWERS[kind] if POWERS[kind] else x[0]
                found = xp.maximum(found, xp.max(xp.abs(x - x[0]), axis=0) / unit)
        return found

    @property
    def centre(self) -> Array:
        """A typical value, (*batch)."""
        return self.mean

    @property
    def spread(self) -> Array:
        """A typical deviation from the centre, (*batch)."""
        variance = self.variance
        return namespace(variance).sqrt(variance)

    @property
    @abstractmethod
    def mean(self) -> Array:
        """The mean, (*batch)."""

    @property
    @abstractmethod
    def variance(self) -> Array:
        """The variance, (*batch); infinite where it does not exist."""

    def log_density(self, y: Array) -> Array:
        """The log density at y, which broadcasts against the batch from the right; by default that of its form."""
        if self.form is None:
            raise NotImplementedError(f"{type(self).__name__} must define log_density, or a form")
        return self.form.at(self, y)

    @abstractmethod
    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""

    def survival(self, y: Array) -> Array:
        """The probability of values above y; families with a power law there define it, since 1 - cdf(y) loses its digits."""
        return 1.0 - self.cdf(y)

    def signed_cdf(self, y: Array, pivot: Array) -> Array:
        """The probability of values up to y, less one where y is above the pivot: differences keep their digits in both tails."""
        xp = namespace(y)
        return xp.where(y > pivot, -self.survival(y), self.cdf(y))

    @property
    def support(self) -> tuple[Array, Array]:
        """The values between which the density is not zero, (*batch) each; None for no bound.

        By default what the quantiles of level zero and one are, where the family defines quantiles and no landmarks.
        """
        return self.quantile_bounds() if self.reads_quantiles else (None, None)

    @property
    def tails(self) -> tuple[Array, Array]:
        """The exponents a of tails whose probability falls like |y|**-a, below and above, (*batch); None for lighter ones."""
        return None, None

    @property
    def reads_quantiles(self) -> bool:
        """True if the family leaves its landmarks to be read off its quantiles."""
        kind = type(self)
        return kind.landmarks is Family.landmarks and kind.quantile is not Family.quantile

    @property
    def has_power_law(self) -> bool:
        """True if a tail is declared to be a power law."""
        return any(tail is not None for tail in self.tails)

    @property
    def spans_decades(self) -> bool:
        """True if values of very different sizes count.

        Panels far from all places may then triple in length, and probabilities are counted from the nearer end.
        """
        return self.has_power_law

    @property
    def lattice(self) -> tuple[Array, Array] | None:
        """Where the first value lies and how far apart values are, (*batch), for counts; None for distributions with a density.

        The density of counts is their probability divided by the distance, so that sums over values are integrals.
        """
        return None

    @property
    def atoms(self) -> list[tuple[Array, Array]] | None:
        """Values that have a probability of their own beside a density, each with its logarithm, (*batch); None for none.

        At such a value `log_density` is the logarithm of the probability over a length of one unit of y.
        """
        return None

    @property
    def has_density(self) -> bool:
        """False if some distributions have all or part of their probability at values that no density stands for."""
        return True

    @property
    def has_probabilities(self) -> str:
        """What has a probability rather than a density: "counts", "atoms" or nothing, ""."""
        return "counts" if self.lattice is not None else "atoms" if self.atoms is not None else ""

    def interpolated(self) -> Family:
        """The same with density and distribution function of counts continued between them."""
        return self

    @property
    def square_power(self) -> Array | None:
        """The power of the distance to a bound with which the integral of the squared density grows there, (*batch).

        Without such an integral it is not positive; None if the density is finite.
        """
        return None

    @property
    def has_bounds(self) -> bool:
        """True if the density may be zero somewhere."""
        return type(self).support is not Family.support or self.reads_quantiles

    def quantile_bounds(self) -> tuple[Array, Array]:
        """The quantiles of level zero and one, None where they are not finite."""
        with np.errstate(all="ignore"):
            lower, upper = (self.quantile(level) + 0.0 * self.centre for level in (0.0, 1.0))
        xp = namespace(lower)
        finite = [is_traced(x) or bool(xp.any(xp.isfinite(x))) for x in (lower, upper)]
        return lower if finite[0] else None, upper if finite[1] else None

    def landmarks(self) -> Landmarks:
        """What a quadrature over this distribution must resolve: by default, read off the quantiles.

        Only reading them off supposes that there is no corner but at the median, and no spike that the quantiles do not show.
        """
        return read_landmarks(self)

    def places(self, *, graded: bool = True) -> Places:
        """Landmarks and bounds, for a distribution of shape (points,) in double precision, on NumPy or a device.

        Panels shrink towards the bounds; unless `graded`, only where densities are not smooth up to them.
        """
        graded = graded or not self.smooth_to_bounds
        return Places.of(self.landmarks(), self.support, heavy=self.spans_decades, graded=graded)

    def beyond(self, low: Array, high: Array, about: Array = None) -> Array:
        """What power laws hold outside low and high: the mean distance to them, or with `about` the mean of (Y - about)**2.

        The survival function falls there like a power of the distance from the centre. Other tails count as zero.
        """
        total: Array = 0.0
        for tail, end, side in zip(self.tails, (low, high), (-1.0, 1.0), strict=True):
            if tail is None:
                continue
            mass = self.survival(end) if side > 0 else self.cdf(end)
            mass = namespace(end).where(tail < STEEP, mass, 0.0 * mass)
            z = side * (end - self.centre)
            first, second = (_moment_beyond(z**k, tail - k) for k in (1, 2))
            if about is None:
                total = total + mass * first
                continue
            # The integral of (y - about)**2 times the density, by parts.
            total = total + mass * ((end - about) ** 2 + 2.0 * second + 2.0 * side * (self.centre - about) * first)
        return total

    def density(self, y: Array) -> Array:
        """The density at y."""
        log_density = self.log_density(y)
        return namespace(log_density).exp(log_density)

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|; by quadrature unless the family overrides it."""
        # The area under the distribution function left of y plus the area above it right of y: this needs no density.
        low, high = self.bracket()
        xp = namespace(low)
        y = y + 0.0 * low
        low, high = xp.minimum(constant(low), constant(y)), xp.maximum(constant(high), constant(y))
        below = integrate(self.cdf, self, between=(low, constant(y)))
        above = integrate(self.survival, self, between=(constant(y), high)) + self.beyond(low, high)
        # The bounds carry no gradient; this term is zero and has the right one.
        return below + above + (y - constant(y)) * constant(2.0 * self.cdf(y) - 1.0)

    def expectation(self, function: Callable[[Array], Array], *others: Family) -> Array:
        """The mean of function(Y), by quadrature; `others` are distributions whose features the function shares."""
        between = self.interpolated()
        value = integrate(lambda y: function(y) * between.density(y), self, *others)
        for place, log_probability in self.atoms or []:
            xp = namespace(place)
            there = log_probability > -math.inf  # a bound that is infinite has none
            at = xp.where(there, function(xp.where(there, place, self.centre)), xp.zeros_like(place))
            value = value + xp.exp(log_probability) * at
        return value

    @several_levels
    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`, by bisection unless the family overrides it.

        Several levels, a list or an array with one axis, become the first axis of the result: (levels, *batch). An array with
        more axes broadcasts against the batch from the right. A family defines at least one of `quantile` and `landmarks`: each
        has a default built on the other.
        """
        return bisect(self, level, *self.bracket())

    def sample(self, n: int, *, seed: Seed = None) -> Array:
        """`n` independent draws of Y, (n, *batch): by default the quantiles of uniform levels.

        Args:
            n: how many.
            seed: of the generator, or a `numpy.random.Generator`; None gives other draws at each call.
        """
        wide, given = self.widened(), self.arrays()[0]
        levels = random_levels((1, count_of(n), *self.batch_shape), seed, wide.arrays()[0])
        drawn = wide.quantile(levels)[0]  # with two axes at least, so that no level is taken for one of all points
        return namespace(drawn).astype(drawn, given.dtype)

    def bracket(self) -> tuple[Array, Array]:
        """Two values outside which the distribution has a negligible probability."""
        marks, (lower, upper) = self.landmarks(), self.support
        xp = namespace(marks.location)
        below = marks.reach if marks.reach_below is None else marks.reach_below
        low, high = xp.min(marks.location - below, axis=0), xp.max(marks.location + marks.reach, axis=0)
        return low if lower is None else xp.maximum(low, lower), high if upper is None else xp.minimum(high, upper)

    def cost_beyond(self, truth: Family, low: Array, high: Array) -> Array:
        """What minus this log density costs under a truth's power laws outside low and high, where that is not negligible."""
        return 0.0

    def lifted(self, axes: int) -> Self:
        """The same with empty axes before the batch, so that it has at least `axes` axes; an axis of components stays first."""
        batch = len(self.batch_shape)
        return self if axes <= batch else self.map(lambda x: expand(x, x.ndim - batch, axes - batch))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.parameters)
        return f"{type(self).__name__}({inside})"


def _moment_beyond(power: Array, excess: Array) -> Array:
    """power / excess where a moment exists, which is where the excess is positive; infinite elsewhere."""
    xp = namespace(power, excess)
    exists = excess > 0.0
    return xp.where(exists, power / xp.where(exists, excess, xp.ones_like(excess)), math.inf)


STEEP = 30.0  # the exponent from which nothing is left beyond the panels
LEVELS = (1e-6, 1e-4, 0.01, 0.1)  # quantiles that show how fine the features of each half are, from the outermost in
HEAVY = 5e3  # interquartile ranges: a reach beyond, and moments have a share beyond the reach


def read_landmarks(d: Family) -> Landmarks:
    """Landmarks read off the quantiles: the median, and how the distance between quantiles shrinks or grows away from it."""
    lower, middle, upper = (d.quantile(level) for level in (0.25, 0.5, 0.75))
    xp = namespace(middle)
    width = 0.7 * (upper - lower)  # 0.94 scales of a Gaussian
    rows, reach = [(middle, width)], []
    for side, (tail, bound) in enumerate(zip(d.tails, d.support, strict=True)):
        levels = [level if side == 0 else 1.0 - level for level in LEVELS]
        quantiles = [d.quantile(level) for level in levels]
        if tail is None:
            end = d.quantile(1e-15 if side == 0 else 1.0 - 1e-15)
            reach.append(1.2 * xp.abs(end - middle))
        else:
            # From the level 1e-6 on to where the law has lost its corrections, and 17 digits of probability.
            reach.append(xp.abs(quantiles[0] - middle) * decades(tail, 6.0))
        outer = quantiles[0] - (1.0 - 2.0 * side) * width if bound is None else bound
        for q in quantiles:
            # The distance outwards: a density that grows without bound towards its end needs panels that shrink towards it.
            rows.append((q, xp.minimum(width, 0.7 * xp.abs(q - outer))))
            outer = q
    refuse_long_reach(d, width, reach)
    location, widths = (xp.stack(x) for x in zip(*rows, strict=True))
    nothing = xp.zeros_like(location[1:])
    above, below = (xp.concat([r[None], nothing], axis=0) for r in (reach[1], reach[0]))
    return Landmarks(location, widths, above, (True,) + (False,) * (len(rows) - 1), below)


def decades(tail: Array, known: float = 0.0) -> Array:
    """How many times further than where its probability is 10**-known a power law with this exponent is integrated."""
    xp = namespace(tail)
    one = xp.ones_like(tail)
    # Corrections of first order must have died out for what has a moment, and 17 digits of probability for the rest; the squared
    # probability, of which CRPS takes an integral, falls more slowly below one.
    far = xp.maximum(17.0 / tail, 13.0 / xp.maximum(tail - 1.0, one))
    squared = xp.where((tail > 0.5) & (tail < 1.0), 17.0 / xp.maximum(2.0 * tail - 1.0, 0.05 * one), 0.0 * one)
    return 10.0 ** xp.clip(xp.maximum(far, squared) - known / tail, 0.1, 250.0)


def refuse_long_reach(d: Family, width: Array, reach: list[Array]) -> None:
    """Refuse undeclared tails that reach too far for moments to be right."""
    for tail, bound, far in zip(d.tails, d.support, reach, strict=True):
        if tail is None and bound is None and bool((far > HEAVY * width).any()):
            raise UnsupportedError(
                f"{type(d).__name__} reaches more than {HEAVY:g} interquartile ranges from its median, beyond all quantiles; "
                "declare its `tails` if they are power laws, else its `landmarks` with their `reach`"
            )


def prepare(kinds: dict[str, str], check: bool, **given: Array) -> dict[str, Array]:
    """Parameters as floating arrays of one shape, that of the first which is no number; see `fits`."""
    arrays = coerce(**given)
    shape = next((tuple(x.shape) for x in arrays.values() if x.ndim), ())
    for name, x in arrays.items():
        if not fits(tuple(x.shape), shape):
            first = next(iter(arrays))
            shapes = f"{first} {shape}, got {tuple(x.shape)}"
            raise ShapeError(f"{name} must match {shapes}; axes are (members, *points), transpose or broadcast it")
        if check:
            check_values(name, x, kinds[name])
    return {name: x if x.shape == shape else namespace(x).broadcast_to(x, shape) for name, x in arrays.items()}


def fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether an array stretches to this shape in one way only: a number, or all axes there, each alike or of length one."""
    # Fewer axes would be matched from the right, where (members,) can be mistaken for (points,).
    return not shape or (len(shape) == len(whole) and all(a in (1, b) for a, b in zip(shape, whole, strict=True)))


def check_values(name: str, x: Array, kind: str) -> None:
    """Refuse values that no distribution has; silent for traced arrays, whose values are not known.

    Raises:
        InvalidValueError: naming the argument, the requirement, the first offending value and where it is.
    """
    if is_traced(x):
        return
    x = to_numpy(x) if is_jax(x) else x  # within `jit` even a comparison of known values would be traced
    if all(_are_good(part, kind) for part in blocks(x)):
        return
    xp = namespace(x)
    sign = {"location": xp.isfinite(x), "bound": ~xp.isnan(x), "negative": x < 0}.get(kind, x > 0)
    bad = ~((xp.isfinite(x) | (kind == "bound")) & sign)
    if bool(xp.any(bad)):
        flat = np.flatnonzero(np.asarray(constant(bad).cpu() if hasattr(bad, "cpu") else bad))
        index = tuple(int(i) for i in np.unravel_index(flat[0], x.shape)) if x.ndim else ()
        value = float(xp.reshape(constant(x), (-1,))[int(flat[0])])
        known = {"location": "finite", "bound": "a number or infinite", "negative": "finite and less than zero"}
        wanted = known.get(kind, "finite and greater than zero")
        place = f" at index {index}" if index else ""
        more = f" ({len(flat)} such values)" if len(flat) > 1 else ""
        raise InvalidValueError(
            f"{name} must be {wanted}, got {value}{place}{more}; drop or repair these entries before building the prediction"
        )
    if str(x.dtype).endswith(("float16", "float32")):
        return  # which are computed in double precision, where none is too large
    low, high = BOUNDS.get(kind, (-math.inf, math.inf))
    outside = (x < low) | (x > high)
    if bool(xp.any(outside)):
        at = int(xp.argmax(xp.astype(xp.reshape(outside, (-1,)), xp.int32)))
        value = float(xp.reshape(constant(x), (-1,))[at])
        raise InvalidValueError(
            f"{name} must lie between {low:g} and {high:g}, got {value:g} in entry {at}: squares of such numbers leave the range "
            "of double precision; give the target in another unit, or drop these entries"
        )


def blocks(x: Array) -> Iterator[Array]:
    """Rows of a large array, few enough that what is computed of them takes little memory."""
    step = max(1, CHECKED // max(1, int(np.prod(x.shape[1:], dtype=np.int64))))
    if not x.ndim or step >= x.shape[0]:
        yield x
        return
    for start in range(0, x.shape[0], step):
        yield x[start : start + step]


def _are_good(x: Array, kind: str) -> bool:
    """Whether `check_values` has nothing to say of these."""
    xp = namespace(x)
    good = xp.isfinite(x)
    if kind != "location":
        good = good & ((x < 0) if kind == "negative" else (x > 0))
    if kind in BOUNDS and not str(x.dtype).endswith(("float16", "float32")):
        good = good & (x >= BOUNDS[kind][0]) & (x <= BOUNDS[kind][1])
    return bool(xp.all(good))


def bisect(distribution: Family, level: Array, low: Array, high: Array) -> Array:
    """The quantile between two bounds, also far out in heavy tails: bisection runs in asinh of the distance from the centre."""
    xp = namespace(low, high)
    centre, spread = constant(distribution.centre), constant(distribution.spread)
    spread = xp.where(xp.isfinite(spread), spread, xp.ones_like(spread))  # the variance may not exist
    low, high = (xp.asinh((constant(bound) - centre) / spread) for bound in (low, high))
    # A range of a few hundred halved 80 times is shorter than the distance between two doubles.
    for _ in range(80):
        middle = 0.5 * (low + high)
        below = constant(distribution.cdf(centre + spread * xp.sinh(middle))) < level
        low, high = xp.where(below, middle, low), xp.where(below, high, middle)
    return with_gradient(distribution, centre + spread * xp.sinh(0.5 * (low + high)), level)


def with_gradient(distribution: Family, quantile: Array, level: Array) -> Array:
    """A quantile that was found as a constant, plus a zero that has its gradient, by the implicit function theorem."""
    probability, density = distribution.cdf(quantile), constant(distribution.density(quantile))
    xp = namespace(density)
    # The density is a constant too, so only first derivatives are right.
    safe = xp.where(density > 0.0, density, xp.ones_like(density))
    return quantile - (probability - constant(probability)) / safe + (level - constant(level)) / safe


def no_density(family: Family) -> UnsupportedError:
    """The error for a density that does not exist."""
    return UnsupportedError(
        f"{type(family).__name__.lower()} distributions have no density, which this rule needs (as log and quadratic do); use "
        "rules that do without, as in evaluate(ens, catalogue(['crps', 'squared_error'])), or fit a density, for example "
        "EnsemblePrediction.gaussian with the samples' mean and variance"
    )


def mixing_weights(like: Array, weights: Array, check: bool = True) -> Array:
    """Weights of the shape of `like` from None (equal) or one number for each entry of its first axis.

    Raises:
        ShapeError: not one weight for each member.
        InvalidValueError: a weight that is negative or not finite, or weights that do not sum to one.
    """
    xp = namespace(like)
    count = like.shape[0]
    if weights is None:
        return xp.broadcast_to(xp.full_like(like[:1], 1.0 / count), like.shape)  # one number for all takes no memory
    weights = as_weights(weights, like)
    if tuple(weights.shape) not in ((count,), tuple(like.shape)):
        shape = tuple(weights.shape)
        raise ShapeError(f"weights must have one entry for each of the {count} members, got shape {shape}; None means equal")
    if check:
        check_weights(weights)
    wide = weights if weights.shape == like.shape else xp.reshape(weights, (count, *(1,) * (like.ndim - 1)))
    wide = xp.broadcast_to(xp.astype(wide, like.dtype), like.shape)
    return wide / xp.sum(wide, axis=0)  # the check leaves some slack, but later code takes the sum as exactly one


def as_weights(weights: Array, like: Array) -> Array:
    """Weights of any kind as an array of the library and device of `like`."""
    if isinstance(weights, np.ndarray) and not isinstance(like, np.ndarray):
        # As numbers they follow the library and device of the members; `coerce` refuses arrays of two libraries.
        weights = weights.tolist()
    return coerce(weights=weights, members=like)["weights"]


def check_weights(weights: Array) -> None:
    """Refuse weights (members, ...) that are no probability distribution over the members."""
    if is_traced(weights):
        return
    weights = to_numpy(weights) if is_jax(weights) else weights  # as in `check_values`
    xp = namespace(weights)
    good = xp.isfinite(weights) & (weights >= 0.0)
    if not bool(xp.all(good)):
        first = float(xp.reshape(weights, (-1,))[int(xp.argmin(xp.astype(xp.reshape(good, (-1,)), xp.int32)))])
        raise InvalidValueError(f"weights must be finite and not negative, got {first}; drop the members that should not count")
    total = xp.sum(weights, axis=0)
    slack = 1e-6 if "64" in str(weights.dtype) else 1e-4  # rounding of weights that were computed in this precision
    if not bool(xp.all(xp.abs(total - 1.0) <= slack)):
        worst = float(xp.max(total))
        raise InvalidValueError(f"weights must sum to one, got {worst:g}; divide them by their sum")
