"""The families of predictive distributions, one file each; a new file here is found by itself."""

from __future__ import annotations

import importlib
import pkgutil

from uqprism.families.base import Family, families

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from uqprism.families.empirical import Empirical
from uqprism.families.gaussian import Gaussian
from uqprism.families.laplace import Laplace
from uqprism.families.logistic import Logistic
from uqprism.families.mixture import Mixture
from uqprism.families.student_t import StudentT

__all__ = ["Empirical", "Family", "Gaussian", "Laplace", "Logistic", "Mixture", "StudentT", "families"]
