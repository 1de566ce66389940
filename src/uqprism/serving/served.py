"""`Served`: what is deployed, one object in memory and one folder on the disk."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.arrays import Array, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, BadFileError, FileError, InvalidValueError, ShapeError
from uqprism.evaluation import decompose
from uqprism.measures import RuleLike, resolve_rule
from uqprism.support.optional import require
from uqprism.support.reading import read_json, reading
from uqprism.support.storage import make_folder, write_text
from uqprism.support.versions import __version__
from uqprism.tasks.conformal import ConformalIntervals, conformal_intervals
from uqprism.tasks.flagging import Flagged, flag
from uqprism.tasks.recalibration import Recalibration, recalibrate

if TYPE_CHECKING:
    from uqprism.training.estimators import EnsembleRegressor

FORMAT, VERSION = "uqprism.Served", 1
ABOUT, RECALIBRATION = "served.json", "recalibration.json"
COLUMNS = ("mean", "lower", "upper", "noise", "disagreement")
FLAG = "flag"
FEWEST = 40  # rows to calibrate on: half for each of the two steps


@dataclass(frozen=True)
class Served:
    """A fitted model with all that turns a table into answers.

    An answer has a row for each row of the table and the columns `mean`, `lower`, `upper`, `noise`, `disagreement`, and `flag`
    if there is a threshold.

    Attributes:
        model: a fitted `DeepEnsembleRegressor`, or another regressor of this package.
        recalibration: applied to each prediction.
        intervals: of `conformal_intervals` on (recalibrated) predictions, whose margins new intervals have; without, intervals
            are the central ones of the mixture.
        threshold: the total (noise and disagreement) from which on a row is flagged: a number, or what `up.flag` gave.
        rule: of noise, disagreement and threshold.
        coverage: of intervals without `intervals`.
    """

    model: EnsembleRegressor
    recalibration: Recalibration | None = None
    intervals: ConformalIntervals | None = None
    threshold: float | Flagged | None = None
    rule: RuleLike = "crps"
    coverage: float = 0.9

    def __post_init__(self) -> None:
        if not hasattr(self.model, "predict_ensemble") or not hasattr(self.model, "save"):
            raise ArgumentError(
                f"model must be a fitted regressor, such as DeepEnsembleRegressor, got {type(self.model).__name__}"
            )
        rule, threshold = resolve_rule(self.rule).name, self.threshold
        if isinstance(threshold, Flagged):
            if threshold.measure != (wanted := f"{rule}.total.members.members"):
                raise ArgumentError(f"threshold must be of {wanted}, the total of rule={rule!r}, got one of {threshold.measure}")
            threshold = float(threshold.shortest)
        if threshold is not None and math.isnan(threshold):
            raise InvalidValueError("threshold must be a number, got NaN")
        if not 0.0 < self.coverage < 1.0:
            raise InvalidValueError(f"coverage must lie between 0 and 1, such as 0.9, got {self.coverage}")
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "threshold", None if threshold is None else float(threshold))
        if self.intervals is not None:
            object.__setattr__(self, "intervals", ConformalIntervals.from_dict(self.intervals.to_dict()))
            object.__setattr__(self, "coverage", self.intervals.coverage)

    @classmethod
    def calibrated(
        cls,
        model: EnsembleRegressor,
        X: Any,
        y: Array,
        *,
        coverage: float = 0.9,
        share: float = 0.1,
        rule: RuleLike = "crps",
        seed: int = 0,
    ) -> Served:
        """With recalibration, intervals and threshold from rows that the model was not trained on.

        Half of the rows, drawn by the seed, is for the recalibration. The other half is for the intervals, whose guarantee needs
        rows that nothing was fitted to, and for the threshold, which flags a share of them.

        Args:
            model: a fitted regressor.
            X: its inputs for these rows.
            y: what happened.
            coverage: of the intervals.
            share: of the rows that are flagged.
            rule: of noise, disagreement and recalibration.
            seed: of the division.
        """
        ens, targets = model.predict_ensemble(X), np.asarray(to_numpy(y), dtype=np.float64).reshape(-1)
        if len(targets) != ens.n_points:
            raise ShapeError(f"y must have one number per row of X, {ens.n_points}, got {len(targets)}")
        if len(targets) < FEWEST:
            raise InvalidValueError(f"calibration needs {FEWEST} rows or more, got {len(targets)}")
        order = np.random.default_rng(seed).permutation(len(targets))
        first, second = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
        found = recalibrate(ens[first], targets[first], rule=rule, progress=False)
        rest = found.apply(ens[second])
        intervals = conformal_intervals(rest, targets[second], rest[:0], coverage)
        total = f"{resolve_rule(rule).name}.total.members.members"
        threshold = flag({total: to_numpy(decompose(rest, rule=rule).total)}, share, measure=total)
        return cls(model, found, intervals, threshold, rule)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of an answer."""
        return COLUMNS if self.threshold is None else (*COLUMNS, FLAG)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that a table must have, in their order; empty for a model that was trained on arrays."""
        columns = self.model.ensemble_.columns
        return () if columns is None else columns.given

    def ensemble(self, X: Any) -> EnsemblePrediction:
        """The (recalibrated) prediction that answers are made of; X may be a mapping of columns, and have further ones."""
        table = X
        if self.features and isinstance(X, Mapping):
            table = require("pandas", extra="pandas").DataFrame(X)
        if self.features and hasattr(table, "iloc") and set(self.features) <= set(table.columns):
            table = table[list(self.features)]  # services send more columns, or others first
        found = self.model.predict_ensemble(table)
        return found if self.recalibration is None else self.recalibration.apply(found)

    def predict(self, X: Any) -> Any:
        """A `pandas.DataFrame` with `columns`, and a row for each row of X, with its index if X is a data frame."""
        return self.answers(self.ensemble(X), X.index if hasattr(X, "iloc") else None)

    def answers(self, ensemble: EnsemblePrediction, index: Any = None) -> Any:
        """The same for what `ensemble` gave."""
        pandas = require("pandas", extra="pandas")
        split = decompose(ensemble, rule=self.rule)
        lower, upper = self._bounds(ensemble)
        found = {
            "mean": ensemble.matched.mean,
            "lower": lower,
            "upper": upper,
            "noise": split.bayes,
            "disagreement": split.excess,
        }
        frame = pandas.DataFrame({name: to_numpy(x) for name, x in found.items()}, index=index)
        if self.threshold is not None:
            frame[FLAG] = to_numpy(split.total) >= self.threshold
        return frame

    def _bounds(self, ens: EnsemblePrediction) -> tuple[Any, Any]:
        if self.intervals is not None:
            lower, upper = self.intervals.apply(ens)
            return lower, upper
        tail = 0.5 * (1.0 - self.coverage)
        return ens.mixture.quantile(tail), ens.mixture.quantile(1.0 - tail)

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder with the model's safetensors file and JSON files; `load` reads it. There is no pickle in it.

        Into a folder that is in use, the file that names the others is written last: a reader sees the old or the new whole.
        """
        place = Path(folder)
        make_folder(place)
        stem = place / "_writing.safetensors"
        self.model.save(stem)
        digest = _digest(stem)
        name = f"model-{digest[:16]}.safetensors"
        os.replace(stem, place / name)
        about: dict[str, Any] = {"format": FORMAT, "version": VERSION, "uqprism_version": __version__}
        about |= {"model": name, "sha256": digest, "rule": self.rule, "threshold": self.threshold, "coverage": self.coverage}
        about["recalibration"] = None if self.recalibration is None else json.loads(self.recalibration.to_json())
        about["intervals"] = None if self.intervals is None else self.intervals.to_dict()
        about |= {"features": list(self.features), "columns": list(self.columns)}
        write_text(place / ABOUT, json.dumps(about, indent=1) + "\n")
        for old in place.glob("model-*.safetensors"):
            if old.name != name:
                old.unlink(missing_ok=True)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: Any = "cpu") -> Served:
        """Read a folder that `save` wrote."""
        try:
            return cls._read(Path(folder), device)
        except FileError:  # another save may have come between two files; what is wrong for good is wrong again
            return cls._read(Path(folder), device)

    @classmethod
    def _read(cls, place: Path, device: Any) -> Served:
        from uqprism.training.estimators import load

        if not (place / ABOUT).exists():
            raise FileError(f"{place} holds no {ABOUT}: name the folder that Served.save wrote")
        about = read_json(place / ABOUT)
        with reading(place / ABOUT, "does not hold what Served.save writes"):
            if about["format"] != FORMAT or about["version"] != VERSION:
                raise InvalidValueError(
                    f"holds {about['format']} of version {about['version']}, not {FORMAT} of version {VERSION}"
                )
            path = place / Path(str(about["model"])).name
            intervals = None if about["intervals"] is None else ConformalIntervals.from_dict(about["intervals"])
            recalibration = None if about["recalibration"] is None else Recalibration.from_dict(about["recalibration"])
            more = {name: about[name] for name in ("threshold", "rule", "coverage")}
        if not path.exists() or _digest(path) != about["sha256"]:
            raise BadFileError(path, "is not the model that was saved: it is missing, or was changed")
        return cls(load(path, device=device), recalibration, intervals, **more)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
