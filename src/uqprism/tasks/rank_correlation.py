"""Rank correlation: which measures put the points in the same order."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.measures import Measure, unknown_measure
from uqprism.support.optional import require
from uqprism.support.reading import loading
from uqprism.support.storage import check_ending, write_npz, write_text
from uqprism.tasks.kendall import tau_matrix
from uqprism.tasks.scores import as_scores
from uqprism.tasks.task import ReportSection, Task, recommend, register

FORMAT = "uqprism.RankCorrelation"
SAME = 0.999  # one pair of points in 2,000 may be the other way round, as rounding does to measures that are equal on paper
POINTS_COMPARED = 2_000  # enough to tell whether two measures rank alike
SHOWN = 5


@dataclass(frozen=True, eq=False)
class RankCorrelation:
    """Kendall's tau-b between measures: 1 for the same order of the points, -1 for the opposite, near 0 for unrelated ones.

    `correlation[name, other]` is one value. A measure that is constant has no order: NaN in its row, column and diagonal.

    Attributes:
        names: the measures.
        matrix: tau-b, (measures, measures), symmetric.
    """

    names: tuple[str, ...]
    matrix: np.ndarray

    def __post_init__(self) -> None:
        count = len(self.names)
        if self.matrix.shape != (count, count):
            raise ShapeError(f"matrix must have a row and a column for each of {count} names, got {self.matrix.shape}")
        if len(set(self.names)) < count:
            raise InvalidValueError("names must be distinct; rename or drop repeated measures")

    def __getitem__(self, pair: tuple[str | Measure, str | Measure]) -> float:
        if len(pair) != 2:
            raise ArgumentError(f"correlation[name, other] takes two measures, got {pair!r}; select(names) takes any number")
        row, column = self._places(pair)
        return float(self.matrix[row, column])

    def select(self, names: Iterable[str | Measure]) -> RankCorrelation:
        """The correlations between these measures, in this order."""
        places = self._places([names] if isinstance(names, str) else names)
        return RankCorrelation(tuple(self.names[i] for i in places), self.matrix[np.ix_(places, places)])

    @cached_property
    def _at(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def _places(self, names: Iterable[str | Measure]) -> list[int]:
        wanted = [str(name) for name in names]
        for name in wanted:
            if name not in self._at:
                raise unknown_measure("in this correlation", name, self.names)
        return [self._at[name] for name in wanted]

    def order(self) -> tuple[str, ...]:
        """The measures, similar ones next to each other and constant ones last, in the order of the heat map.

        They are the leaves of an average-linkage clustering by 1 - tau, turned so that neighbours are as close as they can be.
        """
        ranked, constant = self._ranked()
        if len(ranked) > 2:
            from scipy.cluster.hierarchy import leaves_list, linkage

            # The optimal order of leaves: Bar-Joseph, Gifford and Jaakkola 2001.
            tree = linkage(self.select(ranked)._distances(), method="average", optimal_ordering=True)
            ranked = tuple(ranked[i] for i in leaves_list(tree))
        return ranked + constant

    def same_rankings(self, threshold: float = SAME) -> list[tuple[str, ...]]:
        """Groups of measures that order the points alike: within a group every pair has tau at or above the threshold.

        Complete linkage. Only groups of two or more, the names in the order of the table, the groups by their first name.
        """
        if not -1.0 < threshold <= 1.0:
            raise InvalidValueError(f"threshold must be a correlation above -1 and up to 1, got {threshold}; 0.999 is usual")
        return [group for group in self._groups(threshold) if len(group) > 1]

    def distinct(self, threshold: float = SAME) -> list[str]:
        """One measure for each ranking there is, the first in the table."""
        return [group[0] for group in self._groups(threshold)]

    def _groups(self, threshold: float) -> list[tuple[str, ...]]:
        """All groups, those of one measure included; constant measures are left out."""
        ranked, _ = self._ranked()
        if len(ranked) < 2:
            return [(name,) for name in ranked]
        from scipy.cluster.hierarchy import fcluster, linkage

        # Single linkage would join the ends of a chain, which differ.
        tree = linkage(self.select(ranked)._distances(), method="complete")
        groups: dict[int, list[str]] = {}
        for name, label in zip(ranked, fcluster(tree, 1.0 - threshold, criterion="distance"), strict=True):
            groups.setdefault(int(label), []).append(name)
        return [tuple(group) for group in groups.values()]

    def _ranked(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The measures that order the points, and the constant ones, which do not."""
        constant = np.isnan(np.diagonal(self.matrix))
        names = np.array(self.names, dtype=object)
        return tuple(names[~constant]), tuple(names[constant])

    def _distances(self) -> np.ndarray:
        """1 - tau of all pairs, as `scipy.cluster` takes them."""
        return 1.0 - self.matrix[np.triu_indices(len(self.names), k=1)]

    @classmethod
    def average(cls, correlations: Iterable[RankCorrelation]) -> RankCorrelation:
        """The mean over data sets, as the paper's figure shows; NaN where a measure was constant on any of them."""
        found = list(correlations)
        if not found:
            raise ArgumentError("correlations must hold at least one to average")
        names = found[0].names
        for each in found:
            if set(each.names) != set(names):
                odd = sorted(set(each.names) ^ set(names))
                raise ArgumentError(f"correlations must be of the same measures, {odd[0]!r} is not in all; select(names) first")
        return cls(names, np.mean([each.select(names).matrix for each in found], axis=0))

    def rows(self) -> list[dict[str, Any]]:
        """The matrix, a row per measure."""
        rows = zip(self.names, self.matrix.tolist(), strict=True)
        return [{"measure": name, **dict(zip(self.names, row, strict=True))} for name, row in rows]

    def summary(self) -> list[dict[str, Any]]:
        """The different rankings there are, a row each, the most shared first: a measure, how many rank alike, and tau.

        Tau is that with the measure which `recommend` names for selective prediction, or with the first one where it is missing.
        """
        groups = sorted(self._groups(SAME), key=len, reverse=True)
        if not groups:
            return [{"measure": name, "rank_alike": 0, "tau": float("nan")} for name in self.names]
        advised = recommend("selective_prediction").measure
        reference = advised if advised in self._ranked()[0] else groups[0][0]
        first = [reference if reference in group else group[0] for group in groups]
        return [
            {"measure": name, "rank_alike": len(group), f"tau with {reference}": self[name, reference]}
            for name, group in zip(first, groups, strict=True)
        ]

    def to_pandas(self) -> Any:
        """A square `pandas.DataFrame` with the measures on both axes."""
        return require("pandas", extra="pandas").DataFrame(self.matrix, index=list(self.names), columns=list(self.names))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Names, matrix (null where there is no order) and groups of the same ranking as JSON text; also into a file."""
        rows = [[None if np.isnan(tau) else tau for tau in row] for row in self.matrix.tolist()]  # JSON has no NaN
        about = {"task": "rank_correlation", "metric": "tau_b", "same_rankings": self.same_rankings()}
        text = json.dumps({**about, "names": self.names, "matrix": rows})
        if path is not None:
            check_ending(path, [".json"])
            write_text(path, text + "\n")
        return text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file, whole or not at all; read it back with `load`."""
        write_npz(path, FORMAT, {"names": self.names}, {"matrix": self.matrix})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RankCorrelation:
        """Read what `save` wrote."""
        with loading(path, FORMAT) as (header, arrays):
            return cls(tuple(map(str, header["names"])), arrays["matrix"].astype(np.float64, copy=False))

    def plot(self, ax: Any = None) -> Any:
        """Draw a heat map, similar measures next to each other, on these axes or on a new figure; returns the axes."""
        from uqprism import plots

        return plots.rank_correlation(self, ax=ax)

    def __str__(self) -> str:
        groups, (_, constant) = self._groups(SAME), self._ranked()
        lines = [
            f"rank correlation: Kendall's tau-b of {len(self.names)} measures, {len(groups)} distinct rankings "
            f"(tau >= {SAME} counts as the same){f', {len(constant)} constant' if constant else ''}"
        ]
        shared = sorted((group for group in groups if len(group) > 1), key=len, reverse=True)
        for group in shared[:SHOWN]:
            more = f" and {len(group) - 3} more" if len(group) > 3 else ""
            lines.append(f"  the same: {', '.join(group[:3])}{more}")
        return "\n".join([*lines, f"  ... and {len(shared) - SHOWN} more groups"] if len(shared) > SHOWN else lines)

    def __repr__(self) -> str:
        return f"<RankCorrelation: tau-b of {len(self.names)} measures>"


