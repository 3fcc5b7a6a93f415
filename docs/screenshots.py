"""Writes the pictures in images/ beside this file, from the UI and the report of a home, with chromium.

prime demo && python docs/screenshots.py .prime/demo
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import FloatRect

from prime_pipeline_tests.browser import WIDTH, chromium, keep_screenshot, open_lineage
from prime_pipeline_tests.servers import free_port, running, wait_until

IMAGES = Path(__file__).parent / "images"


def main(home: Path) -> None:
    """Write the lineage graph and the top of the report."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    def is_ready() -> bool:
        try:
            return httpx.get(f"{url}/server_info").is_success
        except httpx.TransportError:
            return False

    with tempfile.TemporaryDirectory() as folder, chromium() as page:
        log = Path(folder, "ui.log")
        command = [sys.executable, "-m", "prime_pipeline", "ui", "--home", str(home), "--port", str(port)]
        with running(command, Path(folder), log):
            wait_until(is_ready, "the start of the UI", 300)
            page.set_viewport_size({"width": 1700, "height": 1140})
            page.goto(url)
            page.get_by_text("Hide navigation").click()
            open_lineage(page, url)
            graph: FloatRect = {
                "x": 368,
                "y": 52,
                "width": 1332,
                "height": 1088,
            }  # without the list of groups
            keep_screenshot(page, IMAGES / "lineage.png", graph)
        page.set_viewport_size({"width": WIDTH, "height": 900})
        page.goto((home / "reports" / "report.html").as_uri())
        keep_screenshot(page, IMAGES / "report.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
