"""Deep ensembles (Lakshminarayanan et al. 2017) as a scikit-learn regressor."""

from __future__ import annotations

from dataclasses import dataclass, field

from uqprism.training.estimators.base import EnsembleRegressor
from uqprism.training.heads import Head
from uqprism.training.networks.base import Factory


@dataclass(eq=False, repr=False)
class DeepEnsembleRegressor(EnsembleRegressor):
    """Networks trained from different seeds, together; each predicts a distribution and is a member.

    Attributes:
        head: what the networks predict and the loss: natural, mean_variance, beta_nll, warm_up, crps, laplace, or a `Head`.
        bootstrap: each network draws its rows with replacement.
    """

    head: str | Head = field(default="natural", kw_only=True)
    bootstrap: bool = field(default=False, kw_only=True)

    def _training(self) -> tuple[str | Factory, str | Head, int]:
        return self._network(), self.head, self.n_members
