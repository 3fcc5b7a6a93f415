"""Whole refreshes killed at any place, in Dagster: a reader always gets one whole state, and the next refresh heals it."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.health import examine_all
from prime_pipeline.defs.runs import run_refresh
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.defs.conftest import PAGES
from prime_pipeline_tests.fakes import HashingEmbedder
from prime_pipeline_tests.killing import at_once, killed_after, steps_of

defs = definitions()

N_KILLS = 10


def workspace_in(folder: Path) -> Workspace:
    settings = load_settings({"home": folder / "home", "corpus": str(folder / "corpus")})
    return Workspace(settings, embedder=HashingEmbedder())


def refresh(folder: Path) -> None:
    with closing(workspace_in(folder)) as workspace:
        run_refresh(defs, workspace)


def write_corpus(folder: Path, state: int) -> None:
    """Pages as ever, one of which changes with every state and one of which is only there in one."""
    pages = {
        **PAGES,
        "more.md": f"# More\n\n## State\n\nThis is state{state}.\n",
        f"only{state}.md": f"# Only {state}\n",
    }
    for stale in (folder / "corpus").rglob("only*.md"):
        stale.unlink()
    for name, text in pages.items():
        path = folder / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def served_state(folder: Path) -> int:
    """The state whose page is found; there must be one, and its other page with it."""
    with closing(workspace_in(folder)) as workspace, workspace.retriever() as retriever:
        builds = workspace.builds("offline")
        builds.verify(builds.served_id)
        (only,) = {doc_id for doc_id in retriever.lexical.doc_ids if doc_id.startswith("only")}
        state = int(only.removeprefix("only").removesuffix(".md"))
        assert retriever.search(f"state{state}")[0].text.endswith(f"This is state{state}.\n")
        assert retriever.manifest.n_documents == len(PAGES) + 1
    return state


def test_a_refresh_killed_anywhere_leaves_the_old_state_or_the_new_one(tmp_path: Path) -> None:
    write_corpus(tmp_path, 0)
    refresh(tmp_path)
    write_corpus(tmp_path, 1)
    n_steps = steps_of(refresh, tmp_path, with_lines=False)
    state = served_state(tmp_path)
    assert state == 1
    generator, was_killed, seen = random.Random(3), [], []
    for n_kill in range(2, N_KILLS + 2):
        write_corpus(tmp_path, n_kill)
        was_killed.append(killed_after(generator.randint(1, n_steps), refresh, tmp_path, with_lines=False))
        found = served_state(tmp_path)
        assert found in {state, n_kill}
        seen.append(found == n_kill)
        state = found
    assert sum(was_killed) >= N_KILLS - 2
    assert set(seen) == {False, True}
    refresh(tmp_path)
    assert served_state(tmp_path) == N_KILLS + 1
    with closing(workspace_in(tmp_path)) as workspace:
        assert [check for check in examine_all(workspace) if check.state == "problem"] == []
        summary = run_refresh(defs, workspace)
    assert {step["changed"] for step in summary.steps.values()} == {0}


def test_refreshes_at_once_end_well_and_publish_once(tmp_path: Path) -> None:
    write_corpus(tmp_path, 0)
    refresh(tmp_path)
    write_corpus(tmp_path, 1)
    assert at_once(3, refresh, tmp_path) == [0, 0, 0]
    assert served_state(tmp_path) == 1
    with closing(workspace_in(tmp_path)) as workspace:
        assert len(workspace.builds("offline").history()) == 2
        assert run_refresh(defs, workspace).scan.n_changes == 0
