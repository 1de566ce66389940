"""The report on a file, which `uqprism report` writes: to be kept, and shown to somebody else."""

from __future__ import annotations

import html
import os
from contextlib import ExitStack

from uqprism.app import commands
from uqprism.app.choices import Choice
from uqprism.app.uploads import Upload
from uqprism.errors import UqprismError
from uqprism.files.points import Points
from uqprism.report.page import write_page
from uqprism.report.readers import read_subject

REFUSED = "<!doctype html><meta charset='utf-8'><title>No report</title><p>No report could be written:</p><pre>{}</pre>"


def report(upload: Upload, choice: Choice, target: str | None = None, outside: Upload | None = None) -> bytes:
    """The page, an HTML file; where the command would refuse, a page that says why.

    Args:
        upload: the file.
        choice: how it is scored; the page splits by its rule, with the models in both roles.
        target: the column of what happened.
        outside: predictions for inputs from outside, to see whether they are noticed.
    """
    with ExitStack() as stack:
        path = stack.enter_context(upload.on_disk())
        ood = None if outside is None else stack.enter_context(outside.on_disk())
        output = path.parent / "out.html"
        try:
            points = Points.of(path, choice.columns, commands.on_bad(choice, target))
            command = commands.report(upload.path, choice, target, outside.path if outside else None)
            write_page(read_subject(points, target=target, ood=ood, rule=choice.rule), output, command=command)
        except UqprismError as error:  # it is asked for when the button is pressed: there is no page to tell it on any more
            return REFUSED.format(html.escape(str(error).replace(f"{path.parent}{os.sep}", ""))).encode()
        return output.read_bytes()