def rank_correlation(table: Any) -> RankCorrelation:
    """Compare how measures rank the points: Kendall's tau-b between all pairs of measures, exact, also with ties.

    Args:
        table: a `MeasureTable`, a mapping of names to arrays, or a data frame, without NaN. It takes some seconds for
            thousands of points and all 144 measures; the time grows as n log n with the points and with the square of the
            measures.
    """
    scores = as_scores(table)
    return RankCorrelation(scores.names, tau_matrix(scores.columns.values()))


def rank_alike(table: Any, *, same: float = SAME, seed: int = 0) -> list[tuple[str, ...]]:
    """All measures in groups that rank the points alike: within a group every pair has a tau-b of `same` or more.

    It compares up to 2,000 points, drawn at random. Constant measures, which have no order, are one group. Groups and the names
    within them are in the order of the table.

    Args:
        table: as in `rank_correlation`.
        same: from which tau-b on two measures rank alike.
        seed: of the draw of points.
    """
    scores = as_scores(table)
    rows: Any = slice(None)
    if scores.n_points > POINTS_COMPARED:
        rows = np.random.default_rng(seed).choice(scores.n_points, POINTS_COMPARED, replace=False)
    correlation = rank_correlation({name: column[rows] for name, column in scores.columns.items()})
    constant = correlation._ranked()[1]
    groups = correlation._groups(same) + ([constant] if constant else [])
    return sorted(groups, key=lambda group: scores.names.index(group[0]))


register(
    Task(
        name="rank_correlation",
        command="correlation",
        function=rank_correlation,
        title="Rank correlation",
        summary="Which measures rank the points alike?",
        reads={"table": "table"},
        section=ReportSection(
            "Which measures tell the same story",
            "Uncertainty can be measured in many ways; what counts for a decision is the order in which a measure puts the "
            "rows. Kendall's tau compares two orders: 1 if they are the same, \u22121 if they are opposite, near 0 if they are "
            "unrelated. Measures in one dark blue block are interchangeable.",
            short="Measures alike",
        ),
        page="rank_correlation.md",
        place=90,
    )
)
