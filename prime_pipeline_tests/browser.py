"""Debian's chromium, driven over the DevTools protocol by Playwright, which brings no browser of its own here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import FloatRect, Page, expect, sync_playwright

from prime_pipeline_tests.conftest import missing

WIDTH = 1400
GROUPS = ("corpus", "restructuring", "offline", "full", "reports")
_PATIENCE_MS = 60_000  # beside other tests on the same cores

_ASSETS_ARE_GREEN = """(names) => names.every((name) => [...document.querySelectorAll("svg foreignObject *")].some((node) => {
    if (node.textContent !== name) return false;
    const [red, green, blue] = getComputedStyle(node).backgroundColor.match(/[\\d.]+/g).map(Number);
    return green > red + 8 && green > blue;
}))"""


@contextmanager
def chromium() -> Iterator[Page]:
    """A page of a browser that ends with the block. The test is skipped where there is no chromium."""
    program = shutil.which("chromium")
    if program is None:
        missing("chromium is not installed")
    # Without a sandbox, which root cannot have, and without the small /dev/shm of a container.
    options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=options)
        try:
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
            page.set_default_timeout(_PATIENCE_MS)
            expect.set_options(timeout=_PATIENCE_MS)
            yield page
        finally:
            browser.close()


def open_lineage(page: Page, url: str) -> None:
    """The graph of all assets in the UI at an address, with its groups open, but for the experiment."""
    opened = ",".join(f"global@global:{group}" for group in GROUPS)
    page.goto(
        f"{url}/asset-groups?{urlencode({'expanded': opened, 'asset-selection': 'not group:experiment'})}"
    )
    page.locator("svg").get_by_text("raw_documents", exact=True).wait_for()
    # States come after names, those of some groups earlier than those of others.
    page.wait_for_function(
        _ASSETS_ARE_GREEN, arg=["raw_documents", "restructuring", "text_density", "warehouse"]
    )


def keep_screenshot(page: Page, path: Path, part: FloatRect | None = None) -> None:
    """A picture of what is seen, or of a part of it, in at most 256 colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, animations="disabled", clip=part)
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


def screenshots() -> Path | None:
    """Where PRIME_SCREENSHOTS wants them kept."""
    folder = os.environ.get("PRIME_SCREENSHOTS")
    return Path(folder).absolute() if folder else None
