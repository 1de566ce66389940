"""What is computed: every (rule, risk, prediction, truth) by one name, the risks behind them, and tables of them."""

from uqprism.measures.measure import (
    APPROXIMATIONS,
    ORDERS,
    RISKS,
    ApproximationLike,
    Measure,
    MeasureTable,
    Order,
    RuleLike,
    catalogue,
    resolve_approximation,
    resolve_rule,
)

__all__ = [
    "APPROXIMATIONS",
    "ORDERS",
    "RISKS",
    "ApproximationLike",
    "Measure",
    "MeasureTable",
    "Order",
    "RuleLike",
    "catalogue",
    "resolve_approximation",
    "resolve_rule",
]
