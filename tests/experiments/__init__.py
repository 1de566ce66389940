"""Checks of uqprism.experiments."""
