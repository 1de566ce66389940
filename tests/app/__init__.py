"""Checks of uqprism.app."""
