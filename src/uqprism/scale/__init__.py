"""Files and clusters: measures for more rows than fit into memory."""

from uqprism.scale.lazy import evaluate
from uqprism.scale.scoring import ScoreReport, score

__all__ = ["ScoreReport", "evaluate", "score"]
