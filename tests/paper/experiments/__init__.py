"""Checks of uqprism.paper.experiments."""
