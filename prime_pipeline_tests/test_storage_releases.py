"""Releases in object storage: what is sent, what a reader finds, and what is never believed."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

from prime_pipeline.errors import ReleaseDamaged, RemoteUnusable, SchemaMismatch, StoreUnavailable
from prime_pipeline.storage.releases import Release, ReleaseStore

ABOUT = {"variant": "offline"}


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place, on a file system and in an object store."""
    where = {"file": (tmp_path / "remote").as_uri(), "memory": f"memory://{tmp_path}"}
    return where[request.param]


@pytest.fixture
def local(tmp_path: Path) -> dict[str, Path]:
    """Two files of a home."""
    (tmp_path / "build").write_bytes(b"the build")
    (tmp_path / "report").write_bytes(b"the report")
    return {"indexes/a.bin": tmp_path / "build", "reports/report.html": tmp_path / "report"}


def objects(url: str) -> set[str]:
    """Names of everything that lies there, without what leads to it."""
    files, root = fsspec.core.url_to_fs(url)
    files.invalidate_cache()
    return {name[len(root.rstrip("/")) + 1 :] for name in files.find(root)}


def fetched(url: str, folder: Path) -> dict[str, bytes]:
    """What a reader who knows the address only gets of the live release."""
    store = ReleaseStore(url)
    release = store.live()
    assert release
    for file in release.files:
        store.fetch(file, folder / file.path)
    return {file.path: (folder / file.path).read_bytes() for file in release.files}


def release_of(store: ReleaseStore) -> Release:
    release = store.live()
    assert release
    return release


def test_what_is_published_is_fetched(url: str, local: dict[str, Path], tmp_path: Path) -> None:
    assert ReleaseStore(url).live() is None
    upload = ReleaseStore(url).publish(local, ABOUT, keep=1)
    assert (upload.changed, upload.n_files, upload.n_bytes) == (True, 2, len(b"the buildthe report"))
    assert release_of(ReleaseStore(url)) == upload.release
    assert upload.release.about == ABOUT
    assert fetched(url, tmp_path / "reader") == {
        "indexes/a.bin": b"the build",
        "reports/report.html": b"the report",
    }


def test_what_is_there_already_is_not_sent_again(url: str, local: dict[str, Path], tmp_path: Path) -> None:
    store = ReleaseStore(url)
    first = store.publish(local, ABOUT, keep=1)
    before = objects(url)
    again = store.publish(local, ABOUT, keep=1)
    assert (again.changed, again.n_files, again.release) == (False, 0, first.release)
    assert objects(url) == before
    local["reports/report.html"].write_bytes(b"another report")
    second = store.publish(local, ABOUT, keep=1)
    assert (second.changed, second.n_files) == (True, 1)
    assert fetched(url, tmp_path / "reader")["reports/report.html"] == b"another report"


def test_equal_files_of_other_facts_are_another_release(url: str, local: dict[str, Path]) -> None:
    store = ReleaseStore(url)
    store.publish(local, ABOUT, keep=1)
    other = store.publish(local, {"variant": "full"}, keep=1)
    assert (other.changed, other.n_files) == (True, 0)
    assert release_of(store).about == {"variant": "full"}


def test_releases_beyond_those_kept_go_with_what_only_they_hold(url: str, local: dict[str, Path]) -> None:
    store = ReleaseStore(url)
    releases = []
    for text in (b"one", b"two", b"three"):
        local["reports/report.html"].write_bytes(text)
        releases.append(store.publish(local, ABOUT, keep=1).release)
    kept = {file.object for release in releases[1:] for file in release.files}
    assert len(kept) == 3  # the build, and two reports
    manifests = {f"releases/{release.release_id}.json" for release in releases[1:]}
    assert objects(url) == {*kept, *manifests, "CURRENT"}


def test_all_releases_but_the_live_one_can_be_dropped(url: str, local: dict[str, Path]) -> None:
    store = ReleaseStore(url)
    assert store.drop_earlier() == 0
    store.publish(local, ABOUT, keep=3)
    local["reports/report.html"].write_bytes(b"another report")
    live = store.publish(local, ABOUT, keep=3).release
    assert (store.drop_earlier(), store.drop_earlier()) == (1, 0)
    kept = {file.object for file in live.files}
    assert objects(url) == {*kept, f"releases/{live.release_id}.json", "CURRENT"}


