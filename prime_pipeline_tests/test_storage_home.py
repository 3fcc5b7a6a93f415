"""The home folder."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from prime_pipeline.errors import HomeNotWritable
from prime_pipeline.storage.home import Home


def test_a_home_below_shares_the_caches_and_nothing_else(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    demo = home.below("demo")
    assert (demo.embeddings, demo.token_vectors) == (home.embeddings, home.token_vectors)
    assert demo.llm_cache == home.llm_cache
    own = [
        demo.dagster,
        demo.documents,
        demo.indexes("offline"),
        demo.seal("raw"),
        demo.warehouse,
        demo.measures("offline"),
        demo.restructured("abc"),
        demo.ledger,
        demo.diffs,
    ]
    assert all(path.is_relative_to(tmp_path / "demo") for path in own)


def test_prepare_makes_the_folder(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "a" / "b")
    home.prepare()
    home.prepare()
    assert list(home.root.iterdir()) == [home.dagster]


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HomeNotWritable, match="set PRIME_HOME to another folder"):
        Home.at(tmp_path / "file").prepare()


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    home, inside, most = Home.at(tmp_path), 0, 0
    counting = threading.Lock()

    def work() -> None:
        nonlocal inside, most
        for _ in range(5):
            with home.lock("documents"):
                with counting:
                    inside += 1
                    most = max(most, inside)
                threading.Event().wait(0.002)
                with counting:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    with home.lock("documents"), home.lock("index-offline"):  # other names do not wait
        pass


def test_a_lock_that_cannot_be_made_names_the_home(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "home" / "locks" / "documents.lock").mkdir(parents=True)
    for name in ("file", "home"):
        with (
            pytest.raises(HomeNotWritable, match=f"PRIME_HOME .*{name}"),
            Home.at(tmp_path / name).lock("documents"),
        ):
            pass


def test_a_lock_passes_on_what_its_block_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), Home.at(tmp_path).lock("documents"):
        raise FileNotFoundError
    with Home.at(tmp_path).lock("documents"):  # free again
        pass
