"""Training: networks, heads and losses, and a trainer for all members at once. It needs the extra `deep`."""

from __future__ import annotations

from uqprism.training.columns import Column, Columns
from uqprism.training.data import Scaling
from uqprism.training.deep_ensemble import DeepEnsemble
from uqprism.training.fit import StackedFit, train, train_many
from uqprism.training.heads import Head
from uqprism.training.heads.evidential import Evidential
from uqprism.training.heads.gaussian import BetaNLL, CRPSHead, MeanVariance, Natural, WarmUp
from uqprism.training.heads.histogram import HistogramHead
from uqprism.training.heads.laplace import LaplaceHead
from uqprism.training.heads.mixture import MixtureHead
from uqprism.training.heads.quantiles import QuantileHead
from uqprism.training.history import Event, History, TrainingWarning
from uqprism.training.networks.convolutional import ResNet18, SmallCNN
from uqprism.training.networks.mlp import MLP
from uqprism.training.networks.shared import SharedMLP
from uqprism.training.networks.tabular import TabularMLP
from uqprism.training.options import TrainingOptions
from uqprism.training.transforms import LogTransform, QuantileNormal, TargetTransform, YeoJohnson

__all__ = [
    "MLP",
    "BetaNLL",
    "CRPSHead",
    "Column",
    "Columns",
    "DeepEnsemble",
    "Event",
    "Evidential",
    "Head",
    "HistogramHead",
    "History",
    "LaplaceHead",
    "LogTransform",
    "MeanVariance",
    "MixtureHead",
    "Natural",
    "QuantileHead",
    "QuantileNormal",
    "ResNet18",
    "Scaling",
    "SharedMLP",
    "SmallCNN",
    "StackedFit",
    "TabularMLP",
    "TargetTransform",
    "TrainingOptions",
    "TrainingWarning",
    "WarmUp",
    "YeoJohnson",
    "train",
    "train_many",
]
