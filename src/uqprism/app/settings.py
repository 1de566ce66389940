"""The choices of how a file is scored and shown; all have a default that suits most files."""

from __future__ import annotations

from typing import Any

import streamlit as st

from uqprism.app import show
from uqprism.app.inputs import RULES, Comparison, ScoringChoice
from uqprism.ensemble.approximations import approximations
from uqprism.families import families

RULE_HELP = "A scoring rule says what a prediction costs once the target is known. Lower is better."
PREDICTION_HELP = "The penalty is that of a prediction. By default the prediction of each model in turn."
TRUTH_HELP = "The truth is unknown, so the models take its place. By default each model in turn, as if it were right."
TARGET_HELP = "What the models predict, in rows where it is known. It shows whether uncertain rows are the wrong ones."
UNIT_HELP = "Of the target, such as kWh. It is also read from a name such as “price [EUR]”."
COLUMNS_HELP = "A pattern with {i} for the number of the model, such as mu{i}; or the names, with commas between."
COLUMNS = {"mean": "Columns of means", "variance": "Columns of variances", "scale": "Columns of standard deviations"}
FOUND = "found automatically"
FAMILY_HELP = (
    "What each model predicts. It is found by the names of the columns; where several kinds have the same columns, choose one."
)


def kinds() -> dict[str | None, str]:
    """The kinds of distribution to choose from, each as `--family` names it, in words."""
    options = {"quantiles:tails=gaussian": "quantiles, Gaussian tails", "quantiles:tails=none": "quantiles, no tails"}
    words = {name: name.replace("_", " ") for name in families.names() if name != "mixture"}
    words |= {"gaussian": "Gaussian", "student_t": "Student t", "laplace": "Laplace", "poisson": "Poisson", "weibull": "Weibull"}
    words |= {name: words[name].replace("gaussian", "Gaussian") for name in words if name.endswith("_gaussian")}
    words |= {"mixture": "mixtures of Gaussians", "mixture:components=laplace": "mixtures of Laplace distributions", **options}
    return {None: FOUND, **dict(sorted(words.items(), key=lambda each: each[1].lower()))}


def scoring() -> ScoringChoice:
    """The choice of the measures and of the columns, with its widgets."""
    rule = st.selectbox("What a wrong prediction costs", list(RULES), format_func=RULES.get, help=RULE_HELP, key="rule")
    roles: dict[str, Any] = {"options": list(approximations), "format_func": lambda role: approximations.get(role).label}
    with st.expander("Which distributions are compared"):
        prediction = st.selectbox("Prediction", **roles, help=PREDICTION_HELP, key="prediction")
        truth = st.selectbox("Truth", **roles, help=TRUTH_HELP, key="truth")
    words = kinds()
    family = st.selectbox("Kind of distribution", list(words), format_func=words.get, help=FAMILY_HELP, key="family")
    with st.expander("Columns with other names"):
        texts = {
            f"{name}_columns": st.text_input(label, placeholder=f"{name}_{{i}}", help=COLUMNS_HELP, key=name).strip() or None
            for name, label in COLUMNS.items()
        }
    return ScoringChoice(rule, prediction, truth, "drop", **texts, family=family)


def comparison(digest: str, targets: tuple[str, ...], found: str | None) -> Comparison:
    """The choice of the target and its unit, with its widgets.

    Args:
        digest: of the file; another file begins with its own target.
        targets: the columns that may hold the target.
        found: the one that seems to.
    """
    nothing = "none"
    while nothing in targets:  # a column may be called none
        nothing = f"({nothing})"
    options = [nothing, *targets]
    index = 0 if found is None else options.index(found)
    target = st.selectbox("Target", options, index=index, format_func=show.name, help=TARGET_HELP, key=f"target of {digest}")
    unit = show.clean(st.text_input("Unit", placeholder=FOUND, help=UNIT_HELP, key="unit", max_chars=20))
    return Comparison(None if target == nothing else target, unit or None)
