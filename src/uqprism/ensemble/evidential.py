"""`EvidentialPrediction`: what deep evidential regression predicts, a normal-inverse-gamma distribution per point."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import Array, normal_quantile, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.origin import Origin
from uqprism.errors import InvalidValueError, ShapeError
from uqprism.families import StudentT
from uqprism.families.base import prepare
from uqprism.support.reading import loading
from uqprism.support.storage import write_npz

FORMAT = "uqprism.EvidentialPrediction"
PARAMETERS = {"gamma": "location", "nu": "shape", "alpha": "shape", "beta": "variance"}

# The deviations of the means follow a golden-ratio sequence down the strata of the variance. With this start, the heaviest
# stratum gets about one standard deviation and the final rescaling is small. Of the starts 0.31, 0.6, 0.68 and 0.72, it came
# nearest to the exact CRPS and log measures for alpha > 1.1.
GOLDEN_RATIO, FIRST_LEVEL = 0.5 * (math.sqrt(5.0) - 1.0), 0.72
HEAVIEST = 4.0  # the limit on a stratum's mean, in medians of the stratum; reached only for alpha < 1.3


@dataclass(frozen=True, eq=False)
class EvidentialPrediction:
    """Normal-inverse-gamma parameters: variance ~ InverseGamma(alpha, beta), mean | variance ~ Normal(gamma, variance / nu).

    Arrays of any library become NumPy arrays, and numbers are broadcast to their shape. Values are checked once, here.

    Attributes:
        gamma: the expected mean, (*points), or (networks, *points) with `networks=True`.
        nu: how many observations the mean is worth; positive.
        alpha: half the degrees of freedom of the variance; positive.
        beta: the scale of the variance, in squared units of the target; positive.
        networks: whether the first axis is one of several networks, each with its own parameters.
    """

    gamma: Array
    nu: Array
    alpha: Array
    beta: Array
    networks: bool = False

    def __post_init__(self) -> None:
        given = {name: to_numpy(getattr(self, name)) for name in PARAMETERS}
        for name, x in prepare(PARAMETERS, True, **given).items():
            object.__setattr__(self, name, np.asarray(x, dtype=np.float64))
        if self.networks and (self.gamma.ndim == 0 or len(self.gamma) == 0):
            raise ShapeError(f"networks=True needs a first axis of networks, got shape {self.gamma.shape}")

    @property
    def mean(self) -> Array:
        """The expected value of the target, gamma."""
        return self.gamma

    @property
    def aleatoric(self) -> Array:
        """The expected variance, beta / (alpha - 1); infinite for alpha up to 1."""
        excess = self.alpha - 1.0
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(excess > 0.0, self.beta / np.where(excess > 0.0, excess, 1.0), np.inf)

    @property
    def epistemic(self) -> Array:
        """The variance of the mean, beta / (nu (alpha - 1)); infinite for alpha up to 1."""
        with np.errstate(over="ignore"):
            return self.aleatoric / self.nu

    @property
    def predictive(self) -> StudentT:
        """The distribution of the target: Student t with 2 alpha degrees of freedom."""
        scale = np.sqrt(self.beta / self.alpha * (1.0 + 1.0 / self.nu))
        return StudentT(location=self.gamma, scale=scale, df=2.0 * self.alpha)

    def as_ensemble(self, n_members: int = 64) -> EnsemblePrediction:
        """Gaussian members that represent the distribution of mean and variance; no random numbers are used.

        The inverse gamma distribution of the variance is cut into `n_members / 2` strata of equal probability. Each has two
        members with the stratum's mean variance, at equal distances on both sides of gamma. If `n_members` is odd, one more has
        gamma and the mean variance. Under the squared error, every `n_members` above 1 gives, up to rounding,

        - `squared_error.bayes.members` = `aleatoric`,
        - `squared_error.excess.mixture.members` = `epistemic`, and
        - `squared_error.excess.members.members` = twice that,

        if alpha is at least 1.3. Below, the tail of the variance is so heavy that its mean is not typical of it; the variance of
        the heaviest stratum is then limited, so that other rules give useful values. For alpha up to 1 the exact values are
        infinite. Other rules converge: for alpha > 2, CRPS and log measures are within 2% of their limits with 64 members.

        Args:
            n_members: the number of members, for each network if there are several.

        Returns:
            Members (n_members, *points), or (networks * n_members, *points) with the members of a network next to each other.
        """
        if n_members < 1:
            raise InvalidValueError(f"n_members must be at least 1, got {n_members}")
        pairs = n_members // 2
        strata = max(pairs, 1)
        variance = _strata_of_variance(self.alpha, strata)  # in units of beta
        deviation = _deviations(strata).reshape(strata, *(1,) * self.alpha.ndim)
        scale = np.sqrt(variance)
        top = scale.max(axis=0)  # for small alpha, squares of these could overflow
        scale, deviation = scale / top, scale / top * deviation
        mean_square = np.mean(scale**2, axis=0, keepdims=True)
        deviation *= np.sqrt(mean_square * n_members / (2.0 * np.sum(deviation**2, axis=0)))
        unit = np.sqrt(self.beta) * top
        away = unit / np.sqrt(self.nu) * deviation
        single, middle = self.gamma[None][: n_members % 2], np.sqrt(mean_square)[: n_members % 2]
        mean = np.concatenate([(self.gamma + away)[:pairs], (self.gamma - away)[:pairs], single])
        scale = unit * np.concatenate([scale[:pairs], scale[:pairs], middle])
        if self.networks:
            mean, scale = (np.moveaxis(x, 1, 0).reshape(-1, *x.shape[2:]) for x in (mean, scale))
        made = EnsemblePrediction.gaussian(mean=mean, scale=scale, member_axis=0)
        return made.made_by(Origin("evidential", "evidential", made.n_members))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with a JSON header; `load` reads it back. A failed write leaves no file."""
        write_npz(path, FORMAT, {"networks": self.networks}, {name: getattr(self, name) for name in PARAMETERS})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> EvidentialPrediction:
        """Read what `save` wrote."""
        with loading(path, FORMAT) as (header, arrays):
            return cls(**arrays, networks=bool(header["networks"]))

    def __repr__(self) -> str:
        shape = " x ".join(str(n) for n in self.gamma.shape) or "1"
        return f"<EvidentialPrediction: {shape} {'networks x points' if self.networks else 'points'}>"


