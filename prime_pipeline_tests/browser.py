"""Debian's chromium, driven over the DevTools protocol by Playwright, which brings no browser of its own here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from prime_pipeline_tests.conftest import missing

WIDTH = 1400
GROUPS = ("corpus", "restructuring", "offline", "full", "reports")
_PATIENCE_MS = 60_000  # beside other tests on the same cores


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


def keep_screenshot(page: Page, path: Path) -> None:
    """A picture of what is seen, in at most 256 colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page.wait_for_load_state("networkidle")  # states of assets come after their names
    page.screenshot(path=path, animations="disabled")
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


def screenshots() -> Path | None:
    """Where PRIME_SCREENSHOTS wants them kept."""
    folder = os.environ.get("PRIME_SCREENSHOTS")
    return Path(folder).absolute() if folder else None
