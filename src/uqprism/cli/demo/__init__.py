"""Two examples to begin with: deliveries, which everybody understands, and an ensemble that is trained on the spot."""

from uqprism.cli.demo.deliveries import TRIPS, Finding, ensemble, findings, meaning

__all__ = ["TRIPS", "Finding", "ensemble", "findings", "meaning"]
