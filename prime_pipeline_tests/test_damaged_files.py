"""Every file of a home truncated, emptied and with other bytes in it: the right answer or a named error, and it heals."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from prime_pipeline.errors import PrimeError
from prime_pipeline_tests.bad_day import advance, bench_at, close, publish_warehouse, state_of

Hits = list[tuple[str, float]]


def answers(root: Path) -> Hits:
    """What is found, and how well, for queries that every document answers."""
    bench = bench_at(root)
    try:
        with bench.retriever() as retriever:
            found = [retriever.search(query, 8) for query in ("stable words 4", "only in state0")]
    finally:
        close(bench)
    return [(hit.section_id, hit.score) for hits in found for hit in hits]


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _overwritten(path: Path) -> None:
    """Other bytes at seeded places, the head spared, so that the file still looks like one of its kind."""
    data, generator = bytearray(path.read_bytes()), random.Random(path.name)
    for _ in range(max(4, len(data) // 200)):
        at = generator.randrange(min(100, len(data) // 2), len(data))
        data[at] ^= 0x55
    path.write_bytes(data)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Hits]:
    root = tmp_path_factory.mktemp("sound") / "home"
    advance(root, 0)
    publish_warehouse(root)
    expected = answers(root)
    assert len(expected) == 16
    return root, expected


def files_of(root: Path) -> list[str]:
    """One of each kind, by its place in the home."""
    documents = sorted(root.glob("documents/*/*.json"))[1:]
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*"))
        if path.is_file() and path not in documents and path.suffix != ".lock"
    ]


@pytest.mark.parametrize("damage", [_truncated, _emptied, _overwritten])
def test_a_damaged_file_gives_no_wrong_answer_and_heals(
    sound: tuple[Path, Hits], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    home, expected = sound
    names = files_of(home)
    kinds = {Path(name).suffix for name in names}
    assert {
        ".json",
        ".sqlite",
        ".npy",
        ".duckdb",
        "",
    } <= kinds  # documents, builds, caches, warehouse, CURRENT
    for number, name in enumerate(names):
        root = Path(shutil.copytree(home, tmp_path / str(number)))
        damage(root / name)
        found, told = answers_or_error(root)
        assert found == expected or str(root) in told, (
            name
        )  # an error names the file, or the folder of the build
        heal(root, name)
        assert answers(root) == expected, name
        if name.endswith(".duckdb"):
            publish_warehouse(root)
        shutil.rmtree(root)


def answers_or_error(root: Path) -> tuple[Hits, str]:
    try:
        return answers(root), ""
    except PrimeError as error:
        return [], str(error)


def heal(root: Path, name: str) -> None:
    """Refresh, doing what errors say: again where a document is parsed anew, or after deleting the file that is named."""
    for _ in range(3):
        try:
            advance(root, 0)
            state_of(root, (0,), {0})
        except PrimeError as error:
            if f"{root / name} is damaged" in str(error) and "delete it" in str(error):
                (root / name).unlink()
        else:
            return
    raise AssertionError(f"{name} does not heal")


def test_a_clock_that_was_set_back_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "home"
    advance(root, 0)
    for path in root.rglob("*"):
        os.utime(path, (4e9, 4e9))  # the year 2096: everything was written in the future
    advance(root, 1)
    assert state_of(root, (1,), {1}) == 1
    bench = bench_at(root)
    assert bench.store.collect_garbage() == 0
    assert [item["build"] for item in bench.builds.history()][-1] == bench.builds.live_id
    assert len(bench.builds.history()) == 2
    close(bench)


def test_an_embedder_that_changed_between_builds_is_refused_until_a_refresh(tmp_path: Path) -> None:
    root = tmp_path / "home"
    advance(root, 0)
    bench = bench_at(root)
    bench.embedder.fingerprint = "another"
    with pytest.raises(PrimeError, match="run `prime refresh` to build it anew"):
        bench.retriever()
    bench.steps().publish(keep=1)
    with bench.retriever() as retriever:
        assert retriever.search("only in state0")[0].doc_id == "extra0"
    close(bench)
