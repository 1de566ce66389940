"""The tab of the posterior explorer."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pandas as pd
import streamlit as st

from uqprism.app import charts, posterior, show
from uqprism.app.inputs import RULES, ScoringChoice
from uqprism.app.posterior import SHIFTS, Change, Shift
from uqprism.app.problems import guarded
from uqprism.ensemble.approximations import approximations
from uqprism.report.formatting import number

ABOUT = (
    "The range of models that the data leave open is called a **posterior**. Here is one, for one prediction: means lie evenly "
    "between -1 and 1, variances between 1 and 2. Move or spread them, and see how every measure changes."
)
SLIDERS = {
    "mean_shift": ("Move all means by", -3.0, 3.0, "Every model predicts so much more. No measure should change."),
    "mean_spread": ("Spread the means, times", 0.0, 3.0, "1 as they were; 2 twice as far apart; 0 all models agree on the mean."),
    "variance_shift": ("Move all variances by", -0.4, 3.0, "Every model expects more noise."),
    "variance_spread": ("Spread the variances, times", 0.0, 2.0, "How much the models disagree about the noise."),
}
PART_OF = {"total": "total", "bayes": "noise", "excess": "disagreement"}
SMALL = 0.01  # smaller changes count as none, as in the paper


@st.fragment
def show_tab() -> None:
    """Draw the tab; its sliders redraw nothing else."""
    with guarded():
        _tab()


def _tab() -> None:
    st.markdown(ABOUT)
    st.markdown("Changes of the paper's first figure:")
    with st.container(horizontal=True):
        for name, shift in SHIFTS.items():
            st.button(name, on_click=_set, args=(shift,), key=f"shift {name}")
    left, right = st.columns([2, 3])
    with left:
        shift = _sliders()
    with right:
        st.altair_chart(charts.densities(posterior.densities(shift)), width="stretch")
        mean, variance = (f"from {number(low)} to {number(high)}" for low, high in astuple(shift.posterior()))
        show.write("<p>Means now {mean}, variances {variance}.</p>", mean=mean, variance=variance)
        st.caption("Thin: what 16 of the models predict. The higher a curve, the more likely the target lies there.")
    first, second = st.columns(2)
    roles = {"options": list(approximations), "format_func": lambda role: approximations.get(role).label}
    prediction = first.selectbox("Prediction", **roles, key="explorer prediction")
    truth = second.selectbox("Truth", **roles, key="explorer truth")
    _show_changes(_changes(shift), prediction, truth)


def _set(shift: Shift) -> None:
    for name in SLIDERS:
        st.session_state[name] = getattr(shift, name)


def _sliders() -> Shift:
    for name in SLIDERS:  # Streamlit warns of a slider with a value of its own that a button has set
        st.session_state.setdefault(name, getattr(Shift(), name))
    values = {
        name: st.slider(label, low, high, step=0.1, help=text, key=name) for name, (label, low, high, text) in SLIDERS.items()
    }
    return Shift(**values)


@st.cache_resource(max_entries=500, show_spinner=False)
def _changes(shift: Shift) -> dict[str, Change]:
    return posterior.changes(shift)


def _show_changes(changes: dict[str, Change], prediction: str, truth: str) -> None:
    rows = []
    for column, rule in zip(st.columns(4), RULES, strict=True):
        measures = ScoringChoice(rule, prediction, truth).measures
        found = {part: changes[name] for part, name in measures.items()}
        column.altair_chart(charts.bars(found, RULES[rule]), width="stretch")
        rows += [_row(part, measures[part], change) for part, change in found.items()]
    st.caption("Bars: now; grey strokes: before the change. Each rule has units of its own, so compare within a rule.")
    _table(rows, height="content")
    with st.expander("All 144 measures"):
        _table([_row(PART_OF[name.split(".")[1]], name, change) for name, change in changes.items()])


def _row(part: str, name: str, change: Change) -> dict[str, Any]:
    return {"measure": name, "change": _change_text(change), "part": part, "before": change.before, "now": change.after}


def _change_text(change: Change) -> str:
    if abs(change.after - change.before) < 1e-12:
        return "stays"
    if not change.before:
        return "▲ from nothing"
    if abs(change.relative) < SMALL:
        return "less than 1 %"
    return f"{'▲' if change.relative > 0 else '▼'} {change.relative:+.0%}"


def _table(rows: list[dict[str, Any]], height: Any = 380) -> None:
    frame = pd.DataFrame(rows)
    st.dataframe(frame.style.format(number, subset=["before", "now"]), hide_index=True, width="stretch", height=height)
