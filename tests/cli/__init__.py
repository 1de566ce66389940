"""Checks of uqprism.cli."""
