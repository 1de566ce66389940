"""Write the pages that follow from the code; with --check, fail if they are not up to date."""

from __future__ import annotations

import ast
import html
import importlib
import inspect
import json
import pkgutil
import re
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

import numpy as np
from typer.models import ArgumentInfo

import uqprism as up
from uqprism.cli import app, examples
from uqprism.errors import ExitCode
from uqprism.measures import published
from uqprism.paper.experiment import Claim
from uqprism.paper.report import claims_table, overview
from uqprism.paper.results import read_record
from uqprism.tasks.task import Task, all_tasks

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"

FLOORS = ("<!-- floors: written by docs/generate.py -->", "<!-- end of the floors -->")
EVIDENCE = ("<!-- evidence: written by docs/generate.py -->", "<!-- end of the evidence -->")
# A table of a section of a file of results: MEASURED[2] and [3] are the file and the heading of the section.
MEASURED = re.compile(
    r"(<!-- (RESULTS-\w+\.md), (.+?): written by docs/generate\.py -->\n).*?(<!-- end of the table -->)", re.DOTALL
)
STORED = ("<!-- stored: written by docs/generate.py -->", "<!-- end of what is stored -->")
STORED_IN = sorted(path.parent for path in DOCS.glob("results/*/result.json"))

FIRST = {"plot_decomposition"}  # in the gallery; the others by name

# The page that tells more about a command.
TOLD_IN = {
    **{task.command: task.page for task in all_tasks() if task.page},
    "catalogue": "catalogue.md",
    "flag": "flags.md",
    "intervals": "intervals.md",
    "recalibrate": "intervals.md",
    "recommend": "choose.md",
    "reproduce": "reproduce.md",
    "score": "files.md",
    "watch": "watch.md",
}


