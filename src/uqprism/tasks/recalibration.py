"""Recalibration that keeps the split: one factor for the members' noise, one for their disagreement."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from uqprism.arrays import Array, from_numpy, namespace, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import RuleLike, resolve_rule
from uqprism.measures.vocabulary import rule_words
from uqprism.rules import Rule
from uqprism.support.progress import progress_bar
from uqprism.support.reading import read_json, reading
from uqprism.support.storage import write_text
from uqprism.tasks.level_map import LevelMap, fit_map
from uqprism.tasks.prediction_error import PAIRS_AT_ONCE, prediction_error
from uqprism.tasks.scores import with_targets

FORMAT = "uqprism.Recalibration"
FEWEST = 20  # rows, to say anything at all
MOST = 5_000  # rows that two factors are fitted on; the test has all
FURTHEST = 20.0  # factors lie between one over this and this
STEP, CLOSE = 0.5, 1e-2  # in logarithms of the factors: the first step of the search, and where it ends


@dataclass(frozen=True)
class Recalibration:
    """Two factors that make predictions wider or narrower, fitted to outcomes; of one each if that was not shown to help.

    Attributes:
        noise: the factor of each member's width about its own centre.
        disagreement: the factor of the distances of the members' centres from their common mean.
        kept: whether the paired test found the fitted factors better than none; `apply` is the identity otherwise.
        fitted: the two factors as they were fitted, whether or not they are kept.
        rule: the scoring rule that they were fitted to.
        before: the mean score of the predictions as they are.
        after: the mean score of recalibrated predictions, each row by factors that were fitted on others.
        change: after less before; below zero is better.
        error: the standard error of the change.
        level: of the test.
        rows: how many rows there were.
        family: of the members.
        level_map: a further map of levels, if one was asked for; `apply` uses it if it was kept.
    """

    noise: float
    disagreement: float
    kept: bool
    fitted: tuple[float, float]
    rule: str
    before: float
    after: float
    change: float
    error: float
    level: float
    rows: int
    family: str
    level_map: LevelMap | None = None

    def apply(self, ensemble: EnsemblePrediction) -> EnsemblePrediction:
        """The recalibrated prediction, of the same members and weights; the same prediction if nothing was kept.

        Its family is the same, or that of quantiles if a map of levels was kept.
        """
        if not isinstance(ensemble, EnsemblePrediction):
            raise ArgumentError(f"apply takes an EnsemblePrediction, got {type(ensemble).__name__}")
        if ensemble.members.name != self.family:
            raise ArgumentError(
                f"this was fitted for {self.family} members, got {ensemble.members.name}; fit it on predictions alike"
            )
        scaled = rescaled(ensemble, self.noise, self.disagreement) if self.kept else ensemble
        return self.level_map.apply(scaled) if self.level_map is not None and self.level_map.kept else scaled

    @property
    def sentence(self) -> str:
        """What was found, in one or two sentences."""
        words = rule_words(self.rule).name
        test = f"{words} {self.before:.4g} before and {self.after:.4g} after, on rows that the factors were not fitted on"
        noise, disagreement = self.fitted
        if self.kept:
            text = (
                f"Recalibrated: noise times {noise:.3g}, disagreement times {disagreement:.3g}. This is better than doing "
                f"nothing ({test}; change {self.change:.2g} +- {self.error:.1g})."
            )
        else:
            text = (
                f"Not recalibrated: the best factors, {noise:.3g} for noise and {disagreement:.3g} for disagreement, are not "
                f"significantly better than doing nothing ({test}; change {self.change:.2g} +- {self.error:.1g})."
            )
        return text if self.level_map is None else f"{text} {self._of_map(self.level_map, words)}"

    def _of_map(self, found: LevelMap, words: str) -> str:
        kept, alone = ("kept", "is") if found.kept else ("not kept", "is not significantly")
        base = "the factors alone" if self.kept else "doing nothing"
        return (
            f"A map of levels was {kept}: it {alone} better than {base} ({words} {found.before:.4g} without and "
            f"{found.after:.4g} with it; change {found.change:.2g} +- {found.error:.1g})."
        )

    def to_json(self) -> str:
        """All of it as JSON text."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file; `load` reads it back."""
        write_text(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recalibration:
        """Read what `save` wrote."""
        found = read_json(path)
        with reading(path, "does not hold what Recalibration.save writes"):
            return cls.from_dict(found)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recalibration:
        """What `to_json` wrote, as plain data."""
        found = dict(data)
        if found.pop("format", None) != FORMAT:
            raise InvalidValueError("was not written by Recalibration.save")
        stored = found.get("level_map")
        level_map = None if stored is None else LevelMap.from_dict(stored)
        made = cls(**{**found, "fitted": tuple(map(float, found["fitted"])), "level_map": level_map})
        for factor in (made.noise, made.disagreement, *made.fitted):
            if not (0.0 < factor < math.inf):
                raise InvalidValueError(f"factors must be positive numbers, got {factor!r}")
        if not isinstance(made.kept, bool):
            raise InvalidValueError(f"kept must be true or false, got {made.kept!r}")
        return made

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        factors = f"noise x {self.noise:.3g}, disagreement x {self.disagreement:.3g}"
        kept = factors if self.kept else "no factors, since none were shown to help"
        mapped = ", levels mapped" if self.level_map is not None and self.level_map.kept else ""
        return f"<Recalibration: {kept}{mapped}>"


def recalibrate(
    ensemble: EnsemblePrediction,
    target: Array,
    *,
    rule: RuleLike = "crps",
    level_map: bool = False,
    folds: int = 5,
    level: float = 0.95,
    seed: int = 0,
    progress: bool | None = None,
) -> Recalibration:
    """Fit a factor for noise and one for disagreement to outcomes, and keep them if they are better than doing nothing.

    Each member is widened about its own centre by the first factor, and the members are spread about their common mean by the
    second, so that the result is an ordinary ensemble, whose noise and disagreement can be told apart as before. The mean of the
    ensemble stays. For families with bounds, such as lognormal or beta, this happens on the scale of logarithms or logits, and
    for truncated and censored Gaussians before they meet their bounds.

    The factors minimise the mean score of the mixture. They are then fitted again on all but one fold of the rows, for every
    fold, and scored on that fold; a one-sided paired t-test compares the scores with those of the predictions as they are.

        >>> import numpy as np
        >>> import uqprism as up
        >>> rng = np.random.default_rng(0)
        >>> centre, y = rng.normal(size=(5, 500)), rng.normal(size=500)
        >>> ens = up.EnsemblePrediction.gaussian(mean=0.1 * centre, scale=np.full((5, 500), 0.4))
        >>> found = up.recalibrate(ens, y)
        >>> found.kept
        True
        >>> up.calibration(found.apply(ens), y).verdict()
        'about right'

    Args:
        ensemble: predictions for rows that the models were not trained on.
        target: what happened there, in the shape of the points.
        rule: the scoring rule to minimise, or its name; one that sees more than the mean.
        level_map: also fit a map of levels, for distributions of the wrong shape, and keep it if the same test finds it better
            than the factors alone. Members become quantiles then, whose levels are the shares of outcomes up to them.
        folds: how many parts of the rows the test has, each scored by factors from the others.
        level: of the test; without any improvement, factors are kept with a probability of one minus this.
        seed: of the folds.
        progress: whether to draw a bar; None draws one on a terminal.

    Returns:
        The fitted `Recalibration`; `.apply(ensemble)` on new predictions, `.sentence` for what was found.
    """
    scorer = resolve_rule(rule)
    flat, y = with_targets(ensemble, target)
    _check(flat, y, scorer, folds, level)
    rng = np.random.default_rng(seed)
    fold = rng.permutation(len(y)) % folds
    with progress_bar("recalibrating", (2 if level_map else 1) * folds + 2, shown=progress) as bar:

        def scored_apart(recalibrated: Callable[[int, np.ndarray], EnsemblePrediction]) -> np.ndarray:
            scores = np.empty(len(y))
            for i in range(folds):
                own = fold == i
                scores[own] = mean_scores(recalibrated(i, own), y[own], scorer)
                bar.update(advance=1)
            return scores

        before = _finite(mean_scores(flat, y, scorer), scorer)
        bar.update(advance=1)
        fitted = _fit(flat, y, scorer, rng)
        bar.update(advance=1)
        factors: dict[int, tuple[float, float]] = {}

        def by_factors(i: int, own: np.ndarray) -> EnsemblePrediction:
            factors[i] = _fit(flat[~own], y[~own], scorer, rng, start=fitted)
            return rescaled(flat[own], *factors[i])

        after = scored_apart(by_factors)
        test = Test.of(before, after, level)
        kept = test.better and fitted != (1.0, 1.0)
        chosen = fitted if kept else (1.0, 1.0)
        found = Recalibration(
            *chosen, kept, fitted, scorer.name, **test.numbers, level=level, rows=len(y), family=flat.members.name
        )
        if not level_map:
            return found

        def by_map(i: int, own: np.ndarray) -> EnsemblePrediction:
            scaled = rescaled(flat, *factors[i]) if kept else flat
            return fit_map(scaled[~own], y[~own], scorer).apply(scaled[own])

        test = Test.of(after if kept else before, scored_apart(by_map), level)
        fitted_map = fit_map(found.apply(flat), y, scorer)
        return replace(found, level_map=replace(fitted_map, kept=test.better, **test.numbers))


def rescaled(ensemble: EnsemblePrediction, noise: float, disagreement: float) -> EnsemblePrediction:
    """The ensemble with members this many times as wide and as far apart."""
    members = ensemble.members.widened().recalibrated(ensemble.member_weights(), noise=noise, disagreement=disagreement)
    dtype = ensemble.members.centre.dtype
    moved = ensemble[...]  # a copy, which keeps whatever else the prediction carries
    moved.members = members.map(lambda x: namespace(x).astype(x, dtype))
    return moved


def mean_scores(ensemble: EnsemblePrediction, y: np.ndarray, rule: Rule) -> np.ndarray:
    """The score of the mixture in each row."""
    if rule.name == "crps":  # for which there are fused kernels
        return prediction_error(ensemble, y, "crps")
    step = max(1, PAIRS_AT_ONCE // ensemble.n_members**2)
    found = []
    for start in range(0, len(y), step):
        part = ensemble[start : start + step]
        found.append(to_numpy(rule.score(part.mixture, from_numpy(y[start : start + step], part.members.centre))))
    return np.concatenate(found).astype(np.float64, copy=False)


def _check(ensemble: EnsemblePrediction, y: np.ndarray, rule: Rule, folds: int, level: float) -> None:
    if rule.sees_only_mean:
        raise InvalidValueError(f"rule {rule.name!r} sees only the mean, which recalibration leaves as it is; use crps or log")
    if folds < 2:
        raise InvalidValueError(f"folds must be at least 2, got {folds}; 5 is usual")
    if not 0.5 <= level < 1.0:
        raise InvalidValueError(f"level must be from 0.5 to below 1, got {level}; 0.95 is usual")
    if len(y) < max(FEWEST, folds):
        raise InvalidValueError(f"recalibration needs {max(FEWEST, folds)} rows or more, got {len(y)}")
    rescaled(ensemble[:1], 1.0, 1.0)  # refuses families without such factors before any work


def _finite(scores: np.ndarray, rule: Rule) -> np.ndarray:
    bad = ~np.isfinite(scores)
    if bad.any():
        raise InvalidValueError(
            f"rule {rule.name!r} gives row {int(np.argmax(bad))} no finite score ({int(bad.sum())} in all), as for outcomes that "
            "all members rule out; use crps, or leave such rows out"
        )
    return scores


def _fit(
    ensemble: EnsemblePrediction, y: np.ndarray, rule: Rule, rng: np.random.Generator, start: tuple[float, float] = (1.0, 1.0)
) -> tuple[float, float]:
    """The factors with the least mean score; of one where a factor changes nothing."""
    if len(y) > MOST:
        rows = np.sort(rng.choice(len(y), MOST, replace=False))
        ensemble, y = ensemble[rows], y[rows]
    cost = _cost(ensemble, y, rule)
    free = [i for i in range(2) if _matters(cost, i)]
    if not free:
        return (1.0, 1.0)
    return _least(cost, free, start)


def _cost(ensemble: EnsemblePrediction, y: np.ndarray, rule: Rule) -> Callable[[np.ndarray], float]:
    furthest = math.log(FURTHEST)

    def cost(logarithms: np.ndarray) -> float:
        if np.abs(logarithms).max() > furthest:
            return math.inf
        value = float(mean_scores(rescaled(ensemble, *np.exp(logarithms).tolist()), y, rule).mean())
        return value if math.isfinite(value) else math.inf

    return cost


def _matters(cost: Callable[[np.ndarray], float], which: int) -> bool:
    """Whether a factor changes the score: that of disagreement does not for one member, nor that of noise for single draws."""
    moved = np.where(np.arange(2) == which, 0.1, 0.0)
    here = cost(np.zeros(2))
    return abs(cost(moved) - here) > 1e-12 * abs(here)


def _least(cost: Callable[[np.ndarray], float], free: list[int], start: tuple[float, float]) -> tuple[float, float]:
    """By the simplex method of Nelder and Mead, over the logarithms of those factors that are free."""
    from scipy.optimize import minimize

    def placed(at: np.ndarray) -> np.ndarray:
        whole = np.zeros(2)
        whole[free] = at
        return whole

    first = np.log(start)[free]
    near = 0.1 if start != (1.0, 1.0) else STEP  # a fold's factors are close to those of all rows
    simplex = np.vstack([first, first + near * np.eye(len(free))])
    options = {"xatol": CLOSE, "fatol": math.inf, "maxfev": 200, "initial_simplex": simplex}
    found = minimize(lambda at: cost(placed(at)), first, method="Nelder-Mead", options=options)
    noise, disagreement = np.exp(placed(found.x)).tolist()
    return noise, disagreement


@dataclass(frozen=True)
class Test:
    """A one-sided paired t-test of scores after a change with those before it."""

    before: float
    after: float
    change: float
    error: float
    better: bool

    @classmethod
    def of(cls, before: np.ndarray, after: np.ndarray, level: float) -> Test:
        """The test of the scores of the same rows."""
        from scipy.special import stdtrit

        change = after - before
        mean, error = float(change.mean()), float(change.std(ddof=1) / math.sqrt(len(change)))
        better = bool(mean < -error * stdtrit(len(change) - 1, level))
        return cls(float(before.mean()), float(after.mean()), mean, error, better)

    @property
    def numbers(self) -> dict[str, Any]:
        """All but the verdict."""
        return {"before": self.before, "after": self.after, "change": self.change, "error": self.error}
