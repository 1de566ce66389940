"""Checks of uqprism.plots."""
