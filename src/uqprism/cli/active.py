"""Active learning on a table whose targets are all known: compare ways of choosing which points to label."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import numpy as np
import typer

from uqprism.cli.application import Progress, Quiet, command, interruptible, shows_bar
from uqprism.cli.output import Format, Output, Plot, check, draw, write
from uqprism.errors import ArgumentError
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.tasks.active_learning import LoopSettings, Pool, compare_acquisitions
from uqprism.tasks.active_learning.picking import Picking, Scaling
from uqprism.tasks.task import TASKS, recommend

TASK = TASKS.get("active_learning")

MODELS = ("forest", "deep")
ACQUISITION = (
    "A measure, or random; may be repeated or have commas. By default the paper's advice (uqprism recommend), and random."
)
FILE = "A Parquet, CSV or NPZ file of numbers, a row per point."
FOLDER = "Keep finished rounds in this folder; the same command continues from them."
MODEL = "A random forest, or an ensemble of ten networks."
SCORES = "How scores enter the softmax; the paper uses raw ones."
File = Annotated[str, typer.Argument(metavar="FILE", help=FILE)]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="What to learn. By default all other columns of numbers are inputs.")]
Inputs = Annotated[str | None, typer.Option(metavar="COLUMN,...", help="The inputs, if not all other columns.")]
Acquisitions = Annotated[list[str] | None, typer.Option("--acquisition", "-a", metavar="NAME", help=ACQUISITION)]
Model = Annotated[str, typer.Option(metavar="|".join(MODELS), help=MODEL)]
Initial = Annotated[int, typer.Option(min=2, help="Points to start from.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Points to pick in each round.")]
Rounds = Annotated[int, typer.Option(min=1, help="How often to train and pick.")]
Seeds = Annotated[int, typer.Option(min=1, help="Repetitions, each from other points.")]
TestShare = Annotated[float, typer.Option(min=0.01, max=0.9, help="Share of the rows held back to compare on.")]
Selection = Annotated[str, typer.Option(metavar="|".join(get_args(Picking)), help="How a batch is picked by scores.")]
Temperature = Annotated[float, typer.Option(help="Temperature of softmax.")]
Scores = Annotated[str, typer.Option(metavar="|".join(get_args(Scaling)), help=SCORES)]
Folder = Annotated[str | None, typer.Option(metavar="DIR", help=FOLDER)]


@command(TASK.place, TASK.summary)
def active(
    *,
    file: File,
    target: Target,
    inputs: Inputs = None,
    acquisition: Acquisitions = None,
    model: Model = "forest",
    initial: Initial = 100,
    batch_size: BatchSize = 20,
    rounds: Rounds = 10,
    seeds: Seeds = 3,
    test_share: TestShare = 0.2,
    selection: Selection = LoopSettings.selection,
    temperature: Temperature = LoopSettings.temperature,
    scores: Scores = LoopSettings.scores,
    folder: Folder = None,
    format: Format = None,
    output: Output = None,
    plot: Plot = None,
    progress: Progress = False,
    quiet: Quiet = False,
) -> None:
    """Compare ways of choosing which points to label, on a table whose labels are all known."""
    kind = check(format, output, plot)
    fit = _model(model)
    rows, targets = table_of(file, target, inputs)
    order = np.random.default_rng(0).permutation(len(targets))  # the same rows when --folder continues a run
    held = max(2, round(test_share * len(targets)))
    test, pool = order[:held], order[held:]
    with interruptible("finished rounds stay with --folder, the same command continues from there"):
        result = compare_acquisitions(
            fit,
            Pool.of(rows[pool], targets[pool], (rows[test], targets[test])),
            _acquisitions(acquisition),
            LoopSettings(
                initial=initial,
                batch_size=batch_size,
                rounds=rounds,
                selection=selection,  # type: ignore[arg-type]
                temperature=temperature,
                scores=scores,  # type: ignore[arg-type]
            ),
            seeds=seeds,
            folder=folder,
            progress=shows_bar(progress, quiet),
        )
        draw(result, plot)
    about = f"Means over {rounds} rounds and {seeds} repetition{'s' if seeds > 1 else ''}"
    sizes = f"{len(pool)} rows to pick from, {len(test)} to compare on, {rows.shape[1]} inputs"
    write(result, kind, output, note=f"{str(result).splitlines()[0]}. {about}; {sizes}.")


def _acquisitions(given: list[str] | None) -> list[str]:
    named = [part.strip() for text in given or [] for part in text.split(",") if part.strip()]
    # Random is what a measure has to beat.
    return list(dict.fromkeys(named or [recommend("active_learning").measure, "random"]))


def _model(name: str) -> Any:
    if name == "forest":
        # Leaves of one row have no variance.
        return require("sklearn.ensemble", extra="sklearn").RandomForestRegressor(min_samples_leaf=5, n_jobs=-1)
    if name == "deep":
        from uqprism.training import StackedFit

        return StackedFit(n_members=10, max_epochs=100, progress=False)
    raise ArgumentError(str(unknown("model (--model)", name, MODELS)))


def table_of(file: str, target: str, inputs: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (rows, features) and targets (rows,)."""
    from uqprism.files.points import Points

    points = Points.of(file)
    wanted = [name.strip() for name in inputs.split(",")] if inputs else [n for n in points.numeric_names if n != target]
    if not wanted:
        raise ArgumentError(f"{points.title}: no columns of numbers beside {target!r} to learn from; name them with --inputs")
    columns = points.read([*wanted, target])
    return np.stack([columns[name] for name in wanted], axis=1), columns[target]
