"""The data sets of the paper's experiments by name: tables, images and generated sets; and out-of-distribution images.

dataset = data.load("ccpp", root="/data", seed=0)
dataset.train.inputs, dataset.train.targets
"""

from __future__ import annotations

from uqprism.paper.data.catalogue import constants, load, names, register, summaries
from uqprism.paper.data.dataset import Dataset, Samples, split
from uqprism.paper.data.ood import ood_mosaics, ood_names, ood_summaries

__all__ = [
    "Dataset",
    "Samples",
    "constants",
    "load",
    "names",
    "ood_mosaics",
    "ood_names",
    "ood_summaries",
    "register",
    "split",
    "summaries",
]
