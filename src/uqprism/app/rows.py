"""The rows to look at: which are flagged, and a table of them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from uqprism.app import show
from uqprism.app.inputs import PARTS
from uqprism.app.overview import Shown
from uqprism.app.problems import guarded
from uqprism.report.formatting import amount, count, percent, same_decimals
from uqprism.tasks.flagging import Flagged, flag

ROWS_SHOWN, COLUMNS_SHOWN, LONGEST_CELL = 500, 30, 120
BY = {"total": "Most uncertain", "noise": "Most noise", "disagreement": "Most disagreement"}
BY_HELP = "The most uncertain rows are likely errors. Where the models disagree, inputs are unfamiliar."
PERCENT_HELP = "That share of the rows, rounded up; rows that tie with the last of them belong to them, too."


def show_rows(shown: Shown) -> Flagged:
    """Draw the part of the page; the rows that are flagged."""
    scored, target = shown.scored, shown.comparison.target
    show.write("<h2>Rows to check first</h2>")
    first, second, third = st.columns([2, 2, 1], gap="medium", vertical_alignment="bottom")
    by = first.selectbox("Which rows", list(BY), format_func=BY.get, help=BY_HELP, key="by")
    share = second.slider("How many (%)", 1, 50, 10, help=PERCENT_HELP, key="percent")
    found = flag(scored.frame[by].to_numpy(), share / 100)
    whole = third.toggle("Show all rows", key="all rows")
    table = scored.frame.assign(flagged=found.rows)
    table = (table if whole else table[found.rows]).sort_values(by, ascending=False, kind="stable")  # ties as in the file
    compared = None if target is None else scored.shown_name(target)
    with guarded("The table cannot be shown."):
        _table(table.head(ROWS_SHOWN), shown, compared, whole=whole)
    more = f" The table shows {count(ROWS_SHOWN, 'row')}." if len(table) > ROWS_SHOWN else ""
    show.write('<p class="quiet">{text}</p>', text=flagged_sentence(found, by, shown) + more)
    return found


def flagged_sentence(found: Flagged, by: str, shown: Shown) -> str:
    """How many rows are flagged, from which value on, and why more than were asked for."""
    least = amount(shown.choice.shown(found.threshold), shown.overview.unit)
    text = f"{count(found.count, 'row')} of {len(found.rows):,} ({percent(found.share)}): those whose {by} is {least} or more."
    ties = " Rows that share their value are taken together, so fewer are not possible."
    return text + (ties if found.tied else "")


def _table(rows: Any, shown: Shown, target: str | None, *, whole: bool) -> None:
    """Draw a table with what identifies the rows first, then the parts and the target, then other columns."""
    overview, choice = shown.overview, shown.choice
    named = [overview.identifier] if overview.identifier else []
    first = [*named, *PARTS, *([target] if target is not None else []), *(["flagged"] if whole else [])]
    others = [name for name in rows.columns if name not in {*first, "flagged"}]
    columns = [*first, *others[:COLUMNS_SHOWN]]
    table = rows[columns].rename_axis("row").assign(**{part: choice.shown(rows[part]) for part in PARTS})
    kinds = {name: table[name].dtype.kind for name in columns}
    for name in (name for name, kind in kinds.items() if kind not in "biuf"):
        table[name] = [None if value is None else show.clean(value, LONGEST_CELL) for value in table[name]]
    texts: dict[Any, Any] = {name: _as_given for name, kind in kinds.items() if kind == "f"}
    texts |= {part: dict(zip(table[part], same_decimals(table[part].tolist()), strict=True)).get for part in PARTS}
    texts |= {target: _with_separators} if target is not None else {}
    unit = f", {overview.unit}" if overview.unit else ""
    config: dict[Any, Any] = {name: st.column_config.Column(show.name(name)) for name in columns}
    config |= {part: st.column_config.NumberColumn(f"{part}{unit}", help=PARTS[part]) for part in PARTS}
    # Texts to see, numbers to sort by.
    st.dataframe(table.style.format(texts, na_rep=""), column_config=config, height=320, width="stretch")


def _as_given(value: float) -> str:
    return f"{value:.15g}" if value.is_integer() else f"{value:.2f}" if abs(value) >= 1e4 else f"{value:.6g}"


def _with_separators(value: float) -> str:
    return f"{value:,.15g}" if value.is_integer() else f"{value:,.2f}" if abs(value) >= 1e4 else f"{value:.6g}"
