"""Checks of uqprism.paper."""
