"""Training: heads and losses, networks, and a trainer for all members at once. Needs the extra `deep`."""

from __future__ import annotations

from uqprism.training.deep_ensemble import DeepEnsemble
from uqprism.training.fit import train, train_many
from uqprism.training.heads import (
    BetaNLL,
    CRPSHead,
    Evidential,
    Head,
    LaplaceHead,
    MeanVariance,
    Natural,
    WarmUp,
)
from uqprism.training.history import Event, History, TrainingWarning
from uqprism.training.networks import MLP, ResNet18, SmallCNN
from uqprism.training.options import TrainingOptions
from uqprism.training.scaling import Scaling
from uqprism.training.settings import Settings
from uqprism.training.stacked_fit import StackedFit

__all__ = [
    "MLP",
    "BetaNLL",
    "CRPSHead",
    "DeepEnsemble",
    "Event",
    "Evidential",
    "Head",
    "History",
    "LaplaceHead",
    "MeanVariance",
    "Natural",
    "ResNet18",
    "Scaling",
    "Settings",
    "SmallCNN",
    "StackedFit",
    "TrainingOptions",
    "TrainingWarning",
    "WarmUp",
    "train",
    "train_many",
]
