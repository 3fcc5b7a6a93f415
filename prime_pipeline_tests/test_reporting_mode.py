"""``mode = auto`` follows the profile of the corpus, and says so in the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.indexes.builds import read_manifest
from prime_pipeline.refresh.mode import ModeDecision, read_decision, write_decision
from prime_pipeline.reporting.mode import decide_mode
from prime_pipeline.settings import Settings, load_settings
from prime_pipeline.storage.metadata_file import MetadataFile
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.fakes import HashingEmbedder

N_NOTES = 24


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(N_NOTES):  # no headings at all
        (folder / f"note{number:02}.txt").write_text(f"Note {number} tells of wind and water.\n")
    return load_settings({"home": tmp_path / "home", "corpus": str(folder), "mode": "auto"})


@pytest.fixture
def workspace(settings: Settings) -> Iterator[Workspace]:
    opened = Workspace(settings, embedder=HashingEmbedder())
    yield opened
    opened.close()


def seal(workspace: Workspace) -> None:
    scan(open_corpus(workspace.settings.corpus_location), workspace.store)
    seal_corpus(workspace.store, workspace.home.seal("raw"), workspace.settings.corpus_location)


def manifest_mode(workspace: Workspace) -> str:
    live = workspace.builds("offline").live_path
    assert live is not None
    return read_manifest(live).mode


def test_a_corpus_without_headings_gets_vectors_of_full_texts(workspace: Workspace) -> None:
    assert workspace.mode_label == "auto: offline, vectors of metadata (undecided)"
    seal(workspace)
    decision = decide_mode(workspace)
    assert decision is not None
    assert workspace.mode_label == decision.label == "auto: offline, vectors of full texts (structure-absent)"
    assert "Metadata will not help" in decision.reasons[-1]
    assert workspace.metadata_options.reading == "full_text"
    workspace.steps("offline").publish(keep=1)
    assert manifest_mode(workspace) == decision.label


def test_too_few_documents_decide_nothing(workspace: Workspace, tmp_path: Path) -> None:
    for number in range(N_NOTES - 3):
        (tmp_path / "notes" / f"note{number:02}.txt").unlink()
    seal(workspace)
    decide_mode(workspace)
    assert workspace.mode_label == "auto: offline, vectors of metadata (inconclusive)"
    assert (workspace.mode, workspace.metadata_options.reading) == ("offline", "default")


def test_a_decision_is_not_made_again_while_nothing_changes(workspace: Workspace) -> None:
    seal(workspace)
    decide_mode(workspace)
    written = workspace.home.mode_decision.stat().st_mtime_ns
    decide_mode(workspace)
    assert workspace.home.mode_decision.stat().st_mtime_ns == written


def test_a_decision_for_full_mode_opens_the_full_track(workspace: Workspace) -> None:
    write_decision(workspace.home.mode_decision, ModeDecision.following("deficit-bridging", "full", ()))
    assert (workspace.mode, workspace.served_variant) == ("full", "full")


def test_the_settings_win_over_an_old_decision(settings: Settings, workspace: Workspace) -> None:
    write_decision(workspace.home.mode_decision, ModeDecision.following("deficit-bridging", "full", ()))
    told = Workspace(settings.model_copy(update={"mode": "offline"}), embedder=HashingEmbedder())
    assert (told.mode, told.mode_label, told.mode_decision) == ("offline", "offline", None)
    assert decide_mode(told) is None


def test_a_manifest_follows_the_mode_without_a_new_build(settings: Settings, workspace: Workspace) -> None:
    seal(workspace)
    decide_mode(workspace)
    workspace.steps("offline").publish(keep=1)
    told = settings.model_copy(
        update={"mode": "offline", "metadata": settings.metadata.model_copy(update={"reading": "full_text"})}
    )
    again = Workspace(told, embedder=HashingEmbedder())
    _, publication = again.steps("offline").publish(keep=1)
    assert not publication.changed
    assert manifest_mode(again) == "offline"
    again.close()


def test_queries_that_cannot_be_read_leave_the_decision_before(settings: Settings, tmp_path: Path) -> None:
    broken = tmp_path / "queries.jsonl"
    broken.write_text("{")
    workspace = Workspace(settings.model_copy(update={"queries": str(broken)}), embedder=HashingEmbedder())
    seal(workspace)
    before = ModeDecision.following("structure-absent", "full text", ("Because.",))
    write_decision(workspace.home.mode_decision, before)
    assert decide_mode(workspace) == read_decision(workspace.home.mode_decision) == before
    workspace.close()


def test_the_text_is_embedded_as_far_as_the_window_goes(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "notes" / "note00.txt").write_text("Wind.\n\nMore wind.\n")
    seal(workspace)
    decide_mode(workspace)
    workspace.steps("offline").publish(keep=1)
    live = workspace.builds("offline").live_path
    assert live is not None
    file = MetadataFile(live / "metadata.sqlite")
    texts = {item.doc_id: item.text for item in file.documents()}
    file.close()
    assert len(texts) == N_NOTES
    assert "Wind.\n\nMore wind." in texts.values()
