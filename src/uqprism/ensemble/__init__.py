"""`EnsemblePrediction`, and the approximations that turn it into candidate distributions."""

from uqprism.ensemble.prediction import EnsemblePrediction

__all__ = ["EnsemblePrediction"]
