"""Checks of active learning."""
