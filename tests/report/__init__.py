"""Checks of uqprism.report."""
