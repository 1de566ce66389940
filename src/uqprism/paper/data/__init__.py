"""Data to learn from: tables, images, generated sets, by name; and images from outside a distribution.

dataset = data.load("ccpp", root="/data", seed=0)
dataset.train.inputs, dataset.train.targets
"""

from __future__ import annotations

from uqprism.paper.data import arrow, dots, mosaics, scenes, tables  # noqa: F401  (each files its data sets)
from uqprism.paper.data.catalogue import constants, load, names, register, summaries
from uqprism.paper.data.dataset import Dataset, Samples
from uqprism.paper.data.outliers import outlier_names, outlier_summaries, outliers

__all__ = [
    "Dataset",
    "Samples",
    "constants",
    "load",
    "names",
    "outlier_names",
    "outlier_summaries",
    "outliers",
    "register",
    "summaries",
]
