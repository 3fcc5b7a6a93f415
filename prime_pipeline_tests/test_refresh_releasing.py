"""What a home serves, published to object storage and pulled into another home."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

from prime_pipeline.errors import HomeInUse, IndexCorrupt, NothingReleased, ReleaseDamaged
from prime_pipeline.indexes.builds import Builds
from prime_pipeline.records import Document
from prime_pipeline.refresh.releasing import Pulled, live_release, publish_release, pull_release
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.home import Home
from prime_pipeline.storage.releases import ReleaseStore, Upload
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import HashingEmbedder


class Machines:
    """One that publishes and one that pulls, which share nothing but an address."""

    def __init__(self, folder: Path) -> None:
        self.url = f"memory://{folder}"
        self.bench = Bench(folder / "publisher")
        self.reader = Home.at(folder / "reader")

    def publish(self, *documents: Document) -> Upload:
        self.bench.publish(*documents)
        return publish_release(ReleaseStore(self.url), self.bench.home, "offline", self.bench.live(), keep=3)

    def pull(self) -> Pulled:
        store = ReleaseStore(self.url)
        return pull_release(store, live_release(store, self.reader), self.reader, keep=1)

    def retriever(self) -> Retriever:
        live = self.builds.live_path
        assert live
        return Retriever(live, HashingEmbedder(), BlobCache(self.reader.token_vectors), RetrievalOptions())

    @property
    def builds(self) -> Builds:
        return Builds(self.reader.indexes("offline"))


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path)


INSTALL = make_document("install", "With pip: Run pip.")
RETRIES = make_document("retries", "Backoff: Wait exponentially longer.")


def test_what_one_home_serves_another_one_serves_too(machines: Machines) -> None:
    machines.bench.home.reports.mkdir()
    (machines.bench.home.reports / "report.html").write_text("<p>All well.</p>")
    upload = machines.publish(INSTALL, RETRIES)
    pulled = machines.pull()
    assert pulled.changed
    assert (pulled.n_files, pulled.n_bytes) == (upload.n_files, upload.n_bytes)
    assert machines.builds.live_id == upload.release.about["build"] == machines.bench.builds.live_id
    assert (machines.reader.reports / "report.html").read_text() == "<p>All well.</p>"
    with machines.retriever() as retriever:
        assert retriever.search("exponentially longer")[0].heading_path == ("Backoff",)


def test_a_pull_with_nothing_new_fetches_nothing(machines: Machines) -> None:
    machines.publish(INSTALL)
    machines.pull()
    again = machines.pull()
    assert (again.changed, again.n_files) == (False, 0)


def test_a_new_build_is_swapped_in_under_a_reader(machines: Machines) -> None:
    machines.publish(INSTALL)
    machines.pull()
    with machines.retriever() as before:
        machines.publish(INSTALL, RETRIES)
        assert machines.pull().changed
        assert {hit.doc_id for hit in before.search("exponentially")} == {"install"}
    with machines.retriever() as after:
        assert after.search("exponentially")[0].doc_id == "retries"


def test_a_build_that_comes_back_is_not_fetched_again(machines: Machines) -> None:
    first = machines.publish(INSTALL).release.about["build"]
    machines.pull()
    machines.publish(INSTALL, RETRIES)
    machines.pull()
    machines.bench.builds.rollback()
    bench = machines.bench
    publish_release(ReleaseStore(machines.url), bench.home, "offline", bench.live(), keep=3)
    back = machines.pull()
    assert (back.changed, back.n_files) == (True, 0)
    assert machines.builds.live_id == first


def test_damage_here_is_healed_by_the_next_pull(machines: Machines) -> None:
    machines.publish(INSTALL)
    machines.pull()
    live = machines.builds.live_path
    assert live
    (live / "lexical.sqlite").write_bytes(b"no database")
    healed = machines.pull()
    assert (healed.changed, healed.n_files) == (False, 1)
    with machines.retriever() as retriever:
        assert retriever.search("pip")


def test_damage_there_leaves_what_is_served_here(machines: Machines) -> None:
    first = machines.publish(INSTALL).release.about["build"]
    machines.pull()
    upload = machines.publish(INSTALL, RETRIES)
    (lexical,) = [file for file in upload.release.files if file.path.endswith("lexical.sqlite")]
    with fsspec.open(f"{machines.url}/{lexical.object}", "wb") as file:
        file.write(b"no database")
    with pytest.raises(ReleaseDamaged, match=r"lexical\.sqlite is not the file that was released"):
        machines.pull()
    assert machines.builds.live_id == first
    with machines.retriever() as retriever:
        assert retriever.search("pip")


def republished(machines: Machines, about: dict[str, str], **moved: str) -> None:
    """Publish the live build again, with other facts, and files under other paths."""
    live = machines.bench.live()
    paths = {path.name: path for path in live.iterdir() if path.name not in moved}
    folder = f"indexes/offline/builds/{live.name}"
    files = {f"{folder}/{name}": path for name, path in paths.items()}
    files |= {to: live / name for name, to in moved.items()}
    ReleaseStore(machines.url).publish(files, about, keep=1)


@pytest.mark.parametrize(
    "about", [{}, {"variant": "else", "build": "0" * 16}, {"variant": "offline", "build": "../../../x"}]
)
def test_a_release_that_does_not_say_what_it_serves_is_refused(
    machines: Machines, about: dict[str, str]
) -> None:
    machines.publish(INSTALL)
    republished(machines, about)
    with pytest.raises(ReleaseDamaged, match="does not say what it serves"):
        machines.pull()
    assert not machines.reader.root.exists()


@pytest.mark.parametrize("path", ["prime.toml", "cache/llm.sqlite", "dagster.yaml", "reports/other.html"])
def test_a_file_that_is_no_part_of_a_release_is_not_put_into_a_home(machines: Machines, path: str) -> None:
    upload = machines.publish(INSTALL)
    republished(machines, dict(upload.release.about), **{"metadata.sqlite": path})
    with pytest.raises(ReleaseDamaged, match="has no place in a home"):
        machines.pull()
    assert not machines.reader.root.exists()


def test_a_build_that_is_not_whole_is_not_served(machines: Machines) -> None:
    upload = machines.publish(INSTALL)
    republished(machines, dict(upload.release.about), **{"metadata.sqlite": "warehouse.duckdb"})
    with pytest.raises(IndexCorrupt, match=r"metadata\.sqlite is missing"):
        machines.pull()
    assert machines.builds.live_id is None


def test_another_build_under_that_name_is_not_served(machines: Machines) -> None:
    machines.publish(INSTALL)
    live = machines.bench.live()
    manifest = json.loads((live / "manifest.json").read_text())
    (live / "manifest.json").write_text(json.dumps({**manifest, "build_id": "0" * 16}))
    republished(machines, {"variant": "offline", "build": live.name, "profile": "embedded"})
    with pytest.raises(IndexCorrupt, match="another build than its name says"):
        machines.pull()


def test_a_home_with_an_index_of_its_own_takes_none(machines: Machines) -> None:
    machines.publish(INSTALL)
    with pytest.raises(HomeInUse, match="take another --home"):
        live_release(ReleaseStore(machines.url), machines.bench.home)


def test_an_address_without_a_release_is_named(machines: Machines) -> None:
    with pytest.raises(NothingReleased, match="publish_to"):
        machines.pull()
