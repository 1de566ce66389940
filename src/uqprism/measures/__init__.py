"""What is computed: every (rule, risk, prediction, truth) by one name, the risks behind them, and tables of them."""

from uqprism.measures.catalogue import MeasuresLike, catalogue, is_measure, is_set, select_measures
from uqprism.measures.defined import only_defined
from uqprism.measures.meaning import unknown_measure
from uqprism.measures.measure import (
    ORDERS,
    RISKS,
    ApproximationLike,
    Measure,
    Order,
    RuleLike,
    resolve_approximation,
    resolve_rule,
)
from uqprism.measures.table import MeasureTable

__all__ = [
    "ORDERS",
    "RISKS",
    "ApproximationLike",
    "Measure",
    "MeasureTable",
    "MeasuresLike",
    "Order",
    "RuleLike",
    "catalogue",
    "is_measure",
    "is_set",
    "only_defined",
    "resolve_approximation",
    "resolve_rule",
    "select_measures",
    "unknown_measure",
]
