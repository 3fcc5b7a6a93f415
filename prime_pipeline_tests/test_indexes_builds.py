"""Publishing builds: all or nothing, damage, going back, tidying up."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from prime_pipeline.errors import IndexCorrupt, IndexNotFound, IndexOutdated, NoEarlierBuild, StoreCorrupt
from prime_pipeline.indexes.builds import (
    LEXICAL_FILE,
    METADATA_FILE,
    SCHEMA_VERSION,
    BuildPlan,
    Builds,
    Publication,
    read_manifest,
    verify_build,
)
from prime_pipeline.indexes.lexical import LexicalIndex, build_lexical_index
from prime_pipeline.indexes.vectors import VectorIndex, VectorOptions, build_vector_index
from prime_pipeline.records import Document, DocumentMetadata
from prime_pipeline.storage.metadata_file import MetadataFile, write_metadata
from prime_pipeline_tests.documents import make_document, sealed
from prime_pipeline_tests.fakes import HashingEmbedder

EMBEDDER = HashingEmbedder()
FILES = ["hnsw.bin", LEXICAL_FILE, METADATA_FILE, "vectors.json", "vectors.npy"]


def documents(text: str = "words", n: int = 6) -> list[Document]:
    return [make_document(f"d{i}", f"{text} of {i}", title=f"Title {i}") for i in range(n)]


def plan_of(some: Sequence[Document]) -> BuildPlan:
    return BuildPlan(
        variant="offline",
        corpus=sealed(some),
        metadata_fingerprint="m",
        embedder_name=EMBEDDER.name,
        embedder_fingerprint=EMBEDDER.fingerprint,
        profile="embedded",
        vector_options=VectorOptions(search="hnsw"),
    )


def write_parts(folder: Path, some: Sequence[Document]) -> None:
    by_id = {document.doc_id: document for document in some}
    versions = sealed(some).documents
    write_metadata(
        folder / METADATA_FILE, [DocumentMetadata(i, (), (), by_id[i].title) for i in by_id], {"words": 1}
    )
    build_lexical_index(folder / LEXICAL_FILE, versions, lambda doc_id, _: by_id[doc_id])
    ids = sorted(by_id)
    vectors = EMBEDDER.encode([by_id[i].title for i in ids])
    build_vector_index(folder, ids, vectors, VectorOptions(search="hnsw"))


def publish(builds: Builds, some: Sequence[Document], *, even_if_withdrawn: bool = False) -> Publication:
    plan = plan_of(some)
    folder = builds.staging(plan.build_id)
    if not (folder / "vectors.json").is_file():
        write_parts(folder, some)
    return builds.publish(plan, even_if_withdrawn=even_if_withdrawn)


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path / "offline")


def test_a_published_build_is_live_and_whole(builds: Builds) -> None:
    assert (builds.live_id, builds.live_path, builds.intact_path, builds.history()) == (None, None, None, [])
    plan = plan_of(documents())
    publication = publish(builds, documents())
    assert publication == Publication(plan.build_id, plan.build_id, changed=True)
    assert builds.live_path == builds.intact_path == builds.path(plan.build_id)
    manifest = verify_build(builds.path(plan.build_id))
    assert (manifest.build_id, manifest.n_documents, manifest.n_sections, manifest.n_vectors) == (
        plan.build_id,
        6,
        6,
        6,
    )
    assert (manifest.dimensions, manifest.vector_search, sorted(manifest.files)) == (64, "hnsw", FILES)
    assert publish(builds, documents()) == Publication(plan.build_id, plan.build_id, changed=False)


def test_the_id_follows_what_determines_a_build() -> None:
    plan = plan_of(documents())
    same = [replace(plan, profile="paper"), replace(plan, embedder_name="renamed")]
    others = [
        plan_of(documents("other")),
        replace(plan, variant="full"),
        replace(plan, metadata_fingerprint="n"),
        replace(plan, embedder_fingerprint="e"),
        replace(plan, vector_options=VectorOptions(search="hnsw", m=8)),
    ]
    assert {p.build_id for p in same} == {plan.build_id}
    assert len({plan.build_id, *(p.build_id for p in others)}) == 6


def test_equal_input_gives_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        publish(Builds(tmp_path / name), documents())
    one, other = (Builds(tmp_path / name).live_path for name in "ab")
    assert one is not None
    assert other is not None
    for name in [*FILES, "manifest.json"]:
        assert (one / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.parametrize("part", ["metadata", "lexical", "vectors"])
def test_parts_that_disagree_are_not_published_and_made_anew(
    builds: Builds, tmp_path: Path, part: str
) -> None:
    live = publish(builds, documents("first")).live
    plan, wanted = plan_of(documents()), documents()
    staging = builds.staging(plan.build_id)
    write_parts(staging, wanted)
    write_parts(tmp_path / "fewer", wanted[1:])
    for path in (tmp_path / "fewer").iterdir():
        if path.name.startswith("hnsw" if part == "vectors" else part) or path.name.startswith(part):
            shutil.copy(path, staging)
    with pytest.raises(IndexCorrupt, match=rf"{part} holds other documents .* 1 missing \(first 'd0'\)"):
        builds.publish(plan)
    assert builds.live_id == live
    assert not staging.exists()
    assert publish(builds, wanted).changed


def test_other_versions_of_documents_are_noticed(builds: Builds, tmp_path: Path) -> None:
    plan = plan_of(documents())
    write_parts(builds.staging(plan.build_id), documents())
    write_parts(tmp_path / "other", documents("other"))
    shutil.copy(tmp_path / "other" / LEXICAL_FILE, builds.staging(plan.build_id))
    with pytest.raises(IndexCorrupt, match="other versions"):
        builds.publish(plan)


def test_a_missing_part_is_noticed(builds: Builds) -> None:
    plan = plan_of(documents())
    write_parts(builds.staging(plan.build_id), documents())
    (builds.staging(plan.build_id) / METADATA_FILE).unlink()
    with pytest.raises(IndexCorrupt, match=r"metadata\.sqlite is damaged"):
        builds.publish(plan)
    assert builds.live_id is None


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_found_and_healed(builds: Builds, name: str) -> None:
    publish(builds, documents())
    plan, live = plan_of(documents()), builds.live_path
    assert live is not None
    assert not builds.disown_damaged(plan)
    data = bytearray((live / name).read_bytes())
    data[len(data) // 2] ^= 1
    (live / name).write_bytes(data)
    with pytest.raises(IndexCorrupt, match=f"{name} is not the file that was published"):
        verify_build(live)
    assert builds.intact_path is None
    assert builds.disown_damaged(plan)
    assert builds.live_path is None
    assert publish(builds, documents()).changed
    assert verify_build(live).build_id == builds.live_id
    assert len(builds.history()) == 1


def test_a_missing_file_is_found(builds: Builds) -> None:
    publish(builds, documents())
    live = builds.live_path
    assert live is not None
    (live / "hnsw.bin").unlink()
    with pytest.raises(IndexCorrupt, match=r"hnsw\.bin is missing"):
        verify_build(live)


def test_an_earlier_build_that_was_damaged_is_not_blessed(builds: Builds) -> None:
    first = publish(builds, documents("first")).build_id
    second = publish(builds, documents("second")).build_id
    (builds.path(first) / "vectors.json").write_text("{}")
    with pytest.raises(IndexCorrupt, match=r"vectors\.json is not the file"):
        builds.publish(plan_of(documents("first")))
    with pytest.raises(IndexCorrupt):
        builds.rollback()
    assert builds.live_id == second


def test_going_back_and_staying_there(builds: Builds) -> None:
    with pytest.raises(NoEarlierBuild):
        builds.rollback()
    first = publish(builds, documents("first")).build_id
    with pytest.raises(NoEarlierBuild):
        builds.rollback()
    second = publish(builds, documents("second")).build_id
    assert builds.rollback() == (second, first)
    assert builds.live_id == first

    withheld = publish(builds, documents("second"))
    assert (withheld.live, withheld.changed) == (first, False)
    assert "prime refresh --republish" in str(withheld.withheld)
    builds.collect_garbage(keep=3)  # also takes the parts of the build that was taken back
    assert publish(builds, documents("second")).withheld is not None

    third = publish(builds, documents("third"))
    assert (third.live, third.changed) == (third.build_id, True)
    assert publish(builds, documents("second")).live == third.build_id
    assert publish(builds, documents("second"), even_if_withdrawn=True).live == second
    assert publish(builds, documents("third")).live == third.build_id
    assert publish(builds, documents("second")).live == second
    assert [item["build"] for item in builds.history()] == [first, third.build_id, second]


def test_garbage(builds: Builds, tmp_path: Path) -> None:
    ids = [publish(builds, documents(text)).build_id for text in "abcd"]
    write_parts(builds.staging(plan_of(documents("unpublished")).build_id), documents("unpublished"))
    assert builds.collect_garbage(keep=1) == sorted(
        [ids[0], ids[1], plan_of(documents("unpublished")).build_id]
    )
    assert [item["build"] for item in builds.history()] == ids[2:]
    assert sorted(p.name for p in (tmp_path / "offline" / "builds").iterdir()) == sorted(ids[2:])
    assert builds.rollback() == (ids[3], ids[2])
    assert builds.collect_garbage(keep=0) == [ids[3]]
    assert builds.live_id == ids[2]


def test_only_what_is_named_like_a_build_is_garbage(builds: Builds, tmp_path: Path) -> None:
    publish(builds, documents())
    kept = [tmp_path / "offline" / name for name in ("builds/mine", "staging/mine", "builds/notes.md")]
    for path in kept:
        path.mkdir(parents=True)
    (tmp_path / "offline" / "staging" / ("0" * 16)).touch()  # no folder
    assert builds.collect_garbage(keep=0) == []
    assert all(path.is_dir() for path in kept)


def test_what_a_killed_run_left_in_staging_heals(builds: Builds) -> None:
    plan = plan_of(documents())
    staging = builds.staging(plan.build_id)
    write_parts(staging, documents())
    (staging / "vectors.json").unlink()  # killed between the matrix and what completes it
    (staging / ".lexical.sqlite.0.tmp").write_bytes(b"part")
    assert publish(builds, documents()).changed
    assert sorted(path.name for path in builds.path(plan.build_id).iterdir()) == sorted(
        [*FILES, "manifest.json"]
    )


def test_a_run_killed_between_two_renames_heals(builds: Builds) -> None:
    publish(builds, documents())
    plan = plan_of(documents())
    shutil.rmtree(builds.path(plan.build_id))
    assert builds.live_path is None
    assert publish(builds, documents()).changed
    assert builds.live_path is not None


def test_a_reader_of_the_old_build_goes_on(builds: Builds) -> None:
    publish(builds, documents("first"))
    live = builds.live_path
    assert live is not None
    query = EMBEDDER.encode_query("Title 3")
    with (
        closing(LexicalIndex(live / LEXICAL_FILE)) as lexical,
        closing(MetadataFile(live / METADATA_FILE)) as metadata,
    ):
        vectors = VectorIndex(live)
        publish(builds, documents("second"))
        builds.collect_garbage(keep=0)
        assert not live.exists()
        assert [doc_id for doc_id, _ in lexical.search_documents("first", 9)] == [f"d{i}" for i in range(6)]
        assert lexical.stored_section(2).text.endswith("first of 2")
        assert [item.text for item in metadata.documents()] == [f"Title {i}" for i in range(6)]
        assert vectors.search(query, 1)[0][0] == "d3"


def test_a_copy_opens_anywhere(builds: Builds, tmp_path: Path) -> None:
    publish(builds, documents())
    live = builds.live_path
    assert live is not None
    copy = tmp_path / "else where?#%41" / "b"
    shutil.copytree(live, copy)
    assert verify_build(copy) == verify_build(live)
    with (
        closing(LexicalIndex(copy / LEXICAL_FILE)) as lexical,
        closing(MetadataFile(copy / METADATA_FILE)) as metadata,
    ):
        assert lexical.doc_ids == metadata.doc_ids() == VectorIndex(copy).doc_ids


def test_the_manifest_round_trips(builds: Builds) -> None:
    publish(builds, documents())
    live = builds.live_path
    assert live is not None
    manifest = read_manifest(live)
    path = live / "manifest.json"
    stored = json.loads(path.read_text())
    assert stored == {"schema_version": SCHEMA_VERSION, **asdict(manifest)}
    for damaged in ("", "[]", "7", "{}", '"text"', json.dumps({**stored, "unknown": 1})):
        path.write_text(damaged)
        with pytest.raises(IndexCorrupt, match="its manifest cannot be read"):
            read_manifest(live)
    path.write_text(json.dumps({**stored, "schema_version": 9}))
    with pytest.raises(IndexOutdated):
        read_manifest(live)
    path.unlink()
    with pytest.raises(IndexCorrupt, match=r"manifest\.json is missing"):
        read_manifest(live)
    shutil.rmtree(live)
    with pytest.raises(IndexNotFound):
        read_manifest(live)


def test_a_damaged_pointer_names_a_remedy_that_works(builds: Builds, tmp_path: Path) -> None:
    first = publish(builds, documents()).build_id
    pointer = tmp_path / "offline" / "CURRENT"
    for damaged in ("", "[]", "{}"):
        pointer.write_text(damaged)
        with pytest.raises(StoreCorrupt, match=r"CURRENT is damaged .* delete it and run `prime refresh`"):
            _ = builds.live_id
    pointer.unlink()
    assert publish(builds, documents()) == Publication(first, first, changed=True)


def test_a_file_in_the_place_of_the_home_holds_no_build(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    builds = Builds(tmp_path / "file" / "indexes")
    assert (builds.live_id, builds.live_path, builds.history()) == (None, None, [])
    with pytest.raises(IndexNotFound):
        read_manifest(builds.path("0" * 16))


def test_builds_from_before_an_exclusion_go(builds: Builds) -> None:
    first = publish(builds, documents("first")).build_id
    second = publish(builds, documents("second")).build_id
    assert builds.remove_other_than("", even_live=True) == []
    assert builds.start_for(plan_of(documents("third"))) == builds.path(second)
    under = replace(plan_of(documents("third")), forgotten="f")
    assert under.build_id != plan_of(documents("third")).build_id
    assert builds.start_for(under) is None  # in a copy, traces of what was taken out would remain
    assert builds.remove_other_than("f", even_live=False) == [first]
    assert [item["build"] for item in builds.history()] == [second]
    write_parts(builds.staging(under.build_id), documents("third"))
    builds.publish(under)
    assert builds.start_for(under) == builds.path(under.build_id)
    assert builds.remove_other_than("f", even_live=True) == [second]
    assert builds.live_id == under.build_id
    assert builds.remove_other_than("g", even_live=True) == [under.build_id]
    assert builds.live_id is None
