"""Estimators with scikit-learn's manners. Need the extras `deep` and `sklearn`. One file each."""

from __future__ import annotations

from uqprism.training.estimators.deep_ensemble import DeepEnsembleRegressor
from uqprism.training.estimators.evidential import EvidentialRegressor
from uqprism.training.estimators.mc_dropout import MCDropoutRegressor

__all__ = ["DeepEnsembleRegressor", "EvidentialRegressor", "MCDropoutRegressor"]