def _strata_of_variance(alpha: Array, strata: int) -> Array:
    """The mean of InverseGamma(alpha, 1) within each of its strata of equal probability, (strata, *points), heaviest first.

    With g the strata's edges as quantiles of Gamma(alpha), the part of the mean up to g is Q(alpha - 1, g) / (alpha - 1), Q the
    regularised upper incomplete gamma function; the result is clipped to the stratum against rounding. Up to alpha = 1 the
    heaviest stratum has no mean: it gets the limit, and the other strata get their medians.
    """
    from scipy.special import gammaincc, gammaincinv

    flat = alpha.ravel()
    edges = gammaincinv(flat, np.arange(strata + 1)[:, None] / strata)
    edges[-1] = np.inf
    excess = np.where(flat > 1.0, flat - 1.0, 1.0)
    mean = -np.diff(gammaincc(excess, edges), axis=0) * (strata / excess)
    np.clip(mean[1:], 1.0 / edges[2:], 1.0 / edges[1:-1], out=mean[1:])
    limit = HEAVIEST / gammaincinv(flat, 0.5 / strata)
    mean[0] = np.where(flat > 1.0, np.clip(mean[0], 1.0 / edges[1], limit), limit)
    none = flat <= 1.0
    mean[1:, none] = 1.0 / gammaincinv(flat[none], (np.arange(1, strata)[:, None] + 0.5) / strata)
    return mean.reshape(strata, *alpha.shape)


def _deviations(strata: int) -> np.ndarray[Any, Any]:
    """Half-normal deviations, one for each stratum; those of any consecutive strata are spread evenly."""
    order = np.argsort(np.argsort((FIRST_LEVEL + GOLDEN_RATIO * np.arange(strata)) % 1.0))
    return normal_quantile(0.5 + 0.5 * (order + 0.5) / strata)
