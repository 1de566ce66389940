"""Which measures members have: log and quadratic need densities, or probabilities in both roles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from uqprism.errors import ArgumentError, warn
from uqprism.families import Family
from uqprism.measures.measure import Measure
from uqprism.rules import Log, Quadratic

SHOWN = 3  # names in a message


def is_defined(measure: Measure, members: Family) -> bool:
    """False if the measure compares probabilities with a density, or needs a density that some of the members lack."""
    if not isinstance(measure.resolved(), Log | Quadratic):
        return True
    roles = {measure.prediction or measure.truth, measure.truth}
    if not roles & {"members", "mixture"} or (measure.risk == "excess" and roles == {"mixture"}):
        return True  # between Gaussians, and of the mixture from itself
    if not members.has_density:
        return False
    if members.has_probabilities == "atoms" and isinstance(measure.resolved(), Quadratic):
        return False
    return not members.has_probabilities or roles <= {"members", "mixture"}


def only_defined(measures: Sequence[Measure], members: Family, what: str = "these members") -> list[Measure]:
    """Those of the measures that the members have; warns of the others, which `what` do not have."""
    found = [measure for measure in measures if is_defined(measure, members)]
    if not found:
        raise ArgumentError(f"{what} have none of the measures; name others")
    if len(found) < len(measures):
        warn(f"{left_out(m for m in measures if m not in found)}: {what} {_reason(members)}")
    return found


def left_out(measures: Iterable[Measure]) -> str:
    """The names of some measures, for a message."""
    names = [measure.name for measure in measures]
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    return f"{len(names)} measures are left out, {shown}"


def _reason(members: Family) -> str:
    if not members.has_density:
        return (
            "have no density, which log and quadratic need; up.kernel_density and up.histogram_density estimate one from draws, "
            "and quantiles have one with tails and values that differ"
        )
    kind = {"counts": "counts", "atoms": "censored values"}[members.has_probabilities]
    return f"are {kind}, whose probabilities log and quadratic cannot compare with densities such as those of matched and pooled"
