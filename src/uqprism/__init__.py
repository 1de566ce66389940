"""Split the uncertainty of a regression ensemble into noise and what more data would remove, under any proper scoring rule."""

from uqprism import approximations, families, rules
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UqprismError
from uqprism.evaluation import Decomposition, decompose, evaluate, log_bayes_mixture_bounds
from uqprism.evidential import EvidentialPrediction
from uqprism.families import Empirical, Gaussian, Laplace, Logistic, Mixture, StudentT
from uqprism.measures import Measure, MeasureTable, catalogue
from uqprism.quadrature import Exactness

__version__ = "0.1.0"

__all__ = [
    "Decomposition",
    "Empirical",
    "EnsemblePrediction",
    "EvidentialPrediction",
    "Exactness",
    "Gaussian",
    "Laplace",
    "Logistic",
    "Measure",
    "MeasureTable",
    "Mixture",
    "StudentT",
    "UqprismError",
    "__version__",
    "approximations",
    "catalogue",
    "decompose",
    "evaluate",
    "families",
    "log_bayes_mixture_bounds",
    "rules",
]
