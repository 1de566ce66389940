"""Checks of uqprism.tasks."""
