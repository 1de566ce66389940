"""Heads: what a network's outputs mean, and the loss that trains them. One file each."""

from __future__ import annotations

from uqprism.training.heads.base import Head, from_dict, heads, resolve, to_dict
from uqprism.training.heads.beta_nll import BetaNLL
from uqprism.training.heads.crps import CRPSHead
from uqprism.training.heads.evidential import Evidential
from uqprism.training.heads.laplace import LaplaceHead
from uqprism.training.heads.mean_variance import MeanVariance
from uqprism.training.heads.natural import Natural
from uqprism.training.heads.warm_up import WarmUp

__all__ = [
    "BetaNLL",
    "CRPSHead",
    "Evidential",
    "Head",
    "LaplaceHead",
    "MeanVariance",
    "Natural",
    "WarmUp",
    "from_dict",
    "heads",
    "resolve",
    "to_dict",
]
