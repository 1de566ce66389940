"""Checks of uqprism.support."""
