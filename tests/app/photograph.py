"""Take the pictures of the page for the documentation: `python -m tests.app.photograph`, after changing how it looks."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from tests.app.browser import browser, finished, page_in, served

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
LARGEST = 150_000  # bytes
WIDE, PHONE = {"width": 1280, "height": 1500}, {"width": 390, "height": 1700}
SHOTS = {  # colours, size, and whether it is the explorer
    "app_light": ("light", WIDE, False),
    "app_dark": ("dark", WIDE, False),
    "app_phone": ("dark", PHONE, False),
    "app_explorer": ("light", WIDE, True),
    "app_explorer_phone": ("light", PHONE, True),
}


def settled(page: Any) -> None:
    """Wait until nothing is being computed and every picture is drawn."""
    finished(page)
    page.locator("[data-testid=stVegaLiteChart] canvas:visible, [data-testid=stVegaLiteChart] svg:visible").first.wait_for()
    page.locator("[data-testid=stSkeleton]:visible").first.wait_for(state="hidden")
    page.wait_for_load_state("networkidle")


def take(chromium: Any, url: str, scheme: str, size: dict[str, int], *, explorer: bool) -> bytes:
    """The page as a picture: the whole on a wide screen, the beginning on a phone."""
    with page_in(chromium, color_scheme=scheme, viewport=size) as page:
        page.goto(url)
        page.get_by_role("button", name="Try the example").click()
        page.get_by_role("heading", name="Downloads").wait_for()
        if explorer:
            page.get_by_role("tab", name="Posterior explorer").click()
            page.get_by_role("button", name="means spread").click()
            page.get_by_text("to 2, variances").wait_for()
        settled(page)
        if size is WIDE:
            height = page.evaluate("document.querySelector('[data-testid=stMain] > div').scrollHeight")
            page.set_viewport_size({**size, "height": int(height) + 20})
            settled(page)
        return page.screenshot()


def smaller(picture: bytes) -> bytes:
    """The same with fewer colours, which a page has enough of."""
    from PIL import Image

    stream = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(80, dither=Image.Dither.NONE).save(stream, "png", optimize=True)
    return stream.getvalue()


def main(folder: Path) -> None:
    """Every picture into the folder."""
    with served() as url, browser() as chromium:
        for name, (scheme, size, explorer) in SHOTS.items():
            picture = smaller(take(chromium, url, scheme, size, explorer=explorer))
            (folder / f"{name}.png").write_bytes(picture)
            print(name, len(picture))  # noqa: T201 (a script)
            assert len(picture) < LARGEST


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
