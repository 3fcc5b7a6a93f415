"""Old file or new file, never a part."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from prime_pipeline.errors import StoreUnavailable
from prime_pipeline.storage.atomic import atomic_path, remove_leftovers, write_bytes, write_text


def test_a_file_is_written_with_its_folder(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file"
    write_bytes(target, b"one")
    write_text(target, "zwei ü")
    assert target.read_bytes() == "zwei ü".encode()
    assert list(target.parent.iterdir()) == [target]


def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_bytes(target, b"old")

    def fail_halfway() -> None:
        with atomic_path(target) as temporary:
            temporary.write_bytes(b"ne")
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail_halfway()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_text_that_nobody_could_read_again_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "file", "a\ud800")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    target = tmp_path / "file"
    contents = [bytes([i]) * 100_000 for i in range(4)]
    write_bytes(target, contents[0])
    done = threading.Event()
    seen: set[bytes] = set()

    def read() -> None:
        while not done.is_set():
            seen.add(target.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(60):
        write_bytes(target, contents[i % 4])
    done.set()
    reader.join()
    assert seen <= set(contents)
    assert len(seen) > 1


def test_other_users_may_read_as_the_umask_says(tmp_path: Path) -> None:
    plain, written = tmp_path / "plain", tmp_path / "written"
    plain.touch()
    write_bytes(written, b"")
    assert stat.S_IMODE(written.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_long_name_leaves_room_for_the_temporary_one(tmp_path: Path) -> None:
    target = tmp_path / ("é" * 120)
    write_bytes(target, b"x")
    assert target.read_bytes() == b"x"


def test_leftovers_of_killed_processes_go_when_they_are_old(tmp_path: Path) -> None:
    old, young = tmp_path / f".a.json.{'0a' * 16}.tmp", tmp_path / f".b.json.{'0b' * 16}.tmp"
    others = [
        tmp_path / name for name in ("c.json", ".mine.tmp", f".d.{'0A' * 16}.tmp", f"e.{'0a' * 16}.tmp")
    ]
    for path in (old, young, *others):
        path.write_text("")
    for path in (old, *others):
        os.utime(path, (0, 0))
    assert remove_leftovers(tmp_path, older_than_s=3600) == 1
    assert sorted(tmp_path.iterdir()) == sorted([young, *others])
    assert remove_leftovers(tmp_path / "nowhere", older_than_s=0) == 0


def test_a_full_disk_and_a_folder_that_cannot_be_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"cannot use .*file/target .*(File exists|Not a directory)"):
        write_bytes(tmp_path / "file" / "target", b"x")

    def fill_the_disk() -> None:
        with atomic_path(tmp_path / "target"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(StoreUnavailable, match=r"target \(No space left on device\): .*free space"):
        fill_the_disk()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
