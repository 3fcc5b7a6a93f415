"""Forgetting: nothing of a document is left in the bytes of its home, and nothing of it comes back."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.documents import RAW_DOCUMENTS
from prime_pipeline.defs.forgetting import ForgettingReport, forget, scrub_history
from prime_pipeline.defs.instance import open_instance
from prime_pipeline.defs.liveness import process_tags
from prime_pipeline.defs.runs import run_refresh
from prime_pipeline.errors import DocumentUnknown, HistoryElsewhere, NothingWouldBeLeft, RefreshRunning
from prime_pipeline.llm.chat import Reply, Usage
from prime_pipeline.records import Spending
from prime_pipeline.reporting.forgetting import include_again, kept_of
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.ledger import LedgerLine
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.defs.conftest import PAGES, OpenWorkspace
from prime_pipeline_tests.fakes import HashingEmbedder
from prime_pipeline_tests.killing import killed_after

defs = definitions()

SECRET = "guide/secret.md"
TITLE = "Quillfeather Protocol"
SENTENCE = "The marmalade vault opens when seven violet lanterns are lit at dawn."
HEADING = "Lanternwork"
TEXT = (
    f"# {TITLE}\n\n## {HEADING}\n\nIt is worth noting that nobody is told. {SENTENCE} Moreover, it closes again.\n\n"
    "## Rest\n\nOther words.\n"
)
NEEDLES = (
    TITLE,
    SENTENCE,
    HEADING,
    "lanternwork",
    "marmalad",
    "marmalade vault",
)  # as it was written, and as indexes write it


def files_with(folder: Path, needles: tuple[str, ...]) -> dict[str, list[str]]:
    """What is found in the bytes of all files."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            hits = [needle for needle in needles if needle.encode() in data]
            if hits:
                found[str(path.relative_to(folder))] = hits
    return found


@pytest.fixture
def corpus_with_secret(corpus: Path) -> Path:
    (corpus / SECRET).write_text(TEXT)
    return corpus


def forgotten(workspace: Workspace, *names: str) -> ForgettingReport:
    return forget(defs, workspace, kept_of(workspace, names))


def closed(workspace: Workspace) -> Path:
    workspace.close()
    return workspace.home.root


def test_nothing_of_a_forgotten_document_is_left_in_the_home(
    open_workspace: OpenWorkspace, corpus_with_secret: Path, tmp_path: Path
) -> None:
    queries = tmp_path / "queries.jsonl"
    lines = [
        {"query": "exponential backoff", "relevant": "more.md"},
        {"query": "violet light", "relevant": SECRET},
    ]
    queries.write_text("\n".join(map(json.dumps, lines)) + "\n")
    options = {"mode": "full", "queries": str(queries), "restructuring": {"entities": "rule"}}
    run_refresh(defs, open_workspace(**options))
    secret = corpus_with_secret / SECRET
    secret.write_text(
        TEXT + "\n## More\n\nAdded later.\n"
    )  # so that a second build was made out of the first
    workspace = open_workspace(**options)
    run_refresh(defs, workspace)
    with workspace.retriever() as retriever:
        assert retriever.search(SENTENCE)[0].doc_id == SECRET
    workspace.replies.note_origin("key", [SECRET])
    workspace.replies.keep_reply("key", "m", Reply(SENTENCE, "stop", Usage(1, 1, estimated=False), 0.1))
    workspace.replies.keep_verdict("other key", "gate", SENTENCE)
    workspace.ledger.add(LedgerLine("run", SECRET, Spending(calls=2, prompt_tokens=7), 0.5))
    workspace.home.reports.joinpath("comparison.html").write_text(SENTENCE)
    assert len(files_with(closed(workspace), NEEDLES)) > 8

    workspace = open_workspace(**options)
    report = forgotten(workspace, SECRET)
    assert files_with(closed(workspace), NEEDLES) == {}
    assert not report.is_partial
    assert (workspace.home.reports / "report.html").is_file()  # made anew
    assert workspace.home.warehouse.is_file()
    assert report.removed["replies"] == 1
    assert report.removed["vectors"] > 2
    assert [line for line in workspace.ledger.lines() if line.doc_id] == []
    assert workspace.ledger.totals()["run"] == Spending(calls=2, prompt_tokens=7)
    with open_workspace(**options).retriever() as retriever:
        assert retriever.manifest.n_documents == len(PAGES)
        assert all(hit.doc_id != SECRET for hit in retriever.search(SENTENCE))


