"""How the rule of the audit was chosen, and what limits it: every set is judged by what suits the others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

import numpy as np
from audit_store import CLOSELY, FOUR, LOG, MAIN, NEAR, judged, of
from truths import FRESH, KNOWN

GRID = [(back, wander) for back in (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9) for wander in (0.25, 0.5, 1.0)]
FARTHEST = 0.5  # of the distances that choose the constants: a set that no rule foresees shall not choose them


def distances(constants: tuple[float, float]) -> dict[str, np.ndarray]:
    """By set: how far mean factors are from what happened, |log ratio|, for the four rules and both growths."""
    rule = importlib.import_module("uqprism.tasks.audit.promise")
    before = rule.RETURN, rule.WANDER
    rule.RETURN, rule.WANDER = constants
    try:
        every = [judged(CLOSELY, measure) for measure in FOUR]
    finally:
        rule.RETURN, rule.WANDER = before
    return {
        name: np.concatenate([_distance(each[name][0][..., 0].mean(axis=0) / each[name][1]) for each in every])
        for name in every[0]
    }


def _distance(ratio: np.ndarray) -> np.ndarray:
    return np.abs(np.log(np.maximum(ratio, 0.01)))


def chosen() -> list[str]:
    """The constants of the rule, chosen without each set, and how near the factors then are on it."""
    every = {constants: distances(constants) for constants in GRID}
    kept = distances((1.0, 1e6))  # the last doubling, without return

    def best(left_out: str) -> tuple[float, float]:
        others = [name for name in kept if name != left_out]
        return min(GRID, key=lambda each: np.mean([np.minimum(every[each][name], FARTHEST) for name in others]))

    lines = [
        "### The constants of the rule",
        "",
        "Chosen on the other sets that were in view, from a grid, by the mean distance between the logarithms of factors and of "
        "what happened (at most 0.5 for each), under all four rules: how much of the share beyond face value a doubling leaves "
        "(*return*), and how far it wanders (*wander*). Then the distance on the set that was left out, for 2x and 4x under the "
        "CRPS and under the log score, and that of the share of the last doubling, taken as it is. 0.18 is 20 %.",
        "",
        "| left out | return | wander | CRPS 2x, 4x | log 2x, 4x | last doubling: CRPS | log |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in [*kept, ""]:
        constants = best(name)
        if name:
            pairs = (*every[constants][name][:4].reshape(2, 2), *kept[name][:4].reshape(2, 2))
            cells = [", ".join(f"{x:.2f}" for x in pair) for pair in pairs]
        lines.append(f"| {name or 'none'} | {constants[0]} | {constants[1]} | {' | '.join(cells if name else [''] * 4)} |")
    return [*lines, ""]


Form = Callable[[np.ndarray, int], list[float]]
FORMS: dict[str, Form] = {  # what the next share is a sum of, with weights: of shares, falls of the excess and of the noise
    "the last share": lambda falls, k: [falls[0, k]],
    "and a constant": lambda falls, k: [falls[0, k], 1.0],
    "and what the excess lost": lambda falls, k: [falls[0, k], falls[1, k] + falls[1, k - 1]],
    "and the share before": lambda falls, k: [falls[0, k], falls[0, k - 1], 1.0],
    "and what the noise lost": lambda falls, k: [falls[0, k], falls[2, k], 1.0],
    "all of these": lambda falls, k: [*falls[[0, 0, 2, 2], [k, k - 1, k, k - 1]], falls[1, k] + falls[1, k - 1], 1.0],
}
UNFORESEEN = {"steps"}  # what is found there with more rows is not to be learned from
LAST = 2  # the last doubling of an audit


def curves(measure: str, sets: Iterable[str]) -> dict[str, np.ndarray]:
    """What five doublings removed of the penalty, the excess and the noise, as shares of the excess before: (3, doublings)."""
    audits, others = of("known audit", CLOSELY, measure), of("known other", CLOSELY, measure)
    found = {}
    for name in sorted(set(audits) & set(others) & set(sets)):
        falls = []
        for group in (audits[name], others[name]):
            excess, noise, penalty = (
                np.mean([getattr(each, what) for each in group], axis=0) for what in ("excess", "noise", "penalty")
            )
            falls.append(np.array([-np.diff(penalty), -np.diff(excess), -np.diff(noise)]) / excess[:-1])
        found[name] = np.concatenate(falls, axis=1)
    return found


def weights_of(form: Form, every: dict[str, np.ndarray], left_out: str) -> np.ndarray:
    """By least squares on the relative errors of the shares after three doublings, without one set."""
    rows, shares = [], []
    for name, falls in every.items():
        if name != left_out and name not in UNFORESEEN:
            rows += [form(falls, k) for k in (1, LAST, 3)]
            shares += list(falls[0, 2:])
    scale = 1.0 / np.maximum(shares, 0.3)
    return np.asarray(np.linalg.lstsq(np.array(rows) * scale[:, None], shares * scale, rcond=None)[0])


def forms() -> list[str]:
    """Whether anything that an audit measures tells more of the next doubling than the last share does."""
    lines = [
        "### What limits the factor",
        "",
        "The share that the next doubling removes, as a weighted sum of what audits measured up to n: of means over all audits, "
        "so that chance plays little part. Weights come from the other sets in view. *Near* counts sets within 20 %, *distance* "
        "is the mean |log ratio| (at most 0.5 for each).",
        "",
        "| next share | CRPS: near, distance | fresh | log: near, distance | fresh |",
        "|---|---|---|---|---|",
    ]
    for words, form in FORMS.items():
        cells = []
        for measure in (MAIN, LOG):
            known, fresh = curves(measure, KNOWN), curves(measure, FRESH)
            for sets in (known, fresh):
                ratios = {
                    name: np.dot(weights_of(form, known, name), form(each, LAST)) / each[0, LAST + 1]
                    for name, each in sets.items()
                }
                off = _distance(np.array(list(ratios.values())))
                near = sum(abs(ratio - 1.0) <= NEAR for ratio in ratios.values())
                cells.append(f"{near} of {len(off)}, {np.minimum(off, FARTHEST).mean():.2f}")
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return [*lines, ""]
