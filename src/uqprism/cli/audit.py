"""The audit of a table: what more of its rows remove from the penalty, beside what the models say."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from uqprism.cli.active import File, Inputs, table_of
from uqprism.cli.application import Progress, Quiet, Resamples, command, default_of, interruptible, say, shows_bar
from uqprism.cli.output import Format, Output, Plot, Top, check, check_place, draw, write
from uqprism.errors import ArgumentError
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.support.storage import check_ending
from uqprism.tasks.audit import audit as run_audit
from uqprism.tasks.resampling import RESAMPLES
from uqprism.tasks.task import TASKS

TASK = TASKS.get("audit")
PARTS_USUAL, REPEATS_USUAL, SHARE_USUAL = (default_of(run_audit, name) for name in ("parts", "repeats", "test_share"))
MODELS = ("deep", "forest")
MODEL = "Five networks on resampled rows, or a random forest."
SAVE = "Write the whole result here, an .npz file that uqprism report --audit and Audit.load read."
MEASURES = "Excess risks, the most important first; may be repeated. By default those between members under the paper's rules."
PARTS = "Into how many parts the rows are divided at first, a power of two."
FOLDER = "Keep finished parts in this folder; the same command continues from them."
Target = Annotated[str, typer.Option(metavar="COLUMN", help="What to learn. By default all other columns of numbers are inputs.")]
Model = Annotated[str, typer.Option(metavar="|".join(MODELS), help=MODEL)]
Measures = Annotated[list[str] | None, typer.Option("--measures", metavar="NAME", help=MEASURES)]
Parts = Annotated[int, typer.Option(min=2, help=PARTS)]
Repeats = Annotated[int, typer.Option(min=1, help="How often the rows are divided anew.")]
TestShare = Annotated[float, typer.Option(min=0.01, max=0.9, help="Share of the rows held back to judge by.")]
Jobs = Annotated[int | None, typer.Option(help="Processes that train forests; networks share a stack.")]
Folder = Annotated[str | None, typer.Option(metavar="DIR", help=FOLDER)]
Save = Annotated[str | None, typer.Option(metavar="FILE", help=SAVE)]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the division, the models and the resamples.")]


@command(TASK.place, TASK.summary)
def audit(
    *,
    file: File,
    target: Target,
    inputs: Inputs = None,
    model: Model = "deep",
    measures: Measures = None,
    parts: Parts = PARTS_USUAL,
    repeats: Repeats = REPEATS_USUAL,
    test_share: TestShare = SHARE_USUAL,
    jobs: Jobs = None,
    folder: Folder = None,
    save: Save = None,
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
    format: Format = None,
    output: Output = None,
    plot: Plot = None,
    top: Top = 20,
    progress: Progress = False,
    quiet: Quiet = False,
) -> None:
    """Train on more and more rows of a table, and compare what models say more data would remove with what it removed."""
    kind = check(format, output, plot)
    if save is not None:
        check_ending(save, [".npz"], "--save")
        check_place("--save", save)
    fit = _model(model)
    rows, targets = table_of(file, target, inputs)
    with interruptible("with --folder, the same command continues from there"):
        result = run_audit(
            fit,
            rows,
            targets,
            measures=measures,
            parts=parts,
            repeats=repeats,
            test_share=test_share,
            n_jobs=jobs,
            folder=folder,
            resamples=resamples,
            seed=seed,
            progress=shows_bar(progress, quiet),
        )
        draw(result, plot)
        if save is not None:
            result.save(save)
    write(result, kind, output, top=top, note=str(result))
    if save is not None and not quiet:
        say(f"the audit is in {save}; uqprism report FILE --audit {save} shows what it found")


def _model(name: str) -> Any:
    if name == "forest":
        return require("sklearn.ensemble", extra="sklearn").RandomForestRegressor()
    if name == "deep":
        from uqprism.training import StackedFit

        return StackedFit(n_members=5, bootstrap=True, progress=False)
    raise ArgumentError(str(unknown("model (--model)", name, MODELS)))
