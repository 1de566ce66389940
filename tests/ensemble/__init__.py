"""Checks of uqprism.ensemble."""
