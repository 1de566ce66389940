"""`Audit`: promised against realised, by measure and size of the training set."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.measures import unknown_measure
from uqprism.measures.vocabulary import measure_in_words, rule_words
from uqprism.support.numbers import number
from uqprism.support.optional import require
from uqprism.support.reading import loading
from uqprism.support.storage import check_ending, write_npz, write_text
from uqprism.tasks.audit.promise import Correction, correction, doubled, removed, widened

FORMAT = "uqprism.Audit"
ARRAYS = ("excess", "noise", "penalty", "within", "between")
TAIL = 0.025
RISING = "But that share was still rising with the rows; the factor expects the rise to end."


@dataclass(frozen=True, eq=False)
class Promise:
    """What the disagreement of one measure promised, and what happened; arrays are by size of the training set.

    Attributes:
        measure: the excess risk.
        sizes: rows of a training set; each is twice the one before.
        excess: what the models said could go.
        noise: what they said would stay.
        penalty: what their predictions cost on rows that they had not seen.
        procedural: the excess between two members of one training set: seeds, and whatever else the fit draws.
        data: what other rows add to it; NaN where there is one training set only.
        replicates: `excess`, `noise` and `penalty` in resamples, (3, resamples, sizes), or None.
    """

    measure: str
    sizes: tuple[int, ...]
    excess: np.ndarray
    noise: np.ndarray
    penalty: np.ndarray
    procedural: np.ndarray
    data: np.ndarray
    replicates: np.ndarray | None = None

    @cached_property
    def _found(self) -> tuple[Correction, tuple[np.ndarray, np.ndarray, np.ndarray] | None]:
        drawn = None if self.replicates is None else (self.replicates[0], self.replicates[2])
        return correction(self.excess, self.penalty, drawn)

    @property
    def correction(self) -> Correction:
        """The correction of the promise."""
        return self._found[0]

    @property
    def factor(self) -> float:
        """What twice the rows remove from the penalty, as a share of the excess."""
        return self.correction.factor

    def after(self, growth: float = 2.0) -> tuple[float, float, float]:
        """What so many times the rows remove, as a share of the excess, with the ends of the 95 % interval.

        Up to the largest size this was measured; beyond it is expected, if learning goes on as between the last sizes.
        """
        if not growth >= 1.0:
            raise InvalidValueError(f"growth must be at least 1, such as 2 for twice the rows, got {growth}")
        value, drawn = self.correction.after(growth), self._found[1]
        if drawn is None:
            return value, np.nan, np.nan
        low, high = np.quantile(removed(*drawn, growth), [TAIL, 1.0 - TAIL])
        return value, *widened(value, (float(low), float(high)))

    @property
    def settled(self) -> bool:
        """Whether the share that doublings remove has stopped rising, as far as chance allows to tell.

        While it rises, models still find structure that they did not know of, and what they will find is not in any excess.
        The factor expects the rise to end.
        """
        shares = doubled(self.excess, self.penalty)
        rise = shares[-1] - shares[0]
        if self.replicates is None:
            return bool(rise <= 0.0)
        drawn = doubled(self.replicates[0], self.replicates[2])
        return bool(rise <= np.std(drawn[:, -1] - drawn[:, 0], ddof=1))

    def expected(self, growth: float = 2.0) -> tuple[float, float, float]:
        """The penalty to expect of so many times the rows of the largest size, with the ends of its 95 % interval."""
        value, low, high = self.after(growth)
        last, excess = float(self.penalty[-1]), float(self.excess[-1])
        return last - value * excess, last - high * excess, last - low * excess

    def went(self, growth: int = 2) -> np.ndarray:
        """What this many times the rows removed, as a share of the excess before, by size; NaN beyond the largest size."""
        steps = int(growth).bit_length() - 1
        if growth != 1 << steps or not steps:
            raise InvalidValueError(f"growth must be 2, 4, 8, ..., got {growth}")
        found = np.full(len(self.sizes), np.nan)
        if steps < len(self.sizes):
            with np.errstate(divide="ignore", invalid="ignore"):
                found[:-steps] = (self.penalty[:-steps] - self.penalty[steps:]) / self.excess[:-steps]
        return found

    @property
    def promised(self) -> np.ndarray:
        """The excess as a share of what the models expected to pay, by size."""
        return self.excess / (self.excess + self.noise)

    @property
    def bias(self) -> np.ndarray:
        """What the predictions cost beyond what the models expected, by size: neither noise nor disagreement says so."""
        return self.penalty - self.excess - self.noise

    @property
    def noise_gone(self) -> float:
        """The share of what was called noise at the smallest size that is gone at the largest."""
        return float(1.0 - self.noise[-1] / self.noise[0])

    def rows(self) -> list[dict[str, Any]]:
        """One row per size."""
        columns = {
            "penalty": self.penalty,
            "noise": self.noise,
            "excess": self.excess,
            "bias": self.bias,
            "went_with_2x": self.went(2),
            "went_with_4x": self.went(4),
            "procedural": self.procedural,
            "data": self.data,
        }
        return [
            {"measure": self.measure, "rows": size, **{name: float(column[i]) for name, column in columns.items()}}
            for i, size in enumerate(self.sizes)
        ]

    def sentence(self) -> str:
        """What was promised, what happened, and the factor."""
        rule = rule_words(self.measure.split(".", maxsplit=1)[0]).name
        at = max(0, len(self.sizes) - 3)
        before, excess = float(self.penalty[at]), float(self.excess[at])
        what = (
            f"At {self.sizes[at]:,} rows the models said that {number(excess)} of a penalty ({rule}) of {number(before)} could go"
        )
        gone = [
            f"with {self.sizes[later]:,} rows {number(before - float(self.penalty[later]))}{' went' if later == at + 1 else ''}"
            for later in range(at + 1, len(self.sizes))
        ]
        twice, four = (_share(*self.after(growth)) for growth in (2.0, 4.0))
        advice = f"Multiply such a promise by {twice} for twice the rows, and by {four} for four times."
        return f"{what}; {', '.join(gone)}. {advice}{'' if self.settled else f' {RISING}'}"


def _share(value: float, low: float, high: float) -> str:
    text = f"{value:.2f}"
    return text if np.isnan(low) else f"{text} ({low:.2f} to {high:.2f})"


@dataclass(frozen=True, eq=False)
class Audit(Mapping[str, Promise]):
    """The result of `uqprism.audit`: promised against realised, `result[measure]`.

    `str(result)` is the sentence about the first measure.

    Attributes:
        measures: the excess risks, the first of which sentences and figures are about.
        sizes: rows of a training set; each is twice the one before.
        excess: (measures, sizes), as the following.
        noise: the Bayes risk beside it.
        penalty: what the predictions cost.
        within: the excess between two members of one training set.
        between: that between members of two training sets without a common row; NaN for a single training set.
        replicates: excess, noise and penalty in resamples, (3, resamples, measures, sizes), or None.
        settings: how the audit was made, as plain data.
    """

    measures: tuple[str, ...]
    sizes: tuple[int, ...]
    excess: np.ndarray
    noise: np.ndarray
    penalty: np.ndarray
    within: np.ndarray
    between: np.ndarray
    replicates: np.ndarray | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = len(self.measures), len(self.sizes)
        for name in ARRAYS:
            if getattr(self, name).shape != shape:
                raise InvalidValueError(f"{name} must be (measures, sizes) {shape}, got {getattr(self, name).shape}")

    def __getitem__(self, measure: object) -> Promise:
        if str(measure) not in self.measures:
            raise unknown_measure("in this audit", measure, self.measures)
        at = self.measures.index(str(measure))
        return Promise(
            measure=self.measures[at],
            sizes=self.sizes,
            excess=self.excess[at],
            noise=self.noise[at],
            penalty=self.penalty[at],
            procedural=self.within[at],
            data=self.between[at] - self.within[at],
            replicates=None if self.replicates is None else self.replicates[:, :, at],
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.measures)

    def __len__(self) -> int:
        return len(self.measures)

    @property
    def first(self) -> Promise:
        """The promise of the first measure."""
        return self[self.measures[0]]

    def rows(self) -> list[dict[str, Any]]:
        """One row per measure and size, with every number."""
        return [row for promise in self.values() for row in promise.rows()]

    def summary(self) -> list[dict[str, Any]]:
        """One row per measure: what was promised at the largest size, and the factor for twice and four times the rows."""
        found = []
        for name, promise in self.items():
            (twice, low, high), (four, _, _) = promise.after(2.0), promise.after(4.0)
            found.append(
                {
                    "measure": name,
                    "promised": float(promise.promised[-1]),
                    "factor_2x": twice,
                    "low": low,
                    "high": high,
                    "factor_4x": four,
                    "noise_gone": promise.noise_gone,
                    "bias": float(promise.bias[-1]),
                    "settled": promise.settled,
                    "procedural": float(promise.procedural[-2] / (promise.procedural + promise.data)[-2]),
                }
            )
        return found

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row per measure and size."""
        return require("pandas", extra="pandas").DataFrame(self.rows()).set_index(["measure", "rows"])

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """All rows, the factors and the settings as JSON text; also written to a file if a path is given."""
        about = {"sentence": str(self), "settings": dict(self.settings), "factors": self.summary(), "sizes": self.rows()}
        text = json.dumps(_finite(about), indent=2)
        if path is not None:
            check_ending(path, [".json"])
            write_text(path, text + "\n")
        return text

    def plot(self, measure: object = None, ax: Any = None) -> Any:
        """Draw penalty, promise and correction by size, on these axes or on a new figure; returns the axes."""
        from uqprism import plots

        return plots.promise(self.first if measure is None else self[measure], ax=ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a .npz file, atomically; read it back with `load`."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        if self.replicates is not None:
            arrays["replicates"] = self.replicates
        write_npz(path, FORMAT, {"measures": self.measures, "sizes": self.sizes, "settings": dict(self.settings)}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Audit:
        """Read what `save` wrote."""
        with loading(path, FORMAT) as (header, arrays):
            known: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
            return cls(
                measures=tuple(map(str, header["measures"])),
                sizes=tuple(map(int, header["sizes"])),
                **known,
                replicates=arrays.get("replicates"),
                settings=dict(header["settings"]),
            )

    def __str__(self) -> str:
        words = measure_in_words(self.measures[0]) or self.measures[0]
        return f"{words[0].upper()}{words[1:]}. {self.first.sentence()}"

    def __repr__(self) -> str:
        return f"<Audit: {len(self)} measures, {self.sizes[0]:,} to {self.sizes[-1]:,} rows>"


def _finite(value: Any) -> Any:
    """The value with None in place of NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def check(given: Any) -> Audit:
    """The audit, or that of a file."""
    if isinstance(given, str | os.PathLike):
        return Audit.load(given)
    if not isinstance(given, Audit):
        raise ArgumentError(f"audit must be what up.audit returns or a file of it, got {type(given).__name__}")
    return given
