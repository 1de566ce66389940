"""Take the pictures of the report for the documentation: `python -m tests.report.photograph`, after changing how it looks."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.app.browser import browser, page_in
from tests.app.photograph import LARGEST, PICTURES, smaller
from uqprism.cli.demo_trained import run

SHOTS = {  # colours and size
    "report_wide": ("light", {"width": 1200, "height": 780}),
    "report_phone": ("dark", {"width": 390, "height": 844}),
}


def main(folder: Path) -> None:
    """The first screen of the demo's report, in each of the sizes."""
    with tempfile.TemporaryDirectory() as demo, browser() as chromium:
        report = run(Path(demo) / "report.html").report
        for name, (scheme, size) in SHOTS.items():
            with page_in(
                chromium, color_scheme=scheme, viewport=size, device_scale_factor=2 if name == "report_phone" else 1
            ) as page:
                page.goto(report.path.as_uri())
                picture = smaller(page.screenshot())
            (folder / f"{name}.png").write_bytes(picture)
            print(name, len(picture))  # noqa: T201 (a script)
            assert len(picture) < LARGEST


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
