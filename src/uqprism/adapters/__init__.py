"""Other libraries' models and posteriors as an `EnsemblePrediction`; its `from_...` methods are the doors."""
