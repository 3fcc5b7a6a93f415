"""The steps of a refresh: what they make, what they leave alone, and how they heal."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from prime_pipeline.errors import DocumentChanged, IndexCorrupt, StoreCorrupt
from prime_pipeline.indexes.builds import LEXICAL_FILE, MANIFEST_FILE, METADATA_FILE, verify_build
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.records import Document
from prime_pipeline.refresh.steps import BuildSteps, StepOutcome, metadata_fingerprint
from prime_pipeline.storage.fingerprint import file_fingerprint
from prime_pipeline.storage.metadata_file import MetadataFile
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document

CORPUS = [
    make_document(f"d{i}", f"Topic {i}: words of topic{i} " + f"special{i} " * 3, title=f"Title {i}")
    for i in range(12)
]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.put(CORPUS)
    return bench


def run(steps: BuildSteps) -> dict[str, StepOutcome]:
    """All steps in the order in which a refresh runs them."""
    outcomes = {
        "lexical": steps.build_lexical(),
        "metadata": steps.synthesise_metadata(),
        "vectors": steps.build_vectors(),
    }
    return outcomes | {"publish": steps.publish(keep=3)[0]}


def changed(outcomes: dict[str, StepOutcome]) -> list[str]:
    return [name for name, outcome in outcomes.items() if outcome.changed]


def metadata_texts(bench: Bench) -> dict[str, str]:
    return {item.doc_id: item.text for item in MetadataFile(bench.live() / METADATA_FILE).documents()}


def test_a_first_refresh_makes_and_serves_everything(bench: Bench) -> None:
    outcomes = run(bench.steps())
    assert changed(outcomes) == ["lexical", "metadata", "vectors", "publish"]
    lexical = {"documents": 12, "sections": 12, "documents_written": 12, "documents_taken_out": 0}
    assert outcomes["lexical"].counts == lexical
    counts = outcomes["metadata"].counts
    assert (counts["documents"], counts["changed_texts"]) == (12, 12)
    assert counts["vocabulary"] > 24
    assert outcomes["vectors"].counts == {"vectors": 12, "dimensions": 64, "encoded": 12, "from_cache": 0}
    counts = dict(outcomes["publish"].counts)
    assert counts.pop("index_bytes") > 1000
    assert counts == {"documents": 12, "sections": 12, "vectors": 12}
    assert {outcome.build_id for outcome in outcomes.values()} == {bench.builds.live_id}
    assert bench.retriever().search("special7")[0].doc_id == "d7"


def test_samples_show_terms_and_headings(bench: Bench) -> None:
    samples = bench.steps().synthesise_metadata().samples
    assert [sample["document"] for sample in samples] == ["d0", "d1", "d10", "d11", "d2"]
    assert "special0" in samples[0]["terms"]
    assert samples[0]["headings"] == "Topic 0"


def test_with_nothing_to_do_nothing_is_done(bench: Bench) -> None:
    run(bench.steps())
    bench.embedder.texts_encoded.clear()
    before = {path: path.stat().st_mtime_ns for path in bench.live().iterdir()}
    outcomes = run(bench.steps())
    assert changed(outcomes) == []
    assert bench.embedder.texts_encoded == []
    assert {path: path.stat().st_mtime_ns for path in bench.live().iterdir()} == before
    assert outcomes["publish"].counts["documents"] == 12
    assert len(bench.builds.history()) == 1


def test_one_changed_document_encodes_only_changed_texts(bench: Bench) -> None:
    run(bench.steps())
    texts = metadata_texts(bench)
    bench.embedder.texts_encoded.clear()
    bench.put([make_document("d3", "Topic 3: another matter entirely", title="Title 3")])
    outcomes = run(bench.steps())
    now = metadata_texts(bench)
    new = sorted(text for doc_id, text in now.items() if texts[doc_id] != text)
    assert texts["d3"] != now["d3"]
    assert sorted(bench.embedder.texts_encoded) == new
    assert outcomes["metadata"].counts["changed_texts"] == len(new) < 12
    vectors = outcomes["vectors"].counts
    assert (vectors["encoded"], vectors["from_cache"]) == (len(new), 12 - len(new))
    lexical = outcomes["lexical"].counts
    assert (lexical["documents_written"], lexical["documents_taken_out"]) == (1, 1)
    assert bench.retriever().search("entirely")[0].doc_id == "d3"


def test_one_changed_document_is_the_only_one_read_and_metadata_equals_a_fresh_build(
    bench: Bench, tmp_path: Path
) -> None:
    run(bench.steps())
    new = make_document("d3", "Topic 3: another matter of topic3 special3", title="Title 3")
    bench.put([new])
    told: list[tuple[str, int, int | None]] = []
    outcomes = run(replace(bench.steps(), progress=lambda *report: told.append(report)))
    read = [report for report in told if report[0] in ("metadata", "lexical index")]
    assert read == [("lexical index", 1, 1), ("metadata", 1, 12), ("metadata", 12, 12)]
    fresh = Bench(tmp_path / "fresh")
    fresh.put([*CORPUS[:3], new, *CORPUS[4:]])
    assert run(fresh.steps())["metadata"].build_id == outcomes["metadata"].build_id
    for name in (METADATA_FILE, "vectors.npy", "vectors.json"):
        assert (bench.live() / name).read_bytes() == (fresh.live() / name).read_bytes()


def test_a_build_without_counts_is_built_upon(bench: Bench) -> None:
    run(bench.steps())
    with sqlite3.connect(bench.live() / METADATA_FILE) as connection:
        connection.execute("DROP TABLE counts")
    manifest = bench.live() / MANIFEST_FILE
    stored = json.loads(manifest.read_text())
    stored["files"][METADATA_FILE] = file_fingerprint(bench.live() / METADATA_FILE)
    manifest.write_text(json.dumps(stored))
    bench.put([make_document("d3", "Topic 3: another matter entirely", title="Title 3")])
    assert run(bench.steps())["lexical"].counts["documents_written"] == 1
    assert bench.retriever().search("entirely")[0].doc_id == "d3"


def test_a_removed_document_is_found_no_more(bench: Bench) -> None:
    run(bench.steps())
    bench.store.remove(["d5"])
    outcomes = run(bench.steps())
    assert outcomes["publish"].counts["documents"] == 11
    assert outcomes["lexical"].counts["documents_taken_out"] == 1
    assert "d5" not in bench.retriever().rank("special5 topic").documents


def test_content_that_returns_costs_no_encoding(bench: Bench) -> None:
    first = bench.publish()
    bench.publish(make_document("d3", "Topic 3: another matter", title="Title 3"))
    bench.embedder.texts_encoded.clear()
    assert bench.publish(CORPUS[3]) == first
    assert bench.embedder.texts_encoded == []


@pytest.mark.parametrize("name", [METADATA_FILE, LEXICAL_FILE, "vectors.json"])
def test_a_lost_part_of_an_unpublished_build_is_made_again(bench: Bench, name: str) -> None:
    steps = bench.steps()
    for step in (steps.synthesise_metadata, steps.build_lexical, steps.build_vectors):
        step()
    (bench.builds.staging(steps.plan.build_id) / name).unlink()
    run(bench.steps())
    assert verify_build(bench.live()).n_documents == 12


def test_publishing_makes_what_is_missing(bench: Bench) -> None:
    outcome, publication = bench.steps().publish(keep=3)
    assert outcome.changed
    assert publication.live == outcome.build_id == bench.builds.live_id
    assert verify_build(bench.live()).n_vectors == 12


@pytest.mark.parametrize("n_done", [0, 1, 2, 3])
def test_a_crash_between_two_steps_heals(bench: Bench, n_done: int) -> None:
    steps = bench.steps()
    for step in [steps.build_lexical, steps.synthesise_metadata, steps.build_vectors][:n_done]:
        step()
    names = ["lexical", "metadata", "vectors", "publish"]
    assert changed(run(bench.steps())) == names[n_done:]
    assert verify_build(bench.live()).n_documents == 12


def parts_of(folder: Path) -> Sequence[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "manifest.json")


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 200] = b"\xff" * 200
    path.write_bytes(data)


@pytest.mark.parametrize("how", [damage, Path.unlink], ids=["damaged", "deleted"])
@pytest.mark.parametrize("part", range(4))
def test_a_damaged_live_build_is_made_anew(bench: Bench, part: int, how: Callable[[Path], None]) -> None:
    run(bench.steps())
    bench.put([make_document("d3", "Topic 3: brought up to date", title="Title 3")])
    run(bench.steps())  # its lexical index was copied and changed: made afresh, it has other bytes
    question = bench.retriever().search("special7")
    live = bench.live()
    assert len(parts_of(live)) == 4
    how(live / parts_of(live)[part])
    with pytest.raises(IndexCorrupt):
        bench.retriever()
    outcomes = run(bench.steps())
    assert outcomes["metadata"].notes == ["the published build was damaged and is made anew"]
    assert bench.live() == live
    assert bench.retriever().search("special7") == question
    assert changed(run(bench.steps())) == []


@pytest.mark.parametrize("how", [damage, Path.unlink], ids=["damaged", "deleted"])
@pytest.mark.parametrize("part", range(4))
def test_nothing_is_built_upon_a_damaged_build(bench: Bench, part: int, how: Callable[[Path], None]) -> None:
    run(bench.steps())
    how(bench.live() / parts_of(bench.live())[part])
    new = make_document("d3", "Topic 3: another matter entirely", title="Title 3")
    bench.put([new])
    outcomes = run(bench.steps())
    assert outcomes["lexical"].counts["documents_written"] == 12
    assert outcomes["metadata"].counts["changed_texts"] == 12
    assert bench.retriever().search("entirely")[0].doc_id == "d3"
    assert bench.retriever().search("special7")[0].doc_id == "d7"


def test_a_document_that_changes_meanwhile_ends_the_run_and_leaves_what_is_served(bench: Bench) -> None:
    served = bench.publish()
    bench.put([make_document("d1", "Topic 1: second")])
    steps = bench.steps()
    bench.put([make_document("d1", "Topic 1: third")])
    with pytest.raises(DocumentChanged, match="'d1' changed while this run was reading it"):
        steps.synthesise_metadata()
    assert bench.builds.live_id == served
    run(bench.steps())
    assert bench.retriever().search("third")[0].doc_id == "d1"


def test_only_so_many_earlier_builds_are_kept(bench: Bench) -> None:
    ids = [bench.publish(make_document("new", f"text {i}"), keep=1) for i in range(4)]
    assert [item["build"] for item in bench.builds.history()] == ids[-2:]
    assert not bench.builds.path(ids[1]).exists()


def test_a_build_that_was_taken_back_is_not_served_again_unasked(bench: Bench) -> None:
    first = bench.publish()
    second = bench.publish(make_document("new", "text"))
    bench.builds.rollback()
    outcome, publication = bench.steps().publish(keep=3)
    assert (outcome.changed, publication.live) == (False, first)
    assert list(outcome.notes) == [publication.withheld]
    assert outcome.counts["documents"] == 12
    assert bench.steps().publish(keep=3, even_if_withdrawn=True)[1].live == second


def test_other_options_make_another_build(bench: Bench) -> None:
    first = bench.publish()
    bench.metadata_options = MetadataOptions(n_terms=1)
    assert bench.publish() != first
    bench.metadata_options = MetadataOptions()
    bench.vector_options = replace(bench.vector_options, search="hnsw")
    assert bench.publish() != first
    assert verify_build(bench.live()).vector_search == "hnsw"
    assert bench.retriever().search("special7")[0].doc_id == "d7"


def test_the_metadata_fingerprint_tells_options_apart() -> None:
    options = MetadataOptions()
    assert metadata_fingerprint(options) == metadata_fingerprint(MetadataOptions())
    others = [
        replace(options, n_terms=4),
        replace(options, alpha=0.2),
        replace(options, reading="paper_literal"),
    ]
    assert len({metadata_fingerprint(each) for each in [options, *others]}) == 4


def test_progress_is_told_of_every_document(bench: Bench) -> None:
    told: list[tuple[str, int, int | None]] = []
    run(replace(bench.steps(), progress=lambda *report: told.append(report)))
    assert ("metadata", 12, 12) in told
    assert ("lexical index", 12, 12) in told
    assert ("embeddings", 12, 12) in told


def test_a_text_that_is_hardly_latin_is_warned_about(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    chinese: Document = make_document("zh", "标题: 这是一个关于面包的文件", title="面包")
    bench.put([chinese])
    (note,) = bench.steps().build_lexical().notes
    assert "Chinese, Japanese or Korean" in note


@pytest.mark.parametrize("step", ["synthesise_metadata", "build_lexical"])
def test_one_failed_step_finds_all_damaged_documents(bench: Bench, step: str) -> None:
    for document in CORPUS:
        bench.store.put(document, document.doc_id, "source")
    for doc_id in ("d1", "d4", "d7"):
        bench.store.path(doc_id).write_bytes(b"")
    with pytest.raises(StoreCorrupt):
        getattr(bench.steps(), step)()
    unparsed = [i for i, entry in bench.store.catalogue().items() if entry.source_fingerprint is None]
    assert unparsed == ["d1", "d4", "d7"]
