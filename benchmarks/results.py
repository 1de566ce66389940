"""RESULTS.md by sections: a benchmark replaces its own and leaves the others, each with the day and the machine."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parent
CPU, DEVICE = FOLDER / "RESULTS.md", FOLDER / "RESULTS-gpu.md"
RECALIBRATION, SELECTION = FOLDER / "RESULTS-recalibration.md", FOLDER / "RESULTS-selection.md"
SERVING = FOLDER / "RESULTS-serving.md"
WATCH = FOLDER / "RESULTS-watch.md"
TITLES = {
    CPU: "Results",
    DEVICE: "Results on a device",
    RECALIBRATION: "Recalibration, intervals and flags",
    SELECTION: "Choosing a measure on real tables",
    SERVING: "Exported and served models",
    WATCH: "Watching a stream",
}
PREFACE = "Each section says when and where it was measured; times are ratios within one run, since machines and loads differ."


def write(path: Path, lines: list[str], where: str, packages: tuple[str, ...]) -> None:
    """Put a section, whose first line is its heading, into the file, in place of an earlier one of that heading."""
    heading, *rest = lines
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    stamp = f"Measured on {datetime.date.today().isoformat()}, {where}, Python {platform.python_version()}, {versions}."
    sections = _sections(path)
    sections[heading] = "\n".join([heading, "", stamp, *rest]).rstrip()
    others = ", ".join(f"[{other.name}]({other.name})" for other in TITLES if other != path)
    path.write_text("\n\n".join([f"# {TITLES[path]}", f"{PREFACE} The other files: {others}.", *sections.values()]) + "\n")


def _sections(path: Path) -> dict[str, str]:
    parts = path.read_text().split("\n## ")[1:] if path.exists() else []
    return {f"## {part.splitlines()[0]}": f"## {part}".rstrip() for part in parts}


def processor() -> str:
    """The model of the processor and its cores, as far as the system tells."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"
