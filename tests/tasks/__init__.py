"""Checks of uqprism."""
