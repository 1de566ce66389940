"""The watch: has the world changed, and is it noise or are the models out of their depth? Without outcomes."""

from uqprism.tasks.watch.penalty import Estimate
from uqprism.tasks.watch.result import Alarm, Row, Update
from uqprism.tasks.watch.watch import Watch

__all__ = ["Alarm", "Estimate", "Row", "Update", "Watch"]
