"""The families of predictive distributions, one file each; a new file here is found by itself."""

from uqprism.families.base import Family, families
from uqprism.families.draws import Draws
from uqprism.families.gaussian import Gaussian
from uqprism.families.laplace import Laplace
from uqprism.families.logistic import Logistic
from uqprism.families.mixture import Mixture
from uqprism.families.student_t import StudentT

families.discover()  # now, since a closed form must be known before anybody asks for it

__all__ = ["Draws", "Family", "Gaussian", "Laplace", "Logistic", "Mixture", "StudentT", "families"]
