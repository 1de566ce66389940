"""What the estimators share: validation, fitting, and everything that follows from an `EnsemblePrediction`."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.evaluation import evaluate
from uqprism.measures import Measure
from uqprism.support.optional import require
from uqprism.training.deep_ensemble import DeepEnsemble
from uqprism.training.fit import train
from uqprism.training.heads import Head
from uqprism.training.networks import MLP
from uqprism.training.networks.base import Factory
from uqprism.training.options import TrainingOptions

torch = require("torch", extra="deep")
require("sklearn", extra="sklearn")

from sklearn.base import BaseEstimator, RegressorMixin  # noqa: E402  after its absence was told
from sklearn.utils import check_random_state  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

MEASURE = "crps.excess.members.members"
DEFAULTS = TrainingOptions()
OPTIONS = tuple(field.name for field in dataclasses.fields(TrainingOptions))


@dataclass(eq=False, repr=False)  # for its __init__, which sets what it is given and no more, as scikit-learn wants it
class EnsembleRegressor(RegressorMixin, BaseEstimator):
    """A regressor whose prediction is an ensemble of distributions.

    Inputs may be arrays, pandas tables, images (rows, channels, height, width) or PyTorch tensors on any device.

    Attributes:
        n_members: members of the prediction.
        hidden: widths of the hidden layers.
        activation: relu, silu or gelu.
        network: in place of those two: a name such as small_cnn, a specification such as `SmallCNN(...)`, or a function
            (input_shape, n_outputs) -> `torch.nn.Module`.
        max_epochs: passes over the data, at most.
        batch_size: rows per step and network.
        learning_rate: of Adam.
        weight_decay: decoupled from the gradient, as in AdamW.
        patience: epochs without a better validation loss after which a network stops; None never stops early.
        validation_fraction: of the rows, kept out of training to stop on, others for each network; 0 for none.
        max_gradient: longest allowed gradient of a network; longer ones are shortened.
        device: by default CUDA where there is one.
        dtype: float32 or float64, the precision of the networks.
        checkpoint: a folder; a run that was cut off goes on from there.
        checkpoint_every: epochs.
        progress: True or False; by default on a terminal.
        random_state: an integer makes the result repeatable.
        ensemble_: once fitted, the `DeepEnsemble`, with its `history`, `save` and `load`.
    """

    n_members: int = 10
    _: KW_ONLY
    hidden: tuple[int, ...] = (100, 100, 100)
    activation: str = "relu"
    network: str | Factory | None = None
    max_epochs: int = DEFAULTS.max_epochs
    batch_size: int = DEFAULTS.batch_size
    learning_rate: float = DEFAULTS.learning_rate
    weight_decay: float = DEFAULTS.weight_decay
    patience: int | None = DEFAULTS.patience
    validation_fraction: float = DEFAULTS.validation_fraction
    max_gradient: float | None = DEFAULTS.max_gradient
    device: Any = None
    dtype: str = "float32"
    checkpoint: str | None = None
    checkpoint_every: int = 10
    progress: bool | None = None
    random_state: Any = None

    @abstractmethod
    def _training(self) -> tuple[str | Factory, str | Head, int]:
        """The network, the head and how many networks to train."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train on inputs (rows, ...) and one target per row."""
        inputs, targets = self._checked_pair(X, y)
        network, head, count = self._training()
        if self.checkpoint is not None and self.random_state is None:
            raise ArgumentError("checkpoint needs random_state: without it every run has other seeds, and none can go on")
        self.ensemble_: DeepEnsemble = train(
            inputs,
            targets,
            network=network,
            head=head,
            n_members=count,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            device=self.device,
            dtype=self.dtype,
            checkpoint=self.checkpoint,
            checkpoint_every=self.checkpoint_every,
            progress=self.progress,
            **{name: getattr(self, name) for name in OPTIONS if hasattr(self, name)},
        )
        if hasattr(self, "feature_names_in_"):
            self.ensemble_ = replace(self.ensemble_, features=tuple(self.feature_names_in_))
        self.n_iter_ = max(len(curve.training) for curve in self.ensemble_.history.curves)
        return self

    def predict_ensemble(self, X: Any) -> EnsemblePrediction:
        """The predictive distributions, (members, rows)."""
        return self._fitted().predict_ensemble(self._checked(X))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the predictive distribution, and its standard deviation if asked: noise and disagreement together."""
        prediction = self.predict_ensemble(X).matched
        return (prediction.mean, prediction.scale) if return_std else prediction.mean

    def uncertainty(self, X: Any, measure: str | Measure | Sequence[str | Measure] = MEASURE) -> Any:
        """A measure for each row, by default what more data would remove; of several, a `MeasureTable`."""
        single = isinstance(measure, str | Measure)
        table = evaluate(self.predict_ensemble(X), [measure] if single else list(measure))  # type: ignore[list-item, arg-type]
        return next(iter(table.values())) if single else table

    def _network(self, **settings: Any) -> str | Factory:
        """What builds a network: the user's own, or an MLP."""
        if self.network is not None:
            ignored = [n for n in ("hidden", "activation", *settings) if getattr(self, n) != getattr(type(self), n)]
            if ignored:
                raise ArgumentError(f"network has its own {' and '.join(ignored)}: give one or the other")
            return self.network
        return MLP(self.hidden, self.activation, **settings)

    def _fitted(self) -> DeepEnsemble:
        check_is_fitted(self, "ensemble_")
        return self.ensemble_

    def _checked(self, X: Any) -> Any:
        """Inputs to predict for: what scikit-learn checks, and feature names; tensors stay as they are, on their device."""
        self._fitted()
        # Whether all is finite is checked later, by a check that says where it is not.
        return X if isinstance(X, torch.Tensor) else validate_data(self, X, reset=False, allow_nd=True, ensure_all_finite=False)

    def _checked_pair(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Inputs and targets to learn from, likewise."""
        if isinstance(X, torch.Tensor):
            self.n_features_in_ = X.shape[1] if X.ndim > 1 else 0
            self.__dict__.pop("feature_names_in_", None)
            return X, y
        y = y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else y
        if _is_text(y):  # scikit-learn would read numbers out of it
            raise InvalidValueError("y must be numbers, got text; convert it, as with y.astype(float)")
        return validate_data(self, X, y, y_numeric=True, allow_nd=True, ensure_min_samples=2, ensure_all_finite=False)


def _is_text(values: Any) -> bool:
    array = np.asarray(values)
    return array.dtype.kind in "UST" or (array.dtype == object and any(isinstance(each, str) for each in array.flat))
