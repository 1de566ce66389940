"""Other libraries' models, tables and draws as an `EnsemblePrediction`; one file per library."""

from uqprism.adapters.base import Adapter, Wrapper, adapters, from_model, is_a, one_member
from uqprism.adapters.draws import from_draws, from_posterior
from uqprism.adapters.table import from_arrow, from_frame
from uqprism.adapters.torch import from_torch

__all__ = [
    "Adapter",
    "Wrapper",
    "adapters",
    "from_arrow",
    "from_draws",
    "from_frame",
    "from_model",
    "from_posterior",
    "from_torch",
    "is_a",
    "one_member",
]
