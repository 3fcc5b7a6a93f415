"""Text density and the fidelity audit as a report has them, on documents that can be worked by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from prime_pipeline.evaluation import density
from prime_pipeline.evaluation.fidelity_audit import FIDELITY_CONVENTIONS, audit
from prime_pipeline.evaluation.fidelity_profile import Flags
from prime_pipeline.evaluation.statistics import share_interval
from prime_pipeline.records import Document, Section
from prime_pipeline.refresh.warehouse import FIDELITY_AUDIT, TEXT_DENSITY
from prime_pipeline.reports import published
from prime_pipeline.reports.content import (
    Contrast,
    Measured,
    ReportContent,
    bare_numbers,
    check,
)
from prime_pipeline.studies.findings import Findings, measured
from prime_pipeline.studies.texts import audit_findings, density_findings
from prime_pipeline_tests.documents import make_document


def checked(findings: Findings) -> ReportContent:
    check(findings.content)
    assert bare_numbers(findings.content) == []
    return findings.content


# --- density ------------------------------------------------------------------------------------------------------


def whole(doc_id: str, text: str, rewritten: str | None = None) -> Document:
    """A document without headings, so that every word of it is counted."""
    section = Section(0, "whole", "T", (), text, rewritten=rewritten)
    return Document(doc_id, "T", "file-name", (section,), f"{doc_id}.md", "text/markdown")


RAW = (whole("a", "the parser the lexer"), whole("b", "the grammar"))
REWRITTEN = (whole("a", "the parser the lexer", "the parser, lexer"), RAW[1])
RARE = 1 + math.log(3 / 2)
"""The IDF of a word of one of the two documents; that of "the" is 1."""


def contrasts(findings: Findings) -> dict[str, Contrast]:
    return {contrast.measure: contrast for contrast in checked(findings).density}


def test_density_worked_by_hand() -> None:
    found = contrasts(density_findings(RAW, REWRITTEN))
    assert list(found) == [
        "stop-word ratio",
        "technical term density",
        "mean IDF",
        "semantic density",
    ]
    means = {name: (c.raw.value, c.restructured.value) for name, c in found.items()}
    assert means["stop-word ratio"] == pytest.approx((1 / 2, (1 / 3 + 1 / 2) / 2))
    half, third = (1 + RARE) / 2, (1 + 2 * RARE) / 3
    assert means["mean IDF"] == pytest.approx((half, (third + half) / 2))
    # (1 - s) * mean IDF / s is the mean IDF itself at s = 1/2, and twice that at 1/3.
    assert means["semantic density"] == pytest.approx((half, (2 * third + half) / 2))
    # Half of the tokens are rare, so that no word is rarer than three quarters of them.
    assert means["technical term density"] == (0.0, 0.0)
    assert found["technical term density"].relative is None
    relative = found["stop-word ratio"].relative
    assert relative is not None
    assert relative.n == 2
    assert relative.value == pytest.approx(-1 / 6)


def test_density_has_the_names_that_published_numbers_go_by() -> None:
    found = density_findings(RAW, REWRITTEN)
    assert published.DENSITY.keys() < contrasts(found).keys()
    assert found.content.conventions == density.DENSITY_CONVENTIONS


def test_the_idf_is_that_of_the_raw_text() -> None:
    (a, b), new = RAW, whole("b", "the grammar", "unheard grammar")
    found = contrasts(density_findings([a, b], [a, new]))["mean IDF"]
    unheard = 1 + math.log(3 / 1)
    assert found.restructured.value == pytest.approx(((1 + RARE) / 2 + (unheard + RARE) / 2) / 2)


def test_a_text_without_stop_words_has_no_semantic_density() -> None:
    bare = whole("b", "the grammar", "grammar")
    found = contrasts(density_findings(RAW, [RAW[0], bare]))
    assert found["stop-word ratio"].raw.n == 2
    semantic = found["semantic density"]
    assert (semantic.raw.n, semantic.restructured.n) == (1, 1)
    assert semantic.raw.value == pytest.approx((1 + RARE) / 2)
    assert "says nothing about others" in semantic.raw.reason


def test_documents_of_one_text_only_are_not_contrasted() -> None:
    found = contrasts(density_findings(RAW, [REWRITTEN[0], whole("c", "the new")]))
    ratio = found["stop-word ratio"]
    assert (ratio.raw.value, ratio.raw.n, ratio.restructured.n) == (1 / 2, 1, 1)
    assert ratio.restructured.value == pytest.approx(1 / 3)


def test_density_of_few_documents_is_told() -> None:
    content = checked(density_findings(RAW, REWRITTEN))
    assert {contrast.n_clusters for contrast in content.density} == {2}
    assert content.notes == (
        "Text density: from 2 documents only, so that the intervals are narrower than they should be.",
    )


def test_a_row_for_every_document_text_and_measure() -> None:
    findings = density_findings(RAW, REWRITTEN)
    (rows,) = findings.rows.values()
    assert list(findings.rows) == ["text_density"]
    assert {(row["text"], row["measure"], row["doc_id"]) for row in rows} == {
        (text, measure, doc_id)
        for text in ("raw", "restructured")
        for measure in density.MEASURES
        for doc_id in ("a", "b")
    }
    assert len(rows) == 2 * 4 * 2
    assert {tuple(row) for row in rows} == {tuple(TEXT_DENSITY)}
    (ratio,) = [
        row["value"]
        for row in rows
        if (row["text"], row["measure"], row["doc_id"]) == ("restructured", "stop_word_ratio", "a")
    ]
    assert ratio == pytest.approx(1 / 3)


def test_raw_text_alone_has_rows_and_no_contrast() -> None:
    findings = density_findings(RAW, [])
    assert checked(findings).density == ()
    assert {row["text"] for row in findings.rows["text_density"]} == {"raw"}


@pytest.mark.parametrize("texts", [[], [""], [" \n"], ["...", "—"]])
def test_text_without_words_has_no_density(texts: list[str]) -> None:
    documents = [whole(str(at), text) for at, text in enumerate(texts)]
    assert density_findings(documents, documents) == Findings()


# --- fidelity -----------------------------------------------------------------------------------------------------


class Names:
    """Finds the names that it is told."""

    name = "names-1"

    def find(self, text: str) -> list[str]:
        return [name for name in ("Alpha", "Beta") if name in text]


class NotIsContradiction:
    """A whole NLI model: what says "not" contradicts whatever stands beside it. It reads 30 characters."""

    name = "not-1"
    fingerprint = "f"

    def contradiction_probabilities(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return np.array([0.9 if " not " in new else 0.1 for _, new in pairs], dtype=np.float32)

    def is_cut(self, hypothesis: str) -> bool:
        return len(hypothesis) > 30


def rewritten(document: Document, *bodies: str | None) -> Document:
    """The document with new bodies, in the order of its sections."""
    sections = [replace(s, rewritten=body) for s, body in zip(document.sections, bodies, strict=True)]
    return replace(document, sections=tuple(sections))


LOSING = rewritten(
    make_document("a", "Alpha runs for 1 day.", "Beta runs for 2 days.", "The NLI of 3 days."),
    None,
    "It runs for 4 days.",
    "Nothing.",
)
KEEPING = make_document("b", "Alpha has 5.", "Beta has 6.")
EVIDENCE = {
    "a": ["Alpha runs", "Beta runs", "The NLI of 3 days."],
    "b": ["Alpha has 5.", "Beta has 6.", "Nobody wrote that.", "It runs for 4"],
}
FLAGS: Flags = {"a#2": frozenset({"table"}), "b#1": frozenset({"procedure"})}


def audited(
    *documents: Document,
    evidence: Mapping[str, Sequence[str]] = EVIDENCE,
    flags: Flags = FLAGS,
    nli: NotIsContradiction | None = None,
    obeys_router: bool = False,
) -> Findings:
    found = audit(documents, Names(), evidence, nli)
    return audit_findings(found, flags, "gpt", obeys_router=obeys_router, evidence=evidence)


def shares(content: ReportContent) -> dict[tuple[str, str], tuple[float, int | None]]:
    """Panel and dimension to share and number of items."""
    return {(row.panel, row.dimension): (row.share.value, row.share.n) for row in content.audit}


def test_an_audit_worked_by_hand() -> None:
    content = checked(audited(LOSING, KEEPING))
    found = shares(content)
    assert found == {
        # Of five spans that stand in the raw text, a keeps the first.
        ("A", "evidence retained, verbatim"): (3 / 5, 5),
        ("A", "evidence retained, but for citation marks and blanks"): (3 / 5, 5),
        ("A", "spans only in the restructured text"): (0.0, 5),
        ("A", "documents under 50% retention"): (1 / 2, 2),
        # Of 1, 2, 3, 5 and 6 the numbers 2 and 3 are lost, and 4 is new.
        ("B", "numbers"): (3 / 5, 5),
        ("B", "acronyms"): (0.0, 1),
        ("B", "named entities"): (3 / 4, 4),
        ("B", "numbers that the document lacks"): (1 / 4, 4),
        ("B", "named entities that the document lacks"): (0.0, 3),
        # a#2 and a#3 are harmed; the router flags a#2, and b#1, which was not rewritten.
        ("D", "sections that the router would keep raw"): (2 / 5, 5),
        ("D", "harmed sections that it would have kept raw"): (1 / 2, 2),
        ("D", "rewritten sections that it would have kept raw, harmed ones among them"): (1.0, 1),
    }
    assert content.restructurer == "gpt"
    assert content.conventions == FIDELITY_CONVENTIONS


def test_a_span_of_the_restructured_text_only() -> None:
    evidence = {"a": [*EVIDENCE["a"], "runs for 4"]}
    found = shares(checked(audited(LOSING, evidence=evidence)))
    assert found["A", "spans only in the restructured text"] == (1 / 4, 4)
    assert found["A", "evidence retained, verbatim"] == (1 / 3, 3)


def test_retention_is_counted_word_for_word_as_the_paper_does() -> None:
    louder = rewritten(make_document("l", "Alpha runs."), "ALPHA RUNS.")
    found = shares(checked(audited(louder, KEEPING, evidence={"l": ["Alpha runs"], "b": ["Alpha has"]})))
    assert found["A", "evidence retained, verbatim"] == (1 / 2, 2)
    assert found["A", "evidence retained, but for citation marks and blanks"] == (1.0, 2)
    assert found["A", "documents under 50% retention"] == (1 / 2, 2)


def test_shares_name_the_documents_that_their_items_nest_in() -> None:
    clusters = {row.dimension: row.n_clusters for row in audited(LOSING, KEEPING).content.audit}
    assert clusters["evidence retained, verbatim"] == 2
    assert clusters["acronyms"] == 1
    assert clusters["documents under 50% retention"] == 2
    assert clusters["sections that the router would keep raw"] == 5


def test_a_share_of_nothing_has_an_interval_with_documents_as_trials() -> None:
    only = next(row for row in audited(LOSING, KEEPING).content.audit if "spans only" in row.dimension)
    of_documents = share_interval(0, 2)
    assert of_documents is not None
    assert (only.share.low, only.share.high) == (0.0, of_documents.high)
    assert only.share.n == 5


def test_shares_of_documents_and_sections_have_intervals_of_trials() -> None:
    content = audited(LOSING, KEEPING).content
    by_name = {row.dimension: row.share for row in content.audit}
    for name, hits, n in (
        ("documents under 50% retention", 1, 2),
        ("sections that the router would keep raw", 2, 5),
    ):
        interval = share_interval(hits, n)
        assert interval is not None
        assert by_name[name] == measured(interval)


def test_a_router_that_was_obeyed_is_not_scored() -> None:
    content = checked(audited(LOSING, KEEPING, obeys_router=True))
    found = {name: share for (panel, name), share in shares(content).items() if panel == "D"}
    assert found == {"sections that the router kept raw": (2 / 5, 5)}
    assert [note for note in content.notes if "the router was obeyed" in note]
    assert not [note for note in audited(LOSING, KEEPING).content.notes if "obeyed" in note]


def test_one_document_has_no_interval_of_its_items() -> None:
    content = checked(audited(KEEPING))
    numbers = next(row.share for row in content.audit if row.dimension == "numbers")
    assert numbers == Measured(
        1.0, None, None, 2, "one query or document only, which says nothing about others"
    )


def test_nothing_audited_is_no_row() -> None:
    content = checked(audited(evidence={}))
    assert content.audit == ()
    assert len(content.notes) == 2


def test_audited_dimensions_have_the_names_that_published_numbers_go_by() -> None:
    content = audited(LOSING, KEEPING, nli=NotIsContradiction()).content
    assert published.AUDIT.keys() < {row.dimension for row in content.audit}
    panels = [row.panel for row in content.audit]
    assert set(panels) == {"A", "B", "C", "D"}


def test_a_row_for_every_section_and_measure() -> None:
    findings = audited(LOSING, KEEPING)
    rows = findings.rows["fidelity_audit"]
    assert list(findings.rows) == ["fidelity_audit"]
    assert {tuple(row) for row in rows} == {tuple(FIDELITY_AUDIT)}
    of_section = {row["measure"]: (row["hits"], row["n"]) for row in rows if row["section_id"] == "a#2"}
    assert of_section == {
        "evidence_verbatim": (0, 1),
        "evidence_normalised": (0, 1),
        "evidence_only_restructured": (0, 1),
        "numbers_kept": (0, 1),
        "numbers_invented": (1, 1),
        "entities_kept": (0, 1),
    }
    assert {row["doc_id"] for row in rows if str(row["section_id"]).startswith("a#")} == {"a"}


# --- contradictions -----------------------------------------------------------------------------------------------

CONTRADICTED = rewritten(
    make_document("c", "It works. It is fast.", "It runs."), "It does not work. It is fast.", None
)
OTHERS = (make_document("d", "It holds."), make_document("e", "It stands."))


def test_contradictions_are_a_panel_of_their_own() -> None:
    content = checked(audited(CONTRADICTED, *OTHERS, evidence={}, nli=NotIsContradiction()))
    panel = [row for row in content.audit if row.panel == "C"]
    assert [(row.dimension, row.share.value, row.share.n) for row in panel] == [
        ("contradiction", 1 / 5, 5),
        ("sections with a contradiction", 1 / 4, 4),
        ("documents with a contradiction", pytest.approx(1 / 3), 3),
    ]
    assert "Fidelity: contradictions were looked for by not-1." in content.notes


def test_sentences_that_the_model_read_in_part_are_told() -> None:
    long = rewritten(make_document("c", "It works."), f"It {'really ' * 9}works. It {'always ' * 9}works.")
    content = audited(long, evidence={}, nli=NotIsContradiction()).content
    assert content.notes[1] == (
        "Fidelity: contradictions were looked for by not-1; it read only the beginning of 2 sentences."
    )


def test_without_a_model_there_is_no_panel_and_a_note_says_so() -> None:
    content = checked(audited(CONTRADICTED, *OTHERS, evidence={}))
    assert [row for row in content.audit if row.panel == "C"] == []
    assert content.notes == (
        "Fidelity: named entities were found by names-1.",
        "Fidelity: contradictions were not looked for, as no NLI model is set (nli_model).",
        "Fidelity: from 3 documents only, so that the intervals are narrower than they should be.",
    )


# --- notes on what was lost ---------------------------------------------------------------------------------------


def test_the_length_of_gold_spans_is_told() -> None:
    evidence = {"a": ["Alpha runs", "one two three four"], "b": ["one  two\nthree four five six"]}
    content = audited(LOSING, KEEPING, evidence=evidence).content
    assert "Fidelity: a gold span is kept whole or not at all; on average it has 4 words." in content.notes


def test_an_audit_of_few_documents_is_told_and_one_of_fewer_with_evidence() -> None:
    rest = "from {} documents only, so that the intervals are narrower than they should be."
    notes = audited(LOSING, KEEPING).content.notes
    assert [note for note in notes if "narrower" in note] == [f"Fidelity: {rest.format(2)}"]
    notes = audited(LOSING, KEEPING, make_document("c", "No evidence.")).content.notes
    assert [note for note in notes if "narrower" in note] == [
        f"Fidelity: {rest.format(3)}",
        f"Fidelity of evidence: {rest.format(2)}",
    ]
    alone = audited(LOSING, KEEPING, evidence={"a": EVIDENCE["a"]}).content
    assert not [note for note in alone.notes if "Fidelity of evidence" in note]


def test_spans_that_stand_nowhere_are_told() -> None:
    # "It runs for 4" stands in the text of another document, which is none of its own.
    content = audited(LOSING, KEEPING).content
    assert "Fidelity: no share counts 2 gold spans that neither text holds." in content.notes


def test_losing_documents_are_named_with_what_they_have_in_common() -> None:
    content = audited(LOSING, KEEPING).content
    assert (
        content.notes[-2] == "Fidelity: 1 document with less than half of their gold spans kept verbatim: a."
    )
    # a: 5 + 5 + 5 words, of which 5 + 5 + 1 are served, and 3 numbers; b: 3 + 3 words and 2 numbers.
    assert content.notes[-1] == (
        "Fidelity: means over these documents, and over the others with evidence: words 15 and 6; sections 3 and 2; "
        "words kept, as a share 0.733 and 1; numbers per 100 words 20 and 33.3; "
        "share of sections that the router would keep raw 0.333 and 0.5; "
        "share of sections with the router's reason procedure 0 and 0.5; "
        "share of sections with the router's reason table 0.333 and 0."
    )


def test_long_documents_are_told_in_whole_words() -> None:
    long = rewritten(make_document("long", "word " * 1_233 + "end"), "Nothing.")
    evidence = {"long": ["word end"], "b": EVIDENCE["b"]}
    content = audited(long, KEEPING, evidence=evidence).content
    assert "words 1,234 and 6;" in content.notes[-1]


def test_where_no_document_loses_half_the_worst_tenth_is_named() -> None:
    half = rewritten(make_document("h", "Alpha.", "Beta."), None, "Nothing.")
    evidence = {"h": ["Alpha.", "Beta."], "b": ["Alpha has 5."]}
    content = audited(half, KEEPING, evidence=evidence).content
    assert (
        "Fidelity: 1 document in the tenth that keeps least of its gold spans verbatim, though half or more: h."
        in content.notes
    )
    share = next(row.share for row in content.audit if row.dimension == "documents under 50% retention")
    assert (share.value, share.n) == (0.0, 2)


def test_where_nothing_is_lost_no_document_is_named() -> None:
    evidence = {"b": ["Alpha has 5."]}
    content = audited(KEEPING, evidence=evidence).content
    assert not [note for note in content.notes if "gold spans" in note]


def test_where_all_lose_nothing_is_compared() -> None:
    content = audited(LOSING, evidence={"a": EVIDENCE["a"]}).content
    assert content.notes[-1].endswith("with less than half of their gold spans kept verbatim: a.")


def test_ten_documents_are_named_and_no_more() -> None:
    ids = [f"d{at:02}" for at in range(11)]
    documents = [rewritten(make_document(doc_id, "Alpha."), "Nothing.") for doc_id in ids]
    evidence = {doc_id: ["Alpha."] for doc_id in ids}
    content = audited(*documents, evidence=evidence).content
    assert content.notes[-1].endswith(
        f"11 documents with less than half of their gold spans kept verbatim: {', '.join(ids[:10])}, …."
    )
    content = audited(*documents[:10], evidence=evidence).content
    assert content.notes[-1].endswith(f": {', '.join(ids[:10])}.")
