"""The families of predictive distributions, one file each; a new file here is found by itself."""

from uqprism.families.base import Family, families
from uqprism.families.beta import Beta
from uqprism.families.censored_gaussian import CensoredGaussian
from uqprism.families.counts import NegativeBinomial, Poisson
from uqprism.families.draws import Draws
from uqprism.families.gamma import Gamma
from uqprism.families.gaussian import Gaussian
from uqprism.families.histogram import Histogram
from uqprism.families.laplace import Laplace
from uqprism.families.logistic import Logistic
from uqprism.families.lognormal import LogNormal
from uqprism.families.mixture import Mixture
from uqprism.families.quantiles import Quantiles
from uqprism.families.student_t import StudentT
from uqprism.families.truncated_gaussian import TruncatedGaussian
from uqprism.families.weibull import Weibull

families.discover()  # at import, because a file may add closed forms to another family's functionals

__all__ = [
    "Beta",
    "CensoredGaussian",
    "Draws",
    "Family",
    "Gamma",
    "Gaussian",
    "Histogram",
    "Laplace",
    "LogNormal",
    "Logistic",
    "Mixture",
    "NegativeBinomial",
    "Poisson",
    "Quantiles",
    "StudentT",
    "TruncatedGaussian",
    "Weibull",
    "families",
]
