"""Serving: a fitted model with its calibration and its threshold as one folder, from a table to the columns of an answer."""

from uqprism.serving.served import Served

__all__ = ["Served"]
