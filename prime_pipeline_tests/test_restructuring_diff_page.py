"""The page of a document's changes: what it says, that it is safe to open, and where it lies."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from prime_pipeline.errors import StoreUnavailable
from prime_pipeline.records import DocumentOutcome, Finding, OutcomeKind, SectionOutcome
from prime_pipeline.restructuring.diff_page import diff_page, page_path, write_diff_page
from prime_pipeline_tests.documents import make_document

DOCUMENT = make_document(
    "food/bread",
    "Dough: Well, mix 500 g flour.\n\n    knead()\n",
    "Rest: You could rest it. It must not dry.",
    "Bake: Bake if it has risen.",
    "Eat: Eat it warm.",
    title="Bread",
)
MISSING = Finding("negation_missing", "“must not” is gone", ("It must not dry.",))
OUTCOME = DocumentOutcome(
    "food/bread",
    (
        SectionOutcome(1, "accepted", "Mix 500 g flour.\n\n    knead()"),
        SectionOutcome(2, "patched", "Rest it. It must not dry.", (MISSING,), ("It must not dry.",)),
        SectionOutcome(3, "routed", findings=(Finding("conditions", "1 of 1 sentences"),)),
        SectionOutcome(4, "raw", findings=(Finding("invented_number", ""),), refused="Eat it at 30 °C."),
    ),
)


def page(outcome: DocumentOutcome = OUTCOME) -> LexborHTMLParser:
    return LexborHTMLParser(diff_page(DOCUMENT, outcome))


def section(ordinal: int) -> LexborNode:
    found = page().css_first(f"#section-{ordinal}")
    assert found is not None
    return found


def texts(node: LexborNode | LexborHTMLParser, selector: str) -> list[str]:
    return [found.text() for found in node.css(selector)]


def test_the_header_says_what_became_of_the_document() -> None:
    header = page().css_first("header")
    assert header is not None
    assert texts(header, "h1") == ["Bread"]
    assert "food/bread.md" in header.text()
    assert texts(header, "strong") == ["22 → 19 words, 14% saved"]
    assert [" ".join(text.split()) for text in texts(header, ".facts > span")] == [
        "1 accepted",
        "1 patched",
        "1 routed",
        "1 raw",
    ]


def test_the_sections_are_listed_with_their_verdicts() -> None:
    tree = page()
    rows = [(row.css_first("a"), texts(row, ".badge")) for row in tree.css("nav li")]
    assert [(link and link.text(), badges) for link, badges in rows] == [
        ("Dough", ["accepted"]),
        ("Rest", ["patched"]),
        ("Bake", ["routed"]),
        ("Eat", ["raw"]),
    ]
    targets = {str(link.attributes["href"]) for link in tree.css("nav a")}
    assert targets == {f"#{found.attributes['id']}" for found in tree.css("main > section")}


def test_a_rewrite_stands_beside_the_raw_text_character_for_character() -> None:
    accepted = section(1)
    assert texts(accepted, ".text") == [
        "Well, mix 500 g flour.\n\n    knead()",
        "Mix 500 g flour.\n\n    knead()",
    ]
    assert texts(accepted, "del") == ["Well, mix"]
    assert texts(accepted, "ins") == ["Mix"]


def test_appended_sentences_have_a_mark_of_their_own() -> None:
    patched = section(2)
    assert texts(patched, "mark") == ["It must not dry."]
    assert "It must not dry." not in "".join(texts(patched, "del"))
    assert texts(patched, ".reasons li") == ["negation missing: “must not” is gone"]


def test_text_that_was_never_rewritten_stands_once_with_the_reason() -> None:
    routed = section(3)
    assert texts(routed, ".text") == ["Bake if it has risen."]
    assert texts(routed, ".reasons li") == ["conditions: 1 of 1 sentences"]
    assert not routed.css("details")


def test_a_refused_rewrite_is_folded_away_and_said_not_to_be_served() -> None:
    refused = section(4)
    assert texts(refused, ".alone .text") == ["Eat it warm."]
    assert texts(refused, ".reasons li") == ["invented number"]
    (details,) = refused.css("details")
    assert "open" not in details.attributes
    assert "refused, never served" in texts(details, "summary")[0]
    assert texts(details, ".text") == ["Eat it warm.", "Eat it at 30 °C."]
    assert texts(details, "ins") == ["at 30 °C"]


@pytest.mark.parametrize(
    ("kind", "verdict"), [("unchanged", "left the text as it was"), ("deferred", "tries again")]
)
def test_every_verdict_is_explained(kind: OutcomeKind, verdict: str) -> None:
    sections = (SectionOutcome(1, kind), *OUTCOME.sections[1:])
    found = page(replace(OUTCOME, sections=sections)).css_first("#section-1")
    assert found is not None
    assert verdict in found.text()


EVIL = "</div></style><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\"'"


def test_whatever_comes_from_a_document_or_a_model_is_text() -> None:
    document = make_document("evil", f"{EVIL}: {EVIL}", f"{EVIL}", title=EVIL)
    document = replace(document, source_path=EVIL)
    findings = (Finding("evil", EVIL),)
    tree = LexborHTMLParser(
        diff_page(
            document,
            DocumentOutcome(
                "evil",
                (
                    SectionOutcome(1, "patched", f"new {EVIL}", findings, (EVIL,)),
                    SectionOutcome(2, "raw", None, findings, refused=f"{EVIL} other"),
                ),
            ),
        )
    )
    assert not tree.css("script, img")
    assert texts(tree, "h1") == [EVIL]
    assert texts(tree, "#section-1 .text") == [EVIL, f"new {EVIL}"]
    assert texts(tree, "#section-2 .text") == [EVIL, EVIL, f"{EVIL} other"]


def test_the_page_fetches_and_runs_nothing() -> None:
    html = diff_page(DOCUMENT, OUTCOME)
    attributes = [found.attributes for found in LexborHTMLParser(html).css("*")]
    assert not {
        name for names in attributes for name in names if name in {"src", "style"} or name[:2] == "on"
    }
    assert all(str(names.get("href", "#")).startswith("#") for names in attributes)
    assert not re.search(r"url\(|@import|<link|<script", html)


def test_the_content_security_policy_allows_the_one_style_and_nothing_else() -> None:
    html = diff_page(DOCUMENT, OUTCOME)
    tree = LexborHTMLParser(html)
    (style,) = re.findall("<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = tree.css('meta[http-equiv="Content-Security-Policy"]')
    assert policy.attributes["content"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert html.startswith("<!doctype html>")


# --- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("doc_id", ["a", "../../etc/passwd", "x" * 5_000, "", "é/\udc80"])
def test_a_page_is_named_by_a_hash(tmp_path: Path, doc_id: str) -> None:
    path = page_path(tmp_path, doc_id)
    assert path.parent == tmp_path
    assert re.fullmatch(r"[0-9a-f]{40}\.html", path.name)
    assert path != page_path(tmp_path, doc_id + "x")


def test_a_page_is_written_where_it_belongs_and_replaces_the_older_one(tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "pages"
    first = write_diff_page(folder, replace(DOCUMENT, title="Old"), OUTCOME)
    second = write_diff_page(folder, DOCUMENT, OUTCOME)
    assert first == second == page_path(folder, "food/bread")
    assert second.read_text(encoding="utf-8") == diff_page(DOCUMENT, OUTCOME)
    assert list(folder.iterdir()) == [second]


def test_half_a_character_in_a_refused_rewrite_does_not_stop_the_page(tmp_path: Path) -> None:
    sections = (*OUTCOME.sections[:3], SectionOutcome(4, "raw", refused="Eat \ud83d it."))
    path = write_diff_page(tmp_path, DOCUMENT, replace(OUTCOME, sections=sections))
    assert "Eat <ins>?</ins> it" in path.read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StoreUnavailable, match="file"):
        write_diff_page(file, DOCUMENT, OUTCOME)
