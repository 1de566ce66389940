"""Files of predictions, Dask and xarray: measures for more rows than fit into memory."""

from uqprism.files.flagging import FlagReport, flag
from uqprism.files.lazy import evaluate
from uqprism.files.outcome import BadFile, ScoreReport
from uqprism.files.paths import named_by_stem
from uqprism.files.scoring import score
from uqprism.files.watching.run import WatchReport, watch

__all__ = ["BadFile", "FlagReport", "ScoreReport", "WatchReport", "evaluate", "flag", "named_by_stem", "score", "watch"]
