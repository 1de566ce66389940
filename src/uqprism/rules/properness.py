"""Whether a score is proper: on average no prediction may score better than the truth."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from uqprism.arrays import is_traced, to_numpy
from uqprism.errors import InvalidValueError
from uqprism.families.base import Family
from uqprism.families.gaussian import Gaussian
from uqprism.families.laplace import Laplace
from uqprism.families.logistic import Logistic
from uqprism.families.mixture import Mixture

if TYPE_CHECKING:
    from uqprism.rules.base import Rule

MARGIN = 0.04  # of the largest difference; a score with jumps is integrated less accurately than others
MOST_KNOWN = 256
_known: set[object] = set()  # rules that passed
ROUNDING = 1e-6  # of the scores themselves


def check_proper(rule: Rule) -> None:
    """Refuse a rule under which a prediction beats the truth, for pairs of distributions that are well apart.

    Pairs for which the rule cannot be computed are left out: it may be for one family, or for one array library.

    Raises:
        InvalidValueError: the rule is not proper; most often its sign is wrong.
    """
    key = _key(rule)
    if key in _known:
        return
    gaps, sizes = _gaps(rule)
    wrong = gaps < -np.maximum(MARGIN * np.abs(gaps).max(initial=0.0), ROUNDING * sizes)
    if wrong.any():
        more = "mostly " if (gaps > ROUNDING * sizes).any() else ""
        if np.median(gaps) < 0.0:
            raise InvalidValueError(
                f"the rule {rule.name!r} seems to have the wrong sign: the truth {more}has a worse expected score than other "
                "predictions; scores are penalties, lower is better: negate it"
            )
        raise InvalidValueError(
            f"the rule {rule.name!r} is not proper: for some distributions another prediction has a better expected score than "
            "the truth, so its risks would mean nothing; docs/extending.md says what a proper rule is"
        )
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known.add(key)


def _key(rule: Rule) -> object:
    """What tells a rule from others of its class; the class alone if its attributes cannot be compared."""
    key = (type(rule), *sorted(vars(rule).items(), key=lambda each: each[0]))
    try:
        hash(key)
    except TypeError:
        return type(rule)
    return key


def _pairs() -> list[tuple[Family, Family]]:
    """Predictions and truths in both directions: apart by place, by scale and by shape, also far from zero."""
    near = Gaussian(mean=np.array([0.0, 0.0, 20.0]), scale=np.array([1.0, 1.0, 1.0]), check=False)
    far = Gaussian(mean=np.array([3.0, 0.0, 23.0]), scale=np.array([1.0, 3.0, 2.0]), check=False)
    laplace = Laplace(location=np.array([1.0, 20.0]), scale=np.array([0.4, 0.4]), check=False)
    logistic = Logistic(location=np.array([-1.0, 22.0]), scale=np.array([0.6, 0.6]), check=False)
    skew = Mixture(Gaussian(mean=np.array([[0.0], [6.0]]), scale=np.array([[1.0], [1.0]]), check=False), np.array([0.7, 0.3]))
    # At the median and at the mean of the skew one.
    plain = Gaussian(mean=np.array([0.57, 1.8]), scale=np.array([2.0, 3.0]), check=False)
    pairs = [(near, far), (laplace, logistic), (plain, skew)]
    return [*pairs, *((truth, prediction) for prediction, truth in pairs)]


def _gaps(rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """What each prediction is expected to cost more than the truth does, and the size of the two."""
    found = []
    for prediction, truth in _pairs():
        # A rule of a user may fail in any way where it does not apply, and says so when it is used.
        with suppress(Exception), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            costs = [_expected(rule, each, truth) for each in (prediction, truth)]
            known = [cost for cost in costs if cost is not None]
            if len(known) == len(costs):
                found.append(np.stack(np.broadcast_arrays(*known)))
    both = np.concatenate([each.reshape(2, -1) for each in found], axis=1) if found else np.zeros((2, 0))
    both = both[:, np.isfinite(both).all(axis=0)]
    return both[0] - both[1], np.abs(both).sum(axis=0)


def _expected(rule: Rule, prediction: Family, truth: Family) -> np.ndarray | None:
    """The mean score, from the score alone; None while values are not known, as within `jax.jit`."""
    # Not by the rule's own `expected_score`, whose closed form may have another sign than the score.
    cost = truth.expectation(lambda y: rule.score(prediction, y), prediction)
    return None if is_traced(cost) else to_numpy(cost)
