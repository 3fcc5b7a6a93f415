"""The metadata file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prime_pipeline.errors import IndexCorrupt, StoreUnavailable
from prime_pipeline.records import DocumentMetadata
from prime_pipeline.storage import metadata_file
from prime_pipeline.storage.metadata_file import CorpusCounts, DocumentCounts, MetadataFile, write_metadata
from prime_pipeline_tests.full_disk import file_size_limit

METADATA = [
    DocumentMetadata(
        "b", (("wort", 1.25), ("äther", 0.1 + 0.2)), ((1, "Top"), (2, "Über \N{GRINNING FACE}")), "B text"
    ),
    DocumentMetadata("a", (), (), ""),
]
FREQUENCIES = {"wort": 2, "äther": 1, "it's": 1}
COUNTS = CorpusCounts(
    (DocumentCounts("a", "k2", "t2", 0, 0), DocumentCounts("b", "k1", "t1", 7, 3)),
    {"word": b"\x00\x01\xff" * 30, "count": b"\x02"},
)


def test_round_trip_in_order_of_id(tmp_path: Path) -> None:
    write_metadata(tmp_path / "m.sqlite", METADATA, FREQUENCIES)
    file = MetadataFile(tmp_path / "m.sqlite")
    assert list(file.documents()) == METADATA[::-1]
    assert (file.doc_ids(), file.n_documents) == (["a", "b"], 2)
    assert [file.document(doc_id) for doc_id in ("b", "c", "\udc80")] == [METADATA[0], None, None]
    assert list(file.texts().items()) == [("a", ""), ("b", "B text")]
    file.close()


def test_terms_and_counts_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        metadata_file, "_PART_BYTES", 8
    )  # more than one value, and not a whole number of them
    write_metadata(tmp_path / "m", METADATA, FREQUENCIES, COUNTS)
    write_metadata(tmp_path / "without", METADATA, FREQUENCIES)
    file, without = MetadataFile(tmp_path / "m"), MetadataFile(tmp_path / "without")
    assert file.terms() == ["it's", "wort", "äther"]
    assert (file.counts(), without.counts()) == (COUNTS, CorpusCounts())


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    write_metadata(tmp_path / "1", METADATA, FREQUENCIES, COUNTS)
    write_metadata(tmp_path / "2", METADATA[::-1], dict(reversed(FREQUENCIES.items())), COUNTS)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    write_metadata(tmp_path / "2", METADATA[:1], FREQUENCIES)
    assert (tmp_path / "1").read_bytes() != (tmp_path / "2").read_bytes()


def test_unknown_terms_occur_in_no_document(tmp_path: Path) -> None:
    write_metadata(tmp_path / "m", METADATA, FREQUENCIES)
    file = MetadataFile(tmp_path / "m")
    wanted = ["wort", "unknown", "\ud800", "", "it's", "a\0b"]
    assert file.document_frequencies(wanted) == dict.fromkeys(wanted, 0) | {"wort": 2, "it's": 1}
    file.close()


def test_threads_share_one_reader(tmp_path: Path) -> None:
    frequencies = {f"term{i}": i for i in range(300)}
    write_metadata(tmp_path / "m", METADATA, frequencies)
    file = MetadataFile(tmp_path / "m")
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: file.document_frequencies(frequencies), range(16)))
    assert results == [frequencies] * 16
    file.close()


def test_no_documents(tmp_path: Path) -> None:
    write_metadata(tmp_path / "m", [], {})
    file = MetadataFile(tmp_path / "m")
    assert (list(file.documents()), file.doc_ids(), file.n_documents) == ([], [], 0)
    file.close()


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(b"x" * 4_096)
    (tmp_path / "empty").touch()
    for name in ("missing", "damaged", "empty"):
        with pytest.raises(IndexCorrupt, match=f"{name} is damaged"):
            MetadataFile(tmp_path / name)


def test_a_full_disk_is_named_with_the_file(tmp_path: Path) -> None:
    with file_size_limit(4096), pytest.raises(StoreUnavailable, match=r"cannot use .*m\.sqlite \("):
        write_metadata(tmp_path / "m.sqlite", METADATA, FREQUENCIES)
    assert list(tmp_path.glob("*.sqlite")) == []
