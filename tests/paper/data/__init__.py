"""Checks of uqprism.paper.data, and the stored values that other checks compare with."""
