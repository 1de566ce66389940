"""Check what is in the wheel and the source distribution, and try the wheel, without extras first, in an environment of its own.

python release/try_wheel.py dist
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path
from zipfile import ZipFile

NEEDED = ("py.typed", "measures/paper_tables.json", "report/templates/report.html", "report/templates/report.css")
SOURCES = ("LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "src/uqprism/__init__.py")
CORE = """
import importlib.metadata, numpy as np, uqprism as up
assert up.__version__ == importlib.metadata.version("uqprism")
ens = up.EnsemblePrediction.gaussian(mean=[[0.0, 1.0], [0.5, 3.0]], variance=np.ones((2, 2)))
for rule in ("crps", "log", "quadratic", "squared_error"):
    parts = up.decompose(ens, rule=rule)
    np.testing.assert_allclose(parts.total, parts.bayes + parts.excess)
assert len(up.catalogue()) == 144
ens.save("ens.npz"); up.EnsemblePrediction.load("ens.npz")
try:
    up.DeepEnsembleRegressor
except ImportError as error:
    print(error)
"""


def main(folder: str) -> None:
    """Check the one wheel and the one source distribution in this folder."""
    (wheel,), (sources,) = Path(folder).glob("*.whl"), Path(folder).glob("*.tar.gz")
    check_contents(wheel, sources)
    with tempfile.TemporaryDirectory() as place:
        try_wheel(wheel.resolve(), Path(place))
    print(f"{wheel.name} and {sources.name} are good")


def check_contents(wheel: Path, sources: Path) -> None:
    """Nothing but the package, with all of its data."""
    names = ZipFile(wheel).namelist()
    foreign = [name for name in names if not re.match(r"uqprism(-[\w.]+\.dist-info)?/", name) or "__pycache__" in name]
    lacking = [name for name in NEEDED if f"uqprism/{name}" not in names]
    with tarfile.open(sources) as archive:
        there = {name.split("/", 1)[-1] for name in archive.getnames()}
    lacking += [name for name in SOURCES if name not in there]
    if foreign or lacking or not any(name.endswith("licenses/LICENSE") for name in names):
        sys.exit(f"wheel: not of the package: {foreign}; lacking, or without LICENSE: {lacking}")


def try_wheel(wheel: Path, place: Path) -> None:
    """The core alone works; what needs more says how to get it, and then works."""
    venv.create(place / "env", with_pip=True)
    python = place / "env" / "bin" / "python"

    def run(*command: str, code: int = 0) -> str:
        done = subprocess.run(list(command), cwd=place, capture_output=True, text=True, check=False)
        if done.returncode != code:
            sys.exit(f"{shlex.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    run(str(python), "-m", "pip", "install", "--quiet", str(wheel))
    hints = [run(str(python), "-W", "error", "-c", CORE), run(str(place / "env/bin/uqprism"), "--help", code=1)]
    for hint in hints:
        print(hint.strip())
        if not re.search(r"pip install '.*uqprism\[\w+\]", hint):
            sys.exit("no command to install the extra")
    (place / "in.csv").write_text("mean_0,mean_1,scale_0,scale_1\n1,2,1,1\n3,5,1,2\n")
    command = shlex.split(hints[1].split("with: ", 1)[1])  # followed to the letter
    run(str(python), "-m", *command, "--quiet")
    print(run(str(place / "env/bin/uqprism"), "score", "in.csv", "-o", "out.csv").strip())


if __name__ == "__main__":
    main(*sys.argv[1:])