def test_a_release_that_comes_back_is_live_and_listed_once(url: str, local: dict[str, Path]) -> None:
    store = ReleaseStore(url)
    first = store.publish(local, ABOUT, keep=3).release
    local["reports/report.html"].write_bytes(b"another report")
    second = store.publish(local, ABOUT, keep=3).release
    local["reports/report.html"].write_bytes(b"the report")
    back = store.publish(local, ABOUT, keep=3)
    assert (back.changed, back.n_files, back.release) == (True, 0, first)
    with fsspec.open(f"{url}/CURRENT", "r") as current:
        assert json.load(current)["history"] == [second.release_id, first.release_id]


def test_an_upload_that_is_cut_off_changes_nothing(url: str, local: dict[str, Path], tmp_path: Path) -> None:
    store = ReleaseStore(url)
    first = store.publish(local, ABOUT, keep=1).release
    local["indexes/a.bin"].write_bytes(b"a new build")

    class Killed(BaseException):
        pass

    def die(activity: str, done: int, total: int | None) -> None:
        raise Killed

    with pytest.raises(Killed):
        store.publish(local, ABOUT, keep=1, progress=die)
    assert release_of(ReleaseStore(url)) == first
    local["indexes/a.bin"].write_bytes(b"the build")
    assert fetched(url, tmp_path / "reader")["indexes/a.bin"] == b"the build"


def test_an_object_that_was_changed_is_refused_and_leaves_what_was_here(
    url: str, local: dict[str, Path], tmp_path: Path
) -> None:
    store = ReleaseStore(url)
    build, _ = store.publish(local, ABOUT, keep=1).release.files
    with fsspec.open(f"{url}/{build.object}", "wb") as file:
        file.write(b"the buidl")
    target = tmp_path / "target"
    target.write_bytes(b"as it was")
    with pytest.raises(ReleaseDamaged, match="is not the file that was released"):
        store.fetch(build, target)
    assert target.read_bytes() == b"as it was"


@pytest.mark.parametrize(
    "path",
    ["../outside", "a/../../outside", "/etc/passwd", "a//b", ".hidden", "a/.hidden", "a\\b", "a/\n"],
)
def test_a_path_that_leads_elsewhere_is_refused(url: str, local: dict[str, Path], path: str) -> None:
    store = ReleaseStore(url)
    store.publish({path: local["indexes/a.bin"]}, ABOUT, keep=1)
    with pytest.raises(ReleaseDamaged, match="is not what was released"):
        store.live()


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("CURRENT", "", ReleaseDamaged),
        ("CURRENT", '{"schema_version": 1}', ReleaseDamaged),
        ("CURRENT", '{"schema_version": 1, "history": ["../../other"]}', ReleaseDamaged),
        ("CURRENT", '{"schema_version": 1, "history": ["0123456789abcdef"]}', ReleaseDamaged),
        ("CURRENT", '{"schema_version": 99, "history": []}', SchemaMismatch),
        ("release", '{"schema_version": 1, "about": {}, "files": [{"path": "a"}]}', ReleaseDamaged),
        ("release", '{"schema_version": 1, "about": {}, "files": []}', ReleaseDamaged),
    ],
)
def test_what_was_not_written_like_this_is_told_as_damage(
    url: str, local: dict[str, Path], name: str, text: str, error: type[Exception]
) -> None:
    store = ReleaseStore(url)
    release = store.publish(local, ABOUT, keep=1).release
    path = name if name == "CURRENT" else f"releases/{release.release_id}.json"
    with fsspec.open(f"{url}/{path}", "w") as file:
        file.write(text)
    with pytest.raises(error, match=r"CURRENT|release|files"):
        store.live()


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path, local: dict[str, Path]) -> None:
    with pytest.raises(RemoteUnusable, match="nosuch://bucket cannot be used"):
        ReleaseStore("nosuch://bucket")
    (tmp_path / "file").touch()
    with pytest.raises(RemoteUnusable, match="check the address"):
        ReleaseStore((tmp_path / "file").as_uri()).publish(local, ABOUT, keep=1)


def test_a_full_disk_here_is_not_blamed_on_the_place(
    url: str, local: dict[str, Path], tmp_path: Path
) -> None:
    store = ReleaseStore(url)
    build, _ = store.publish(local, ABOUT, keep=1).release.files
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="cannot use"):
        store.fetch(build, tmp_path / "file" / "target")
