"""Regressors with the interface of scikit-learn. They need the extras `deep` and `sklearn`."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.evidential import EvidentialPrediction
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.evaluation import evaluate
from uqprism.measures import ApproximationLike, Measure, RuleLike
from uqprism.support.optional import require
from uqprism.support.reading import reading
from uqprism.training import networks
from uqprism.training.checkpoints import read_tensors, write_tensors
from uqprism.training.columns import is_frame, names_of
from uqprism.training.deep_ensemble import KIND, DeepEnsemble
from uqprism.training.exporting import Exported, export_networks
from uqprism.training.exporting.program import Precision, Wanted
from uqprism.training.fit import train, train_many
from uqprism.training.given import check_continued, check_validation, is_text, refuse_text, weighted
from uqprism.training.heads import Head
from uqprism.training.heads.evidential import Evidential
from uqprism.training.networks import Factory, resolve
from uqprism.training.networks.tabular import TabularMLP
from uqprism.training.options import OPTIONS, TrainingOptions
from uqprism.training.summaries import crps_skill, quantiles
from uqprism.training.techniques import DROPOUT

torch = require("torch", extra="deep")
require("sklearn", extra="sklearn")

from sklearn.base import BaseEstimator, RegressorMixin, clone  # noqa: E402  `require` names the extra if it is missing
from sklearn.utils import check_random_state  # noqa: E402
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data  # noqa: E402

PLAIN = (int, float, str, bool, tuple, list, type(None))  # settings that a file keeps
MEASURE = "crps.excess.members.members"
DEFAULTS, NETWORK, WEIGHTED = TrainingOptions(), TabularMLP(), Evidential()


@dataclass(eq=False, repr=False)  # for __init__, which only sets attributes, as scikit-learn requires
class EnsembleRegressor(RegressorMixin, BaseEstimator):
    """The base class of the regressors, whose prediction is an ensemble of distributions.

    Inputs may be arrays, pandas or Polars data frames, Arrow tables, images (rows, channels, height, width) or PyTorch tensors on
    any device. Columns of tables may be numbers, booleans or categories, with missing values; see `columns.Column` for what
    becomes of them. Parameters that are not listed here are described in `TrainingOptions`.

    Attributes:
        n_members: members of the prediction.
        hidden: see `TabularMLP`.
        activation: see `TabularMLP`.
        embedding: see `TabularMLP`.
        bins: see `TabularMLP`.
        network: used in place of a `TabularMLP` with `hidden`, `activation`, `embedding` and `bins`; see `TrainingOptions`.
        random_state: an integer makes the result reproducible.
        warm_start: whether a further `fit` goes on with the networks of the last one, their columns and standardisation.
        ensemble_: the fitted `DeepEnsemble`, with its `history`, `save` and `load`.
    """

    n_members: int = DEFAULTS.n_members
    _: KW_ONLY
    hidden: tuple[int, ...] = NETWORK.hidden
    activation: str = NETWORK.activation
    embedding: str | None = NETWORK.embedding
    bins: str = NETWORK.bins
    network: str | Factory | None = None
    target_transform: str | None = DEFAULTS.target_transform
    max_epochs: int | str = DEFAULTS.max_epochs
    batch_size: int | str = DEFAULTS.batch_size
    learning_rate: float = DEFAULTS.learning_rate
    schedule: str = DEFAULTS.schedule
    weight_decay: float = DEFAULTS.weight_decay
    patience: int | str | None = DEFAULTS.patience
    stopping: str = DEFAULTS.stopping
    refit: bool = DEFAULTS.refit
    validation_fraction: float = DEFAULTS.validation_fraction
    max_gradient: float | None = DEFAULTS.max_gradient
    device: Any = DEFAULTS.device
    dtype: str = DEFAULTS.dtype
    checkpoint: str | None = None
    checkpoint_every: int = DEFAULTS.checkpoint_every
    progress: bool | None = DEFAULTS.progress
    random_state: Any = None
    warm_start: bool = False

    @abstractmethod
    def _training(self) -> tuple[str | Factory, str | Head, int]:
        """The network, the head, and how many networks to train."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: tuple[Any, Any] | None = None) -> Self:
        """Train on inputs (rows, ...) and one target per row.

        Args:
            X: an array, a tensor, or a data frame or Arrow table whose categories, booleans and missing values become numbers.
            y: one number per row.
            sample_weight: of each row in the loss; rows of weight zero are left out.
            validation: (X, y) for early stopping, in place of the rows that each member keeps.
        """
        check_validation(validation)
        start = self.ensemble_ if self.warm_start and hasattr(self, "ensemble_") else None
        return self._train(*self._checked_pair(X, y, reset=start is None), sample_weight, validation, start)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train one more epoch on these rows, none of which are kept for validation.

        The first call decides about columns and standardisation, so that its rows should be like those that follow. The
        optimiser starts anew with each call.
        """
        start = getattr(self, "ensemble_", None)
        inputs, targets = self._checked_pair(X, y, reset=start is None)
        once = {"max_epochs": 1, "patience": None, "validation_fraction": 0.0, "refit": False, "progress": False}
        return self._train(inputs, targets, sample_weight, None, start, **once)

    def many(self, X: Any, y: Any, rows: Any, seeds: Sequence[int]) -> list[Self]:
        """A fitted copy for each training set `rows` (experiments, n), all trained in one stack.

        Each equals, up to rounding, what `fit` gives on these rows with this `random_state`; a `random_state` that was set is
        that of all of them.
        """
        models: list[Self] = [clone(self) for _ in seeds]
        for model, seed in zip(models, seeds, strict=True):
            inputs, targets = model._checked_pair(X, y)
            model.random_state = int(seed) if self.random_state is None else self.random_state
        trained = train_many(inputs, targets, rows, **self._settings(), seed=[model._seed() for model in models])
        return [model._fitted_with(ensemble) for model, ensemble in zip(models, trained, strict=True)]

    def _train(
        self, inputs: Any, targets: Any, weights: Any, validation: Any, start: DeepEnsemble | None, **settings: Any
    ) -> Self:
        given = {**self._settings(), "validation": validation, "seed": self._seed()}
        if start is not None:
            check_continued(start, given)
        inputs, targets, given["weights"] = weighted(inputs, targets, weights)
        return self._fitted_with(train(inputs, targets, start=start, **{**given, **settings}))

    def _settings(self) -> dict[str, Any]:
        """The options of training, without the seed."""
        network, head, n_networks = self._training()
        if self.checkpoint is not None and self.random_state is None:
            raise ArgumentError("checkpoint needs random_state: without it every run has other seeds and none can be continued")
        given = {name: getattr(self, name) for name in OPTIONS if hasattr(self, name)}
        return given | {"network": network, "head": head, "n_members": n_networks}

    def _seed(self) -> int:
        # A generator as `random_state` moves on, so that a second fit differs, as scikit-learn expects.
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _fitted_with(self, ensemble: DeepEnsemble) -> Self:
        """This estimator with what was trained."""
        self.ensemble_: DeepEnsemble = ensemble
        self.n_iter_ = max(len(curve.training) for curve in self.ensemble_.history.curves)
        return self

    def predict_ensemble(self, X: Any) -> EnsemblePrediction:
        """The predictive distributions, (members, rows)."""
        return self._fitted().predict_ensemble(self._checked(X))

    def predict_quantiles(self, X: Any, levels: Sequence[float] = (0.05, 0.5, 0.95)) -> Any:
        """The values that the target stays below with these probabilities, by the mixture of all members, (rows, levels)."""
        return quantiles(self.predict_ensemble(X), levels)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Any, Any]:
        """The ends of central intervals that hold the target with this probability, according to the mixture of all members."""
        if not 0.0 < coverage < 1.0:
            raise ArgumentError(f"coverage must lie between 0 and 1, got {coverage!r}")
        ends = self.predict_quantiles(X, (0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage))
        return ends[..., 0], ends[..., 1]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The CRPS skill: the share of the CRPS of the targets' own distribution that the prediction saves.

        It is 1 for a perfect prediction, 0 for one no better than the distribution of `y` without X, and negative for a worse
        one. `sklearn.metrics.r2_score` of `predict(X)`, or `scoring="r2"` in searches, judge the mean alone.
        """
        return crps_skill(self.predict_ensemble(X), y, sample_weight)

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file with a JSON header; `load` reads the estimator, `DeepEnsemble.load` the networks alone."""
        header, tensors = self._fitted().stored()
        settings = {name: x for name, x in self.get_params().items() if isinstance(x, PLAIN) and name != "network"}
        names, known = getattr(self, "feature_names_in_", None), None if self.network is None else networks.resolve(self.network)
        about = {
            "kind": type(self).__name__,
            "settings": settings,
            "network": None if known is None else networks.to_dict(known),
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else list(names),
        }
        write_tensors(path, KIND, header | {"estimator": about}, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, network: Factory | None = None, device: Any = "cpu") -> Self:
        """Read a file that `save` wrote; pass `network=` again if the networks were built by a function of your own."""
        header, _ = read_tensors(path, KIND)
        if (about := header.get("estimator")) is None:
            raise ArgumentError(f"{os.fspath(path)} holds networks alone: read it with uqprism.DeepEnsemble.load")
        if about.get("kind") != cls.__name__:
            raise ArgumentError(f"{os.fspath(path)} holds a {about.get('kind')}: read it with {about.get('kind')}.load")
        ensemble = DeepEnsemble.load(path, network=network, device=device)
        with reading(path, "does not hold what save of an estimator writes"):
            settings: Any = {name: tuple(x) if isinstance(x, list) else x for name, x in about["settings"].items()}
            settings |= {"head": ensemble.head} if "head" in cls().get_params() and "head" not in settings else {}
            known = network or (None if about["network"] is None else networks.from_dict(about["network"]))
            model = cls(**{**settings, "network": known})
            model.n_features_in_ = int(about["n_features_in"])
            if about["feature_names_in"] is not None:
                model.feature_names_in_ = np.asarray(about["feature_names_in"], dtype=object)
        model.ensemble_ = ensemble
        model.n_iter_ = max(len(curve.training) for curve in ensemble.history.curves)
        return model

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        rule: RuleLike = "crps",
        prediction: ApproximationLike = "members",
        truth: ApproximationLike = "members",
        precision: Precision = "float64",
    ) -> Exported:
        """Write one `.onnx` or `.pt2` file, from the columns to mean, variance, bayes, excess and total; see `uqprism.export`."""
        return export_networks(self._fitted(), path, Wanted(rule, prediction, truth, precision, *self._passes()))

    def _passes(self) -> tuple[int | None, int]:
        """How many passes of MC dropout a prediction has, and the seed of their masks."""
        return None, 0

    # Parts ------------------------------------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the prediction; with `return_std` also its standard deviation, noise and disagreement together."""
        prediction = self.predict_ensemble(X).matched
        return (prediction.mean, prediction.scale) if return_std else prediction.mean

    def uncertainty(self, X: Any, measure: str | Measure | Sequence[str | Measure] = MEASURE) -> Any:
        """A measure for each row, by default the excess risk of the CRPS; for several measures a `MeasureTable`."""
        single = isinstance(measure, str | Measure)
        table = evaluate(self.predict_ensemble(X), [measure] if single else list(measure))  # type: ignore[list-item, arg-type]
        return next(iter(table.values())) if single else table

    def _network(self, **settings: Any) -> str | Factory:
        """The user's network, or a `TabularMLP`."""
        if self.network is not None:
            ignored = [
                n for n in ("hidden", "activation", "embedding", "bins", *settings) if getattr(self, n) != getattr(type(self), n)
            ]
            if ignored:
                raise ArgumentError(f"network has its own {' and '.join(ignored)}: set one or the other")
            return self.network
        return TabularMLP(self.hidden, self.activation, embedding=self.embedding, bins=self.bins, **settings)

    def _fitted(self) -> DeepEnsemble:
        check_is_fitted(self, "ensemble_")
        return self.ensemble_

    def _checked(self, X: Any) -> Any:
        """Inputs to predict for, checked by scikit-learn; tensors are returned as they are, on their device."""
        self._fitted()
        # NaN and infinity are found later, by a check that names the row.
        if isinstance(X, torch.Tensor):
            return X
        if is_frame(X):  # the names and their order; what the columns hold is checked by `Columns`
            names_of(X)
            return validate_data(self, X, reset=False, skip_check_array=True)
        if self.ensemble_.columns is not None:
            self.ensemble_.columns.check_array()
        refuse_text(X)
        return validate_data(self, X, reset=False, allow_nd=True, ensure_all_finite=False)

    def _checked_pair(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        """Inputs and targets to train on, checked by scikit-learn; tensors are returned as they are."""
        if isinstance(X, torch.Tensor):
            self.n_features_in_ = X.shape[1] if X.ndim > 1 else 0
            self.__dict__.pop("feature_names_in_", None)  # left by an earlier fit to a table
            return X, y
        y = y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else y
        if is_text(y):  # scikit-learn would convert it to numbers
            raise InvalidValueError("y must be numbers, got text; convert it, as with y.astype(float)")
        if is_frame(X):
            names_of(X)
            if y is None:
                raise ArgumentError("y is None: give one target per row")
            validate_data(self, X, reset=reset, skip_check_array=True)
            if self.n_features_in_ == 0:
                raise ShapeError("the table has no columns; give at least one")
            return X, column_or_1d(y, warn=True)
        refuse_text(X)
        fitting = {"y_numeric": True, "allow_nd": True, "ensure_min_samples": 2 if reset else 1, "ensure_all_finite": False}
        return validate_data(self, X, y, reset=reset, **fitting)


@dataclass(eq=False, repr=False)
class DeepEnsembleRegressor(EnsembleRegressor):
    """A deep ensemble: networks trained from different seeds, each of which is a member (Lakshminarayanan et al. 2017).

    Parameters that are not listed here are described in `EnsembleRegressor` and `TrainingOptions`.

    Attributes:
        head: see `TrainingOptions`.
        bootstrap: see `TrainingOptions`.
        shared: see `TrainingOptions`.
        posterior_samples: see `TrainingOptions`.
        posterior_steps: see `TrainingOptions`.
    """

    head: str | Head = field(default="mixture", kw_only=True)
    bootstrap: bool = field(default=DEFAULTS.bootstrap, kw_only=True)
    shared: bool = field(default=DEFAULTS.shared, kw_only=True)
    posterior_samples: int | None = field(default=DEFAULTS.posterior_samples, kw_only=True)
    posterior_steps: int = field(default=DEFAULTS.posterior_steps, kw_only=True)

    def _training(self) -> tuple[str | Factory, str | Head, int]:
        return self._network(), self.head, self.n_members


@dataclass(eq=False, repr=False)
class MCDropoutRegressor(EnsembleRegressor):
    """MC dropout: one network whose dropout stays on in prediction; every pass is a member (Gal and Ghahramani 2016).

    The masks of the passes are drawn once, in `fit`: a row's prediction does not depend on the other rows. Networks of your
    own use PyTorch's dropout, whose masks depend on the batch. Parameters that are not listed here are described in
    `EnsembleRegressor` and `TrainingOptions`.

    Attributes:
        n_members: the number of passes.
        dropout: see `MLP`; a `network` has its own.
        head: see `TrainingOptions`.
    """

    n_members: int = 50
    dropout: float = field(default=0.1, kw_only=True)
    head: str | Head = field(default=DEFAULTS.head, kw_only=True)  # mixtures of fifty members would take long to decompose

    def _training(self) -> tuple[str | Factory, str | Head, int]:
        if self.network is None and not (self.dropout and self.hidden):
            raise ArgumentError(
                f"MC dropout needs units to drop, got dropout={self.dropout!r} and hidden={self.hidden!r}; "
                "use DeepEnsembleRegressor for networks without dropout"
            )
        network = self._network(dropout=self.dropout)
        # A partial and not a closure, because estimators are pickled.
        return network if self.network is None else partial(_with_dropout, resolve(network)), self.head, 1

    def predict_ensemble(self, X: Any) -> EnsemblePrediction:
        """The predictive distributions of the passes, (members, rows)."""
        ensemble = self._fitted()
        return ensemble.predict_ensemble(self._checked(X), passes=self.n_members, seed=ensemble.history.seeds[0])

    def _passes(self) -> tuple[int, int]:
        return self.n_members, self._fitted().history.seeds[0]


@dataclass(eq=False, repr=False)
class EvidentialRegressor(EnsembleRegressor):
    """Deep evidential regression: one network that predicts a distribution over Gaussians (Amini et al. 2020).

    Its split into noise and disagreement is unreliable: the data determine the sum, not the ratio (Meinert et al. 2023), and
    far from the data `uncertainty` may fall where that of a deep ensemble rises. Parameters that are not listed here are
    described in `EnsembleRegressor` and `TrainingOptions`.

    Attributes:
        n_members: see `Evidential`.
        evidence_weight: the `weight` of `Evidential`.
    """

    n_members: int = WEIGHTED.n_members
    evidence_weight: float = field(default=WEIGHTED.weight, kw_only=True)

    def _training(self) -> tuple[str | Factory, str | Head, int]:
        return self._network(), Evidential(self.evidence_weight, self.n_members), 1

    def predict_evidential(self, X: Any) -> EvidentialPrediction:
        """The four parameters for each row, with `aleatoric` and `epistemic` in closed form."""
        return self._fitted().predict_evidential(self._checked(X))

    def predict_ensemble(self, X: Any) -> EnsemblePrediction:
        """Members that represent the predicted distribution, (members, rows)."""
        # `n_members` only concerns the prediction, and may be changed after `fit`.
        return replace(self._fitted(), head=Evidential(self.evidence_weight, self.n_members)).predict_ensemble(self._checked(X))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean; with `return_std` also the standard deviation, in closed form unless targets are transformed."""
        if self._fitted().transform is not None:
            return super().predict(X, return_std)
        found = self.predict_evidential(X)
        mean, scale = found.gamma, np.sqrt(found.aleatoric + found.epistemic)
        if isinstance(X, torch.Tensor):
            mean, scale = (torch.from_numpy(x).to(X.device) for x in (mean, scale))
        return (mean, scale) if return_std else mean


def load(path: str | os.PathLike[str], *, device: Any = "cpu") -> EnsembleRegressor:
    """Read the file of any of these regressors, which says itself what it holds."""
    about = read_tensors(path, KIND)[0].get("estimator") or {}
    kinds: dict[str, type[EnsembleRegressor]] = {
        kind.__name__: kind for kind in (DeepEnsembleRegressor, MCDropoutRegressor, EvidentialRegressor)
    }
    return kinds.get(str(about.get("kind")), DeepEnsembleRegressor).load(path, device=device)


def _with_dropout(network: Factory, input_shape: tuple[int, ...], n_outputs: int) -> Any:
    """The network that the user's function builds, which must have dropout; checked before training."""
    module = network(input_shape, n_outputs)
    if not any(isinstance(part, DROPOUT) for part in module.modules()):
        raise ArgumentError("MC dropout needs a network with dropout layers, but the given network has none")
    return module
