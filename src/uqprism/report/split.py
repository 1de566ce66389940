"""The picture of the first screen: how uncertainty divides into noise and disagreement, on average and where it is largest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uqprism.plots.words import from_set
from uqprism.report.findings import Parts, ReportFindings
from uqprism.report.formatting import amounts, percent
from uqprism.report.sentences import amounts_of

MOST_SETS = 2  # of unfamiliar inputs: more would push the actions off the screen


@dataclass(frozen=True)
class Bar:
    """Rows whose uncertainty is divided.

    Attributes:
        rows: which rows.
        size: how uncertain they are on average, with its unit.
        noise: the noise in percent of the bar.
        words: the same for those who do not see it.
    """

    rows: str
    size: str
    noise: float
    words: str

    @classmethod
    def of(cls, rows: str, parts: Parts, size: str) -> Bar:
        """The bar of these parts."""
        noise, disagreement = parts.shares
        words = f"{rows}: {size} on average, {percent(noise)} noise and {percent(disagreement)} disagreement"
        return cls(rows, size, round(100.0 * noise, 2), words)


@dataclass(frozen=True)
class SplitPicture:
    """The picture: the parts on average, and bars where they are shares of a whole.

    Attributes:
        parts: their class on the page, their name, their size, and their share of the whole if they are shares.
        bars: all rows first.
    """

    parts: Sequence[tuple[str, str, str, str]]
    bars: Sequence[Bar]


def split_picture(findings: ReportFindings) -> SplitPicture:
    """The picture of these findings."""
    parts = findings.parts
    shares = [percent(share) for share in parts.shares] if parts.has_shares else ["", ""]
    labels = list(zip(("noise", "disagreement"), ("Noise", "Disagreement"), amounts_of(parts), shares, strict=True))
    labels = labels[:1] if parts.is_one_model else labels
    if not parts.has_shares:
        return SplitPicture(labels, [])
    several = {"average of all rows" if parts.n_rows > 1 else "the only row": parts}
    if findings.most_uncertain is not None:
        several["most uncertain tenth"] = findings.most_uncertain
    several |= {f"rows {from_set(name)}": each for name, each in list(findings.ood.items())[:MOST_SETS]}
    several = {rows: each for rows, each in several.items() if each.has_shares}
    sizes = amounts([each.shown(each.total) for each in several.values()], parts.shown_unit)
    return SplitPicture(labels, [Bar.of(*each, size) for each, size in zip(several.items(), sizes, strict=True)])
