"""What users click: the web UI with its daemon, a report, and the page for queries, in a real browser on real servers.

PRIME_SCREENSHOTS=DIR keeps pictures of all that is seen there; without it they go with pytest's folder.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from prime_pipeline_tests.browser import chromium, keep_screenshot, open_lineage, screenshots
from prime_pipeline_tests.fakes import tiny_bert
from prime_pipeline_tests.servers import free_port, own_environment, running, wait_until

ROOT = Path(__file__).parent.parent
PRIME = [sys.executable, "-m", "prime_pipeline"]
PICTURES = screenshots()  # read once: no test sees PRIME_* variables
BACKFILL_MS = 300_000

DOCUMENTS = {
    "guide/keys.md": "# Partition keys\n\n## Slugs\n\nA key is a slug of the path.\n\n"
    "## Hashes\n\nWhere two slugs are equal, a hash is added.\n",
    "guide/retries.md": "# Retries\n\nCalls to other services fail now and then.\n\n## Backoff\n\n"
    "A call that fails is tried again after 250 ms, and every further attempt waits twice as long as the one before. "
    "In other words, the waiting time doubles until it reaches 8 s. It should be noted that a random share of at most "
    "20 % is added, so that clients do not all come back at the same time. The client gives up after 6 attempts.\n\n"
    "## Limits\n\nGive up after a minute.\n",
    "index.md": "# Handbook\n\n## Purpose\n\nWhat the service does and how it is operated.\n",
    "lineage.md": "# Lineage\n\n## Graph\n\nThe graph shows which asset is made of which.\n",
}
SETTINGS = """corpus = "docs"
embedder = "tiny-bert"
mode = "full"
queries = "known-items:"
"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium() as page:
        yield page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, page: Page) -> Path:
    """A folder with documents, settings, and a home that one refresh has filled."""
    folder = tmp_path_factory.mktemp("browser")
    tiny_bert(folder)
    (folder / "prime.toml").write_text(SETTINGS)
    for name, text in DOCUMENTS.items():
        (folder / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "docs" / name).write_text(text)
    subprocess.run(
        [*PRIME, "refresh"], cwd=folder, env=own_environment(), check=True, timeout=300, capture_output=True
    )
    return folder


@pytest.fixture(scope="module")
def ui(folder: Path) -> Iterator[str]:
    """The address of ``prime ui`` on the folder."""
    port = free_port()
    with running([*PRIME, "ui", "--port", str(port)], folder, folder / "ui.log"):
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(f"{url}/server_info"), "the web server's start", 300)
        yield url


@pytest.fixture
def look(page: Page, tmp_path: Path) -> Callable[[str], None]:
    return lambda name: keep_screenshot(page, (PICTURES or tmp_path) / f"{name}.png")


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).is_success
    except httpx.TransportError:
        return False


def test_the_lineage_graph_shows_the_assets(page: Page, ui: str, look: Callable[[str], None]) -> None:
    open_lineage(page, ui)
    for name in ("corpus_scan", "raw_corpus", "lexical_index", "published_index", "warehouse", "report"):
        expect(page.locator("svg").get_by_text(name, exact=True).first).to_be_visible()
    look("lineage")

    page.goto(f"{ui}/assets/corpus_scan")
    expect(page.get_by_text("Compares the corpus with the stored documents").first).to_be_visible()
    look("asset")


def test_a_backfill_is_started_by_clicks_and_finishes(
    page: Page, ui: str, look: Callable[[str], None]
) -> None:
    page.goto(f"{ui}/assets/raw_documents?view=partitions")
    expect(page.get_by_text(f"Materialized ({len(DOCUMENTS)})")).to_be_visible()
    page.get_by_text("index.md", exact=True).first.click()
    expect(page.get_by_text("Handbook").first).to_be_visible()  # the document's title
    job = page.get_by_role("link", name="refresh", exact=True)
    expect(job).to_be_visible()  # what made it so far
    look("partition")

    page.get_by_role("button", name="Materialize…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="All", exact=True).click()
    expect(dialog.get_by_text(f"{len(DOCUMENTS)} partitions")).to_be_visible()
    look("backfill-dialog")
    dialog.get_by_role("button", name="Launch backfill").click()
    (backfill,) = re.findall(r"Created backfill (\w+)", page.get_by_text("Created backfill").inner_text())

    page.goto(f"{ui}/runs?view=backfills")
    expect(page.get_by_role("link", name=backfill)).to_be_visible()  # the only one
    expect(page.get_by_text("Success", exact=True)).to_be_visible(timeout=BACKFILL_MS)
    look("backfills")

    page.goto(f"{ui}/assets/raw_documents?view=partitions&partition=index.md")
    expect(page.get_by_text("Handbook").first).to_be_visible()
    expect(job).to_have_count(0)
    look("partition-after")


def test_a_report_is_found_in_the_ui_and_opened(
    page: Page, ui: str, folder: Path, look: Callable[[str], None]
) -> None:
    page.goto(f"{ui}/assets/report")
    expect(page.get_by_text(str(folder / ".prime" / "reports" / "report.html")).first).to_be_visible()
    page.get_by_text("[Show Markdown]").click()
    expect(page.get_by_role("dialog").get_by_text("Retrieval report").first).to_be_visible()
    look("report-asset")

    complaints = complaints_of(page)
    page.goto((folder / ".prime" / "reports" / "report.html").as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text("Retrieval report: docs")
    expect(page.get_by_text(f"{len(DOCUMENTS)} documents").first).to_be_visible()
    look("report")
    page.get_by_role("link", name="Table 6. Fidelity audit").click()
    expect(page.locator("#table-6 table")).to_be_in_viewport()
    look("report-fidelity")
    assert complaints == []


def test_a_question_is_answered_with_raw_and_restructured_text(
    page: Page, folder: Path, look: Callable[[str], None]
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    complaints = complaints_of(page)
    with running([*PRIME, "serve", "--port", str(port)], folder, folder / "serve.log"):
        wait_until(lambda: answers(f"{url}/health"), "the start of prime serve", 120)
        page.goto(url)
        look("query-page")
        page.get_by_label("Question").fill("when is a failed call tried again?")
        page.get_by_label("Sections").fill("3")
        page.get_by_role("button", name="Search").click()
        hit = page.get_by_role("article").filter(
            has_text="Retries › Backoff"
        )  # the encoder is none to rank by
        raw, restructured = hit.locator(".side").nth(0), hit.locator(".side").nth(1)
        expect(raw.locator("del")).to_contain_text("In other words")
        expect(restructured).to_contain_text("The waiting time doubles")
        expect(restructured).not_to_contain_text("In other words")
        hit.get_by_text("Why it was found").click()
        expect(hit.get_by_role("row").filter(has_text="Words")).to_contain_text("tried")
        look("query-answer")

        hit.get_by_role("link").click()
        expect(page.locator("body")).to_contain_text("guide/retries.md")
    assert complaints == []


def complaints_of(page: Page) -> list[str]:
    """A list that grows with what pages from now on complain of."""
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints
