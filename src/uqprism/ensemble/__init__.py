"""`EnsemblePrediction`, and the ways in which an ensemble stands for one distribution."""

from uqprism.ensemble.prediction import EnsemblePrediction

__all__ = ["EnsemblePrediction"]