def catalogue_page() -> str:
    """Every measure of the paper's rules, how it is computed for Gaussian members, and its labels."""
    table = up.evaluate(up.EnsemblePrediction.gaussian(mean=np.array([[0.0], [1.0]]), scale=np.ones((2, 1))))
    rows = []
    for measure in up.catalogue():
        first, second = (measure.paper_label(order=order) for order in ("prediction,truth", "truth,prediction"))
        method, tolerance = table.exactness[measure.name]
        rows.append(f"| `{measure.name}` | {first} | {second} | {method} | {tolerance:.0e} |")
    return "\n".join(
        [
            "# All measures",
            "",
            "The measures of the paper's four rules, with their labels in the paper in both orders of its indices (see the",
            "[glossary](glossary.md)), and how they are computed for Gaussian members in double precision. Every other rule",
            "adds the same 36.",
            "",
            "| measure | label by (prediction, truth) | label by (truth, prediction) | method | relative tolerance |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def results_page() -> str:
    """What came out of the experiments whose results are stored here."""
    return overview({folder.name: read_record(folder) for folder in STORED_IN})


def result_page(folder: Path) -> str:
    """The page of an experiment, with its sentences and its table written anew."""
    record = read_record(folder)
    parts = [claims_table([Claim(**claim) for claim in record["claims"]])]
    rows = _means(record["tables"])
    if rows:
        parts += [BESIDE, _beside(rows)]
    before, rest = folder.with_suffix(".md").read_text().split(f"{STORED[0]}\n", 1)
    _, after = rest.split(f"{STORED[1]}\n", 1)
    return "\n\n".join([f"{before}{STORED[0]}", *parts, f"{STORED[1]}\n{after}"])


BESIDE = (
    "Ours beside the paper's, in its columns: R_exc^{2,1} is what the paper prints there, and a cell that it leaves blank has "
    "our number alone."
)


def _beside(rows: list[dict[str, Any]]) -> str:
    """As the paper sets its tables: a row per rule, ours and the paper's, and a column per measure."""
    cells = {row["measure"]: row for row in rows}
    labels = [published.label(each.name) for each in published.measures((up.rules.PAPER[0],))]
    lines = [f"| rule | | {' | '.join(labels)} |", "|---" * (len(labels) + 2) + "|"]
    for rule in published.RULES.values():
        named = [cells.get(each.name, {}) for each in published.measures((rule,))]
        for whose, keys in (("ours", ("ours, as printed", "ours")), ("paper", ("paper",))):
            numbers = [next((cell[key] for key in keys if cell.get(key) is not None), None) for cell in named]
            told = ["" if number is None else f"{number:.3f}" if abs(number) < 2 else f"{number:.1f}" for number in numbers]
            lines.append(f"| {rule if whose == 'ours' else ''} | {whose} | {' | '.join(told)} |")
    return "\n".join(lines)


def _means(tables: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of the table that has one number for each measure, ours and the paper's, if there is one."""
    found = next((rows for name, rows in tables.items() if "mean over" in name or "Average ranks" in name), [])
    return [row for row in found if {"measure", "ours"} <= row.keys()]


def with_tables(text: str) -> str:
    """A page with the first table of each section of results that its marks name."""

    def copied(mark: re.Match[str]) -> str:
        section = (DOCS.parent / "benchmarks" / mark[2]).read_text().split(f"\n## {mark[3]}\n", 1)[1].split("\n## ", 1)[0]
        table = re.search(r"(?:^\|.*\n)+", f"{section}\n", re.MULTILINE)
        return f"{mark[1]}\n{table[0] if table else ''}\n{mark[4]}"

    return MEASURED.sub(copied, text)


def choose_page() -> str:
    """The page as it stands, with the evidence between its two marks written anew."""
    page = (DOCS / "choose.md").read_text()
    before, rest = page.split(f"{EVIDENCE[0]}\n", 1)
    _, after = rest.split(f"{EVIDENCE[1]}\n", 1)
    tables = "\n".join(_evidence(task) for task in all_tasks() if task.advice)
    return with_tables(f"{before}{EVIDENCE[0]}\n\n{tables}\n{EVIDENCE[1]}\n{after}")


def _evidence(task: Task) -> str:
    """What the paper found, beside what our own run of it found, where one is stored."""
    advice = up.recommend(task.name)
    folder = DOCS / "results" / task.command
    ours: dict[str, float] = {}
    if (folder / "result.json").exists():
        ours = {row["measure"]: row["ours"] for row in _means(json.loads((folder / "result.json").read_text())["tables"])}
    lines = [f"*{task.title}.* {advice.metric}.", "", "| measure | the paper |", "|---|---|"]
    rows = [f"| `{each.measure}` | {each.value:.3f} ± {each.spread:.3f} |" for each in advice.evidence]
    if ours:
        page = f"[our run](results/{folder.name}.md)"
        lines[-2:] = [f"| measure | the paper | {page} |", "|---|---|---|"]
        found = [ours.get(each.measure) for each in advice.evidence]
        rows = [f"{row} {'' if value is None else f'{value:.3f}'} |" for row, value in zip(rows, found, strict=True)]
    return "\n".join([*lines, *rows, ""])


def architecture_page() -> str:
    """The page as it stands, with the picture of the floors drawn anew from the contract and the rooms' own descriptions."""
    contract = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    rooms = [f"<dt>{room}</dt><dd>{_described(room)}</dd>" for room in contract["layers"]]
    before, rest = (DOCS / "architecture.md").read_text().split(f"{FLOORS[0]}\n", 1)
    _, after = rest.split(f"{FLOORS[1]}\n", 1)
    return "\n".join([f"{before}{FLOORS[0]}", '<dl class="floors">', *rooms, "</dl>", f"{FLOORS[1]}\n{after}"])


def _described(room: str) -> str:
    """The first line of a room's docstring."""
    text = inspect.getdoc(importlib.import_module(f"uqprism.{room}")) or ""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text.partition("\n")[0].rstrip("."), quote=False))


def command_line_page() -> str:
    """Every command with its arguments and options, in the words of its own help."""
    named = {each.name or each.callback.__name__: each for each in app.registered_commands}  # type: ignore[union-attr]
    commands = dict(sorted(named.items()))
    lines = [
        "# Command line",
        "",
        "What `uqprism COMMAND --help` says. The commands come with the extra `cli`.",
        "",
        "| command | |",
        "|---|---|",
        *(f"| [`{name}`](#uqprism-{name}) | {_cell(inspect.getdoc(each.callback))} |" for name, each in commands.items()),
        "",
        "Messages are one line on standard error.",
        "",
        "## Exit codes",
        "",
        "| code | |",
        "|---|---|",
        *(f"| {code.value} | {_cell(code.meaning)} |" for code in ExitCode),
        "",
    ]
    for name, command in commands.items():
        lines += _command(name, command)
    return "\n".join(lines)


def _command(name: str, command: Any) -> list[str]:
    rows, usage = [], []
    for parameter in inspect.signature(command.callback, eval_str=True).parameters.values():
        kind, about = get_args(parameter.annotation)
        written, place = _written(parameter.name, kind, about)
        default = ""
        if parameter.default is parameter.empty:
            default = "required"
        elif parameter.default is not None and parameter.default is not False:
            default = f"`{parameter.default}`"
        row = f"| {written} | {_cell(about.help)} | {default} |"
        if place:
            rows.insert(len(usage), row)
            usage.append(place if default == "required" else f"[{place}]")
        else:
            rows.append(row)
    more = f" More on [its page]({TOLD_IN[name]})." if name in TOLD_IN else ""
    lines = [f"## uqprism {name}", "", _cell(inspect.getdoc(command.callback)) + more, ""]
    lines += ["```console", " ".join(["$ uqprism", name, *(["[OPTIONS]"] if len(rows) > len(usage) else []), *usage])]
    lines += [*(f"$ {line}" for line in examples.EXAMPLES.get(name, ())), "```", ""]
    if rows:
        lines += ["| | | default |", "|---|---|---|", *rows, ""]
    epilog = command.epilog.removeprefix(examples.listed(name))
    epilog += getattr(command.cls, "epilog_text", str)()  # some tell what takes an import to know
    return lines + [line for part in epilog.split("\n\n") if part for line in (*_paragraph(part), "")]


def _paragraph(text: str) -> list[str]:
    """A paragraph of a help text; one that must keep its lines, marked for the terminal, as a block."""
    return ["```text", *text.splitlines()[1:], "```"] if text.startswith("\b\n") else [_cell(text)]


def _written(name: str, kind: Any, about: Any) -> tuple[str, str]:
    """How an argument or option is typed; and, for an argument, its place in the line."""
    value = about.metavar or {int: "INTEGER", float: "FLOAT"}.get(next(iter(get_args(kind)), kind), "TEXT")
    if isinstance(about, ArgumentInfo):
        value += "..." if get_origin(kind) is list else ""
        return _code(value), value
    given = (about.default, *(about.param_decls or ()))  # Typer sorts the first of them out later
    names = [each for each in given if str(each).startswith("-")] or [f"--{name.replace('_', '-')}"]
    return _code(", ".join(names) + ("" if kind is bool else f" {value}")), ""


def _code(text: str) -> str:
    """Code in a cell of a table, where a bar would end the cell."""
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"


def _cell(text: str | None) -> str:
    """Text for a table: one line, and no bar that would end the cell."""
    return " ".join((text or "").split()).replace("|", "\\|")


def gallery_page() -> str:
    """The examples: a picture of each on top, then what each shows, and its code."""
    paths = sorted(EXAMPLES.glob("plot_*.py"), key=lambda path: (path.stem not in FIRST, path.stem))
    examples = {path: path.read_text() for path in paths}
    titles = {path: ast.get_docstring(ast.parse(code)).split("\n\n", 1) for path, code in examples.items()}  # type: ignore[union-attr]
    cards = [
        f"[![{title.rstrip('.')}]({_picture(path)})<br>{title.rstrip('.')}](#{_anchor(path)})"
        for path, (title, _) in titles.items()
    ]
    lines = [
        "# Gallery",
        "",
        "Short scripts, one idea each. Run one as `python examples/plot_decomposition.py picture.png`. They need the extras",
        "`report`, `sklearn` and `deep`, and one of them NGBoost.",
        "",
        '<div class="gallery" markdown>',
        "",
        *[f"{card}\n" for card in cards],
        "</div>",
        "",
    ]
    for path, (title, text) in titles.items():
        code = "\n".join(f"    {line}".rstrip() for line in _body(examples[path]))
        lines += [f"## {title.rstrip('.')} {{ #{_anchor(path)} }}", "", text, "", f"![{title.rstrip('.')}]({_picture(path)})", ""]
        lines += [f'??? example "examples/{path.name}"', "", "    ```python", code, "    ```", ""]
    return "\n".join(lines)


def _anchor(path: Path) -> str:
    return path.stem.removeprefix("plot_").replace("_", "-")


def _picture(path: Path) -> str:
    return f"pictures/gallery_{path.stem.removeprefix('plot_')}.png"


def _body(code: str) -> list[str]:
    """The lines after the docstring, which stands above them on the page."""
    docstring = ast.parse(code).body[0]
    return code.splitlines()[docstring.end_lineno :][1:]


# The reference: a page for each room of the package, and what is described there besides its public names.
ROOMS = {
    "ensemble": ("Predictions", ("uqprism.ensemble.approximations",)),
    "adapters": ("Predictions from other libraries", ()),
    "evaluation": ("Evaluation", ()),
    "measures": ("Measures", ("uqprism.measures.risks",)),
    "rules": ("Rules", ()),
    "families": ("Families", ("uqprism.families.functionals",)),
    "training": ("Training", ("uqprism.training.estimators.EnsembleRegressor",)),
    "tasks": ("Tasks", ()),
    "serving": (
        "Serving",
        ("uqprism.serving.mlflow.save_model", "uqprism.serving.mlflow.log_model", "uqprism.serving.mlflow.load_model"),
    ),
    "plots": ("Figures", ()),
    "files": ("Files and clusters", ()),
    "report": ("Report", ()),
    "paper": ("The paper's experiments and data", ()),
    "registry": ("Registries", ()),
    "errors": ("Errors", ("uqprism.errors",)),
}


def reference_page(room: str) -> str:
    """The public classes and functions of a room, with the signatures and docstrings of the code."""
    title, further = ROOMS[room]
    lines = [f"# {title}", "", *(f"::: {path}" for path in (*public_names(room), *further)), ""]
    return "\n".join(lines)


def public_names(room: str) -> list[str]:
    """Where the public classes and functions of a room are defined, in the order of the room's own lists."""
    modules = [importlib.import_module(f"uqprism.{room}")]
    modules += [importlib.import_module(name) for name in _packages(modules[0])]
    named = [getattr(module, name) for module in modules for name in getattr(module, "__all__", ())]
    named += [getattr(up, name) for name in dir(up)]
    named += [task.function for task in all_tasks()]
    inside = [each for each in named if inspect.isclass(each) or inspect.isroutine(each)]
    paths = (f"{each.__module__}.{each.__qualname__}" for each in inside)
    return list(dict.fromkeys(path for path in paths if path.startswith(f"uqprism.{room}.")))


def _packages(module: Any) -> list[str]:
    """The packages inside a package."""
    found = pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module.__name__}.")
    return [each.name for each in found if each.ispkg]


PAGES = {
    **{f"api/{room}.md": partial(reference_page, room) for room in ROOMS},
    "architecture.md": architecture_page,
    "catalogue.md": catalogue_page,
    "choose.md": choose_page,
    "command_line.md": command_line_page,
    "gallery.md": gallery_page,
    "intervals.md": lambda: with_tables((DOCS / "intervals.md").read_text()),
    "results/README.md": results_page,
    **{f"results/{folder.name}.md": partial(result_page, folder) for folder in STORED_IN},
}


def main() -> None:
    """Write, or check."""
    for name, write in PAGES.items():
        page, path = write(), DOCS / name
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(page)
        elif not path.exists() or path.read_text() != page:
            sys.exit(f"{name} is out of date; run: python docs/generate.py")


if __name__ == "__main__":
    main()
