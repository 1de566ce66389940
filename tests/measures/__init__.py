"""Checks of uqprism.measures."""
