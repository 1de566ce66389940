"""Checks of uqprism.data, and the stored values that other checks compare with."""
