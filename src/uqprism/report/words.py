"""Numbers and names as people read them."""

from __future__ import annotations

import math

from uqprism.scale.options import is_measure

RULES = {"crps": "CRPS", "log": "log score", "quadratic": "quadratic score", "squared_error": "squared error"}
KINDS = {"total": "total uncertainty", "bayes": "noise", "excess": "removable part"}
ROLES = {
    "members": "each model in turn",
    "mixture": "the average of the models' distributions",
    "matched": "one Gaussian with the mean and variance of that average",
    "pooled": "one Gaussian with that mean and the models' mean variance",
}
SHORT_ROLES = {"members": "models", "mixture": "mixture", "matched": "matched", "pooled": "pooled"}
SPACE = "\u00a0"  # that does not break


def number(value: float) -> str:
    """Three digits, without a power of ten unless it is far from one."""
    if not math.isfinite(value):
        return "infinite" if value > 0 else "minus infinite" if value < 0 else "unknown"
    size = abs(value)
    if size == 0.0:
        return "0"
    if size >= 999.5:
        return f"{value:,.0f}" if size < 1e9 else f"{value:.2e}"
    return f"{value:.3g}" if size >= 9.995e-5 else f"{value:.1e}"


def percent(share: float) -> str:
    """A share in percent, never rounded to all or nothing unless it is."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}{SPACE}%"
    if share < 0.001:
        return f"less than 0.1{SPACE}%"
    if share > 0.999:
        return f"more than 99.9{SPACE}%"
    few = share < 0.0995 or share >= 0.995
    return f"{100 * share:.1f}{SPACE}%" if few else f"{100 * share:.0f}{SPACE}%"


def count(many: int, one: str, several: str = "") -> str:
    """A number of things: `1 row`, `1,200 rows`."""
    return f"{many:,}{SPACE}{one if many == 1 else several or one + 's'}"


def amount(value: float, unit: str) -> str:
    """A number with its unit, if it has one."""
    return f"{number(value)}{SPACE}{unit}" if unit else number(value)


def measure_in_words(name: str) -> str:
    """What a measure is: `removable part, CRPS`; its stand-ins where they are not the models in both roles."""
    if not is_measure(name):
        return ""
    rule, risk, *roles = name.split(".")
    told = f"{KINDS[risk]}, {RULES.get(rule, rule.replace('_', ' '))}"
    if set(roles) == {"members"}:
        return told
    shown = [SHORT_ROLES.get(role, role) for role in roles]
    return f"{told}; truth: {shown[-1]}" + (f", prediction: {shown[0]}" if len(shown) > 1 else "")
