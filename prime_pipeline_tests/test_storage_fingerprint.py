"""Hashes: equal for equal things, different for different ones."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.storage.fingerprint import (
    FileFingerprints,
    file_fingerprint,
    fingerprint,
    text_fingerprint,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(values, values)
def test_values_share_a_fingerprint_only_if_equal(one: Any, other: Any) -> None:
    assert (fingerprint(one) == fingerprint(other)) == (repr(_sorted(one)) == repr(_sorted(other)))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def test_texts_are_kept_apart() -> None:
    parts = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("1:a",), ("a", "\ud800"), ("é",), ("e\u0301",)]
    assert len({text_fingerprint(*some) for some in parts}) == len(parts)


def test_a_file_is_known_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"one")
    assert file_fingerprint(tmp_path / "a") == file_fingerprint(tmp_path / "b")
    (tmp_path / "b").write_bytes(b"onf")
    assert file_fingerprint(tmp_path / "a") != file_fingerprint(tmp_path / "b")


def written(path: Path, data: bytes, seconds_ago: float) -> None:
    """Write a file as if so long ago; the time of change cannot be set, and is that of now."""
    path.write_bytes(data)
    then_ns = time.time_ns() - int(seconds_ago * 1e9)
    os.utime(path, ns=(then_ns, then_ns))


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    files, path = FileFingerprints(), tmp_path / "a"
    for data in (b"one", b"two", b"three"):
        path.write_bytes(data)
        assert files.of(path) == file_fingerprint(path)


def test_a_file_with_its_old_time_stamp_is_read_again(tmp_path: Path) -> None:
    files, path = FileFingerprints(), tmp_path / "a"
    for data in (b"one", b"two"):
        written(path, data, seconds_ago=60)
        assert files.of(path) == file_fingerprint(path)


def test_a_file_that_stays_as_it_is_is_read_once() -> None:
    read: list[Path] = []

    def reading(path: Path) -> str:
        read.append(path)
        return file_fingerprint(path)

    files, module = FileFingerprints(reading), Path(os.__file__)  # was written long before this test
    assert files.of(module) == files.of(module) == file_fingerprint(module)
    assert read == [module]