@pytest.fixture(scope="module")
def refreshed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a home that was refreshed in full mode, to be copied."""
    folder = tmp_path_factory.mktemp("refreshed")
    for name, text in {**PAGES, SECRET: TEXT}.items():
        path = folder / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with closing(workspace_in(folder, mode="full", restructuring={"entities": "rule"})) as workspace:
        run_refresh(defs, workspace)
    return folder


@pytest.fixture
def folder(refreshed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(refreshed, tmp_path / "copy"))


def workspace_in(folder: Path, **options: object) -> Workspace:
    settings = load_settings({"home": folder / "home", "corpus": str(folder / "corpus"), **options})
    return Workspace(settings, embedder=HashingEmbedder())


def test_what_is_forgotten_stays_away_until_it_is_undone(folder: Path) -> None:
    with open_instance(workspace_in(folder).home) as instance:
        (first,) = instance.get_runs()
    with closing(workspace_in(folder)) as workspace:  # in another mode than what was published before
        forgotten(workspace, SECRET)
    assert files_with(folder / "home", NEEDLES) == {}
    assert list((folder / "home" / "indexes" / "full" / "builds").glob("*")) == []
    check_history(workspace, first.run_id)

    with closing(workspace_in(folder)) as workspace:
        summary = run_refresh(defs, workspace)
    assert (summary.scan.n_forgotten, summary.scan.n_changes) == (1, 0)
    assert [name for name, step in summary.steps.items() if step["changed"]] == []
    assert [entry.is_complete for entry in workspace.forgotten.entries()] == [True]
    assert files_with(folder / "home", NEEDLES) == {}
    include_again(workspace, [SECRET])
    with closing(workspace_in(folder)) as workspace:
        assert run_refresh(defs, workspace).scan.added == (SECRET,)


def check_history(workspace: Workspace, run_id: str) -> None:
    """Dagster keeps runs and numbers, and partitions of the others only."""
    with open_instance(workspace.home) as instance:
        assert run_id in {run.run_id for run in instance.get_runs()}
        events = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        scans = [
            e for e in events if e.dagster_event and e.dagster_event.asset_key == dg.AssetKey("corpus_scan")
        ]
        assert scans[0].asset_materialization is not None
        assert scans[0].asset_materialization.metadata["added"].value == len(PAGES) + 1
        keys = instance.get_materialized_partitions(RAW_DOCUMENTS)
    assert len(keys) == len(PAGES)
    assert not any("secret" in key for key in keys)


def test_a_document_that_left_before_is_forgotten_in_earlier_builds_and_copies(
    open_workspace: OpenWorkspace, corpus_with_secret: Path
) -> None:
    for number in range(12):  # so few of them change that the next index is made out of a copy of the first
        (corpus_with_secret / f"page{number}.md").write_text(
            f"# Page {number}\n\n## One\n\nWords {number}.\n"
        )
    run_refresh(defs, open_workspace())
    (corpus_with_secret / SECRET).unlink()
    summary = run_refresh(defs, open_workspace())
    assert summary.steps["offline/lexical_index"]["documents_taken_out"] == 1
    workspace = open_workspace()
    forgotten(workspace, SECRET)
    assert files_with(closed(workspace), NEEDLES) == {}


def test_titles_in_tags_and_tables_give_way_to_a_placeholder(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    record = {"__class__": "TableRecord", "data": {"document": "a.md", "terms": "lantern, dawn"}}
    entry = {"entry_data": {"records": [record]}, "label": "a.md", "__class__": "EventMetadataEntry"}
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE run_tags (run_id TEXT, key TEXT, value TEXT)")
        connection.execute("CREATE TABLE event_logs (event TEXT, partition TEXT)")
        connection.executemany(
            "INSERT INTO run_tags VALUES ('1', ?, ?)",
            [("title", "Größe"), ("job", "refresh"), ("other", "Größer")],
        )
        connection.execute("INSERT INTO event_logs VALUES (?, NULL)", (json.dumps(entry),))
        connection.execute("INSERT INTO event_logs VALUES ('{}', 'a.md')")
    assert scrub_history(tmp_path, ["a.md", "Größe"]) == 3
    with closing(sqlite3.connect(path)) as connection:
        tags = dict(connection.execute("SELECT key, value FROM run_tags"))
        ((event, partition),) = connection.execute("SELECT event, partition FROM event_logs").fetchall()
    assert tags == {"title": "(forgotten)", "job": "refresh", "other": "Größer"}
    assert set(json.loads(event)["entry_data"]["records"][0]["data"].values()) == {"(forgotten)"}
    assert partition is None


def test_titles_that_a_document_had_before_go_with_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    tags = [
        ("1", "prime/document", "a.md"),
        ("1", "prime/title", "The former title"),
        ("2", "prime/document", "b.md"),
        ("2", "prime/title", "Another"),
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE run_tags (run_id TEXT, key TEXT, value TEXT)")
        connection.executemany("INSERT INTO run_tags VALUES (?, ?, ?)", tags)
    scrub_history(tmp_path, ["a.md"])
    with closing(sqlite3.connect(path)) as connection:
        left = [value for (value,) in connection.execute("SELECT value FROM run_tags ORDER BY rowid")]
    assert left == ["(forgotten)", "(forgotten)", "b.md", "Another"]


def test_nothing_is_touched_where_forgetting_is_refused(folder: Path) -> None:
    workspace = workspace_in(folder)
    with pytest.raises(DocumentUnknown, match=r"guide/install\.md"):
        kept_of(workspace, ["install.md"])
    with pytest.raises(NothingWouldBeLeft):
        kept_of(workspace, [*PAGES, SECRET])
    with pytest.raises(DocumentUnknown):
        include_again(workspace, ["more.md"])
    with open_instance(workspace.home) as instance:
        job = defs.resolve_job_def("refresh")
        instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=process_tags())
    with pytest.raises(RefreshRunning):
        forgotten(workspace, SECRET)
    assert workspace.forgotten.ids() == frozenset()
    assert workspace.store.catalogue_entry(SECRET) is not None
    workspace.close()


def forget_in(folder: Path) -> None:
    """Forget the secret in a home that another process may have begun with."""
    with closing(workspace_in(folder)) as workspace:
        forgotten(workspace, SECRET)


@pytest.mark.parametrize("n_steps", [30_000, 300_000])  # of more than half a million
def test_forgetting_that_was_killed_is_finished_by_forgetting_again(folder: Path, n_steps: int) -> None:
    exclusions = workspace_in(folder).forgotten
    assert killed_after(n_steps, forget_in, folder)
    assert [(entry.doc_id, entry.is_complete) for entry in exclusions.entries()] == [(SECRET, False)]
    forget_in(folder)
    assert files_with(folder / "home", NEEDLES) == {}
    assert [entry.is_complete for entry in exclusions.entries()] == [True]


def test_nothing_of_it_is_left_in_object_storage(
    open_workspace: OpenWorkspace, corpus_with_secret: Path, tmp_path: Path
) -> None:
    remote = tmp_path / "remote"
    workspace = open_workspace(publish_to=remote.as_uri())
    run_refresh(defs, workspace)
    assert files_with(remote, NEEDLES)
    assert forgotten(workspace, SECRET).removed["releases"] == 1
    assert files_with(remote, NEEDLES) == {}


def test_a_history_in_a_database_is_not_said_to_be_scrubbed(
    open_workspace: OpenWorkspace, corpus_with_secret: Path, tmp_path: Path
) -> None:
    workspace = open_workspace()
    run_refresh(defs, workspace)
    elsewhere = {"storage": {"sqlite": {"base_dir": str(tmp_path / "elsewhere")}}}
    workspace.home.dagster_settings.write_text(json.dumps(elsewhere))  # which is YAML, too
    with pytest.raises(HistoryElsewhere, match="Nothing was changed"):
        forgotten(workspace, SECRET)
    assert SECRET in workspace.store.catalogue()
