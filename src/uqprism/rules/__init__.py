"""The proper scoring rules, one file each; a new file here is found by itself."""

from uqprism.rules.base import EntropyRule, Rule, ScoreRule, rules
from uqprism.rules.bregman import Bregman
from uqprism.rules.crps import CRPS
from uqprism.rules.kernel import GaussianKernel, KernelRule
from uqprism.rules.log import Log
from uqprism.rules.quadratic import Quadratic
from uqprism.rules.quantile import Quantile
from uqprism.rules.squared_error import SquaredError

from_score = ScoreRule
from_entropy = EntropyRule

PAPER = ("crps", "log", "quadratic", "squared_error")

__all__ = [
    "CRPS",
    "PAPER",
    "Bregman",
    "EntropyRule",
    "GaussianKernel",
    "KernelRule",
    "Log",
    "Quadratic",
    "Quantile",
    "Rule",
    "ScoreRule",
    "SquaredError",
    "from_entropy",
    "from_score",
    "rules",
]
