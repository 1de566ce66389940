"""What to train, on what, and how: everything that does not change in training."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from uqprism.training import heads, networks
from uqprism.training.files import fingerprint
from uqprism.training.heads import Head
from uqprism.training.networks.base import Factory
from uqprism.training.options import TrainingOptions
from uqprism.training.problem import Problem


@dataclass(frozen=True)
class Plan:
    """The data, what builds a network, what its outputs mean, and the options."""

    problem: Problem
    factory: Factory
    head: Head
    options: TrainingOptions

    def fingerprint(self, *more: Any) -> str:
        """A name for all that decides how a run goes; a network of one's own is known by its first weights, given as `more`."""
        problem = self.problem
        data = [problem.inputs, problem.targets, problem.training]
        data += [] if problem.validation is None else [problem.validation]
        settings = [networks.to_dict(self.factory), heads.to_dict(self.head), dataclasses.asdict(self.options)]
        return fingerprint(*settings, *data, *more)
