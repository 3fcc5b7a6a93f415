"""The page of a report: its structure, that it is safe and offline, and that a browser shows and sorts it."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from prime_pipeline.errors import ReportError
from prime_pipeline.reports.charts import Chart, Mark
from prime_pipeline.reports.content import (
    AnswerRow,
    AuditRow,
    Cell,
    Comparison,
    Contrast,
    Measured,
    Profile,
    Property,
    ReportContent,
    SystemCost,
)
from prime_pipeline.reports.figures import svg
from prime_pipeline.reports.markdown import MAX_ROWS, report_markdown
from prime_pipeline.reports.page import report_page
from prime_pipeline.reports.side_by_side import compare
from prime_pipeline_tests.conftest import missing
from prime_pipeline_tests.report_content import report_content

EMPTY = ReportContent("Empty", "nothing", "today", commands={"table-2": "prime reproduce <qasper>"})
EVIL = (
    "</text></svg></style><script>alert(1)</script><img src=http://e.example/x onerror=alert(1)>&amp;\"'`$x$ | [a](b) "
    "שלום 🙂 \udc80 " + "w" * 300
)


def evil_content() -> ReportContent:
    """Hostile text in every place that takes any."""
    result = Measured(0.2, 0.1, 0.3, 5, EVIL)
    bare = Measured(0.2, reason=EVIL)
    return ReportContent(
        title=EVIL,
        dataset=EVIL,
        created=EVIL,
        restructurer=EVIL,
        cells=(
            Cell(EVIL, EVIL, "ndcg@5", result, dataset=EVIL, restructurer=EVIL, reranker=EVIL),
            Cell(EVIL, "hybrid+rerank", EVIL, None, EVIL, question_type=EVIL),
        ),
        comparisons=(
            Comparison(
                EVIL, EVIL, EVIL, EVIL, EVIL, bare, result, dataset=EVIL, restructurer=EVIL, reranker=EVIL
            ),
        ),
        density=(Contrast(EVIL, result, bare, result),),
        evidence=(Contrast(EVIL, result, result, bare, EVIL),),
        answers=(AnswerRow(EVIL, result),),
        audit=(AuditRow("A", EVIL, result),),
        costs=(SystemCost(EVIL, {EVIL: 1.0}, EVIL, EVIL, EVIL),),
        profile=Profile(EVIL, EVIL, (EVIL,), (Property(EVIL, result, EVIL),)),
        settings={EVIL: EVIL},
        fingerprints={EVIL: EVIL},
        conventions=(EVIL,),
        notes=(EVIL,),
        commands={"table-3": EVIL, "table-4": EVIL},
    )


PAGES = {
    "full": report_page(report_content()),
    "empty": report_page(EMPTY),
    "evil": report_page(evil_content()),
    "comparison": compare(report_content(), evil_content()),
}
each_page = pytest.mark.parametrize("html", PAGES.values(), ids=PAGES)


def tree(name: str) -> LexborHTMLParser:
    return LexborHTMLParser(PAGES[name])


def texts(node: LexborHTMLParser, selector: str) -> list[str]:
    return [" ".join(found.text().split()) for found in node.css(selector)]


# --- structure --------------------------------------------------------------------------------------------------


@each_page
def test_the_contents_lead_to_what_is_there(html: str) -> None:
    found = LexborHTMLParser(html)
    targets = [str(link.attributes["href"])[1:] for link in found.css("nav a")]
    ids = [str(node.attributes["id"]) for node in found.css("[id]")]
    assert len(ids) == len(set(ids))
    assert targets
    assert set(targets) <= set(ids)


def test_a_report_begins_with_its_summary() -> None:
    assert texts(tree("full"), "h1") == ["PRIME on QASPER"]
    assert texts(tree("full"), "main > section:first-child h2") == ["Summary"]
    assert texts(tree("full"), ".summary dt")[:3] == ["Data", "Text", "Retrieval"]
    assert texts(tree("full"), ".meta span")[:2] == ["queries from “qasper-test”", "416 documents"]
    assert texts(tree("empty"), ".meta span") == ["nothing", "today"]


def test_a_table_without_rows_names_the_command_that_fills_it() -> None:
    assert texts(tree("empty"), "#table-2 .empty") == [
        "Nothing was measured for this table. It is filled by prime reproduce <qasper>"
    ]
    assert texts(tree("empty"), "#table-1 .empty") == ["Nothing was measured for this table."]
    assert not tree("empty").css("table, svg")


def test_published_numbers_are_set_apart() -> None:
    assert texts(tree("full"), "#table-2 td.published .value")[:2] == ["0.175", "0.311"]
    assert texts(tree("full"), "#table-1 td.absent")[0].startswith("unavailable: no cross-encoder")


@each_page
def test_every_column_has_a_button_to_sort_by_and_every_table_a_frame_to_scroll_in(html: str) -> None:
    found = LexborHTMLParser(html)
    assert len(found.css("th > button")) == len(found.css("th[scope=col]"))
    assert len(found.css(".scroll[tabindex='0'][role=region] > table")) == len(found.css("table"))


def test_every_figure_says_what_it_shows() -> None:
    figures = tree("full").css("figure svg")
    assert len(figures) == 7
    for figure in figures:
        title, description = figure.css_first("title"), figure.css_first("desc")
        assert title is not None
        assert description is not None
        named = f"{title.attributes['id']} {description.attributes['id']}"
        assert figure.attributes["aria-labelledby"] == named
    assert "chunk-256, dense 0.183 [" in texts(tree("full"), "#table-2 desc")[0]


def test_thousands_of_cells_are_shown_in_a_few_seconds() -> None:
    cells = tuple(
        Cell(f"r{n}", "dense", "ndcg@5", Measured(n / 5_000, n / 6_000, n / 4_000, 9)) for n in range(5_000)
    )
    started = time.perf_counter()
    html = report_page(replace(EMPTY, cells=cells))
    assert time.perf_counter() - started < 20
    assert len(LexborHTMLParser(html).css("#all-cells tbody tr")) == 5_000
    assert "4964 more numbers stand in the table only" in html


def test_equal_contents_give_equal_bytes() -> None:
    assert report_page(report_content()) == PAGES["full"]


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ReportError, match="nan"):
        report_page(replace(EMPTY, cells=(Cell("a", "b", "c", Measured(float("nan"))),)))


# --- safety -----------------------------------------------------------------------------------------------------


def test_whatever_a_report_names_is_text() -> None:
    found = tree("evil")
    shown = EVIL.replace("\udc80", "?")
    assert len(found.css("script")) == 1
    assert len(found.css("style")) == 1
    assert not found.css("img, a[href^=b]")
    assert [node.text() for node in found.css("h1")] == [shown]
    assert shown in [node.text() for node in found.css("#settings td .value")]
    assert any("שלום" in text for text in texts(tree("evil"), "svg desc"))


@each_page
def test_the_page_fetches_nothing(html: str) -> None:
    nodes = LexborHTMLParser(html).css("*")
    addresses = [
        str(node.attributes[name]) for node in nodes for name in ("href", "src") if name in node.attributes
    ]
    assert all(address.startswith("#") for address in addresses)
    assert not [
        node
        for node in nodes
        if "style" in node.attributes or any(a.startswith("on") for a in node.attributes)
    ]
    styles = " ".join(node.text() for node in LexborHTMLParser(html).css("style, script"))
    assert not re.search(r"url\(|@import|https?:|fetch|XMLHttpRequest", styles)
    assert not [node for node in nodes if node.tag in {"link", "iframe", "object", "embed", "base"}]


@each_page
def test_the_policy_allows_the_one_style_and_the_one_script(html: str) -> None:
    def digest(tag: str) -> str:
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    (policy,) = LexborHTMLParser(html).css('meta[http-equiv="Content-Security-Policy"]')
    assert policy.attributes["content"] == (
        f"default-src 'none'; style-src 'sha256-{digest('style')}'; script-src 'sha256-{digest('script')}'; "
        "base-uri 'none'; form-action 'none'"
    )


# --- figures ----------------------------------------------------------------------------------------------------


def marks(*results: Measured) -> tuple[Mark, ...]:
    return tuple(Mark(f"system {at}", result, 0.3) for at, result in enumerate(results))


def test_a_figure_draws_dots_whiskers_and_diamonds_in_the_colours_of_the_page() -> None:
    drawn = svg(Chart("Title", "axis", marks(Measured(0.2, 0.1, 0.3), Measured(0.5))), "name")
    figure = LexborHTMLParser(drawn)
    assert not re.search(r"#[0-9a-f]{6}|style=|xmlns|<!--", drawn)
    assert texts(figure, "text")[-3:] == ["system 0", "system 1", "axis"] or "system 0" in texts(
        figure, "text"
    )
    assert len(figure.css("use[fill='var(--mark)']")) == 2
    assert len(figure.css("use[fill='var(--ground)'][stroke='var(--quiet)']")) == 2


def test_dots_are_hollow_where_a_change_cannot_be_told() -> None:
    told, untold = marks(Measured(0.2, 0.1, 0.3), Measured(0.2, 0.1, 0.3))
    chart = Chart("t", "a", (told, replace(untold, is_hollow=True)), is_change=True)
    figure = LexborHTMLParser(svg(chart, "name"))
    dots = figure.css("use[stroke='var(--mark)']")
    assert [dot.attributes["fill"] for dot in dots] == ["var(--mark)", "var(--ground)"]
    assert texts(figure, "desc") == [
        "a: system 0 0.2000 [0.1000, 0.3000]; system 1 0.2000 [0.1000, 0.3000], which cannot be told"
    ]


def test_the_caption_says_when_dots_are_hollow() -> None:
    assert "hollow where no difference can be told" in texts(tree("full"), "#comparisons figcaption")[0]
    assert "hollow where no change can be told" in texts(tree("full"), "#table-5a figcaption")[0]
    assert "hollow" not in texts(tree("full"), "#table-2 figcaption")[0]


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e300, -5.0])
def test_a_figure_of_a_single_number_of_any_size_can_be_drawn(value: float) -> None:
    assert svg(Chart("t", "a", (Mark("only", Measured(value)),)), "name").startswith("<svg")


# --- Markdown ---------------------------------------------------------------------------------------------------


def test_markdown_has_every_table_and_the_same_sentences() -> None:
    markdown = report_markdown(report_content())
    headings = re.findall("^### (.*)$", markdown, re.MULTILINE)
    assert headings == texts(tree("full"), "h3")
    rows = [line for line in markdown.splitlines() if line.startswith("| structure-chunks")]
    assert any("0.207 \\[0.1" in row for row in rows)
    assert "prime reproduce" not in markdown
    assert "It is filled by `prime reproduce <qasper>`" in report_markdown(EMPTY)


def test_markdown_from_hostile_names_holds_no_markup() -> None:
    from markdown_it import MarkdownIt

    markdown = report_markdown(evil_content())
    html = LexborHTMLParser(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))
    assert not html.css("script, img, a, svg")
    assert {len(row.css("td")) for row in html.css("table")[1].css("tbody tr")} == {
        len(html.css("table")[1].css("th"))
    }
    assert EVIL.replace("\udc80", "?") in [" ".join(node.text().split()) for node in html.css("h1")]


def test_long_tables_are_cut_in_markdown() -> None:
    settings = {f"setting {n}": "x" for n in range(MAX_ROWS + 3)}
    assert "3 more rows: see the page." in report_markdown(replace(EMPTY, settings=settings))


# --- in a browser -----------------------------------------------------------------------------------------------

SORTS = """<script>
const table = document.querySelector("#table-2 table");
const column = () => [...table.tBodies[0].rows].map((row) => row.cells[1].dataset.order ?? "-").join(",");
const button = table.querySelectorAll("th button")[1];
const state = () => table.querySelectorAll("th")[1].getAttribute("aria-sort") + ":" + column();
button.focus(); button.click(); const up = state();
button.click(); const down = state();
table.querySelectorAll("th button")[0].click();
document.title = [up, down, table.querySelectorAll("[aria-sort]").length, document.activeElement === button].join(";");
</script></body>"""


def opened(path: Path, html: str) -> tuple[str, list[str]]:
    """The document after its scripts ran, and what was written to the console."""
    browser = shutil.which("chromium")
    if browser is None:
        missing("chromium is not installed")
    page = path / "page.html"
    page.write_text(html, encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        f"--user-data-dir={path / 'profile'}",
    ]
    options += [
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
    ]
    options += ["--enable-logging=stderr", "--v=0", "--virtual-time-budget=3000", "--dump-dom"]
    result = subprocess.run(
        [str(browser), *options, page.as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    return result.stdout, [line for line in result.stderr.splitlines() if "CONSOLE" in line]


@each_page
def test_a_browser_shows_the_page_without_a_word_of_complaint(tmp_path: Path, html: str) -> None:
    document, console = opened(tmp_path, html)
    assert console == []
    assert len(LexborHTMLParser(document).css("article")) == len(LexborHTMLParser(html).css("article"))


def test_a_browser_complains_of_what_the_policy_forbids(tmp_path: Path) -> None:
    _, console = opened(
        tmp_path, PAGES["full"].replace("</body>", "<script>document.title = 1</script></body>")
    )
    assert len(console) == 1
    assert "Content Security Policy" in console[0]


def test_tables_sort_both_ways_and_say_so(tmp_path: Path) -> None:
    policy = r'<meta http-equiv="Content-Security-Policy"[^>]*>'
    html = re.sub(policy, "", PAGES["full"]).replace("</body>", SORTS)
    document, console = opened(tmp_path, html)
    assert console == []
    title = LexborHTMLParser(document).css_first("title")
    assert title is not None
    assert title.text() == (
        "ascending:0.183,0.204,0.207,0.209,0.219,-,-;descending:0.219,0.209,0.207,0.204,0.183,-,-;1;true"
    )
