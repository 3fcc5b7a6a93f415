"""Removing what a home keeps of documents: which stores, caches, builds and files that is, and in what order.

Forgetting is a refresh under a list of exclusions, with what a refresh leaves behind removed before and after it. Every
step can be repeated, so one that was ended is finished by forgetting the same documents again.
"""

from __future__ import annotations

import difflib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from prime_pipeline.errors import (
    DocumentChanged,
    DocumentUnknown,
    IndexCorrupt,
    IndexNotFound,
    NothingWouldBeLeft,
    SchemaMismatch,
    StoreCorrupt,
)
from prime_pipeline.evaluation.corpus_properties import full_text
from prime_pipeline.indexes.builds import LEXICAL_FILE, METADATA_FILE, VARIANTS
from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.restructuring.diff_page import page_path
from prime_pipeline.retrieval.stage2 import texts_of
from prime_pipeline.retrieval.token_vectors import TokenVectors, scoring_text
from prime_pipeline.storage.blob_cache import BlobCache, NoCache
from prime_pipeline.storage.documents import CatalogueEntry
from prime_pipeline.storage.fingerprint import text_fingerprint
from prime_pipeline.storage.metadata_file import MetadataFile
from prime_pipeline.storage.restructured import RestructuredStore
from prime_pipeline.workspace import Workspace

_UNUSABLE = (IndexCorrupt, IndexNotFound, SchemaMismatch)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a home keeps of documents.

    Attributes:
        doc_ids: The documents, sorted.
        names: What they are called elsewhere: ids, paths, partition keys, titles.
        parsed: Those whose text is stored.
        restructured: Texts by strategies, in all.
        pages: Pages that show raw beside restructured text.
        builds: Builds that hold one, by variant.
    """

    doc_ids: tuple[str, ...]
    names: frozenset[str]
    parsed: int
    restructured: int
    pages: int
    builds: Mapping[str, tuple[str, ...]]


def kept_of(workspace: Workspace, names: Sequence[str]) -> Kept:
    """What is kept of documents.

    Args:
        workspace: Of the home.
        names: Ids, or paths of files with one document.

    Raises:
        DocumentUnknown: Nothing is kept under a name, and it is not on the list of exclusions either.
        NothingWouldBeLeft: No other document is kept.
    """
    catalogue = workspace.store.catalogue()
    in_builds = {variant: dict(_documents_of_builds(workspace, variant)) for variant in VARIANTS}
    known = set(catalogue).union(*(ids for found in in_builds.values() for ids in found.values()))
    wanted = {_resolved(name, catalogue, known, workspace.forgotten.ids()) for name in names}
    if not {doc_id for doc_id, entry in catalogue.items() if entry.version} - wanted:
        raise NothingWouldBeLeft(workspace.home.root)
    entries = [catalogue[doc_id] for doc_id in wanted if doc_id in catalogue]
    pages = [page_path(workspace.home.diffs, doc_id) for doc_id in wanted]
    return Kept(
        doc_ids=tuple(sorted(wanted)),
        names=frozenset(wanted | set(_names(entries)) | _titles_in_builds(workspace, wanted)),
        parsed=sum(entry.version is not None for entry in entries),
        restructured=sum(
            len(wanted & store.documents.catalogue().keys()) for store in _restructured_stores(workspace)
        ),
        pages=sum(page.is_file() for page in pages),
        builds={
            variant: tuple(sorted(build for build, ids in found.items() if wanted & ids))
            for variant, found in in_builds.items()
        },
    )


def exclude(workspace: Workspace, doc_ids: Iterable[str]) -> None:
    """Put documents on the list of exclusions: whatever happens from now on, no refresh reads them again."""
    with workspace.home.lock("documents"):
        workspace.forgotten.add(doc_ids)


def include_again(workspace: Workspace, doc_ids: Iterable[str]) -> None:
    """Take documents off the list of exclusions: the next refresh reads what is still in the corpus.

    Raises:
        DocumentUnknown: One is not on it.
    """
    wanted = set(doc_ids)
    with workspace.home.lock("documents"):
        excluded = workspace.forgotten.ids()
        for doc_id in sorted(wanted - excluded):
            raise DocumentUnknown(doc_id, difflib.get_close_matches(doc_id, sorted(excluded)))
        workspace.forgotten.remove(wanted)


def remove_before_refresh(workspace: Workspace, doc_ids: Sequence[str]) -> dict[str, int]:
    """Remove what can only be found as long as the texts are there, and what a refresh would leave.

    That is entries of caches, reports, the warehouse, and builds that are not served. Returns how many of each.
    """
    home = workspace.home
    with home.lock("documents"):
        keys = set(_vector_keys(workspace, doc_ids))
    counts = {"vectors": 0, "replies": 0, "audits": 0, "builds": 0, "files": 0}
    for path in (home.embeddings, home.token_vectors):
        with closing(BlobCache(path)) as cache:
            counts["vectors"] += cache.forget(keys)
    with closing(BlobCache(home.audits)) as audits:
        for doc_id in doc_ids:
            counts["audits"] += audits.forget_values_with(_as_json(doc_id))
    counts["replies"] = workspace.replies.forget(doc_ids)
    counts["builds"] = remove_builds(workspace, even_live=False)
    counts["files"] = remove_reports(workspace)
    return counts


def remove_builds(workspace: Workspace, *, even_live: bool) -> int:
    """Remove builds from before the exclusions of now, see :meth:`Builds.remove_other_than`; returns how many."""
    exclusions, n_removed = workspace.forgotten.fingerprint, 0
    for variant in VARIANTS:
        with workspace.home.index_lock(variant):
            n_removed += len(workspace.builds(variant).remove_other_than(exclusions, even_live=even_live))
    return n_removed


def remove_reports(workspace: Workspace) -> int:
    """Remove everything that quotes documents and is made anew: reports, studies, rankings, the warehouse.

    Pages of restructured documents stay: each is about one document, and goes with it. Returns how many files went.
    """
    home = workspace.home
    n_files = 0
    with home.lock("report"), home.lock("evaluation"), home.lock("warehouse"):
        for path in (*home.reports.glob("*"), home.warehouse):
            if path == home.diffs or not path.exists():
                continue
            n_files += sum(1 for file in path.rglob("*") if file.is_file()) if path.is_dir() else 1
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        leftovers = [path for folder in (home.root, home.diffs) for path in folder.glob(".*.tmp")]
        for path in leftovers:  # of runs that were killed, with parts of a warehouse or a page in them
            path.unlink(missing_ok=True)
    return n_files + len(leftovers)


def remove_after_refresh(workspace: Workspace, doc_ids: Sequence[str]) -> dict[str, int]:
    """Remove what the refresh has left: lines of the ledger, free pages of databases. Returns how many lines."""
    home = workspace.home
    n_lines = workspace.ledger.forget(doc_ids)
    workspace.forget_removed()
    workspace.store.compact()
    workspace.ledger.compact()
    workspace.replies.compact()
    for store in _restructured_stores(workspace):
        store.compact()
    with closing(BlobCache(home.audits)) as audits:
        audits.compact()
    return {"ledger lines": n_lines}


def finish(workspace: Workspace, doc_ids: Iterable[str]) -> None:
    """Note that nothing is kept of documents any more."""
    with workspace.home.lock("documents"):
        workspace.forgotten.complete(doc_ids)


def _resolved(
    name: str, catalogue: Mapping[str, CatalogueEntry], known: set[str], excluded: frozenset[str]
) -> str:
    if name in known or name in excluded:
        return name
    of_file = [doc_id for doc_id, entry in catalogue.items() if entry.source_path == name]
    if len(of_file) == 1:
        return of_file[0]
    similar = [doc_id for doc_id in sorted(known) if name in doc_id] or difflib.get_close_matches(
        name, sorted(known)
    )
    raise DocumentUnknown(name, (of_file or similar)[:3])


def _names(entries: Iterable[CatalogueEntry]) -> Iterator[str]:
    for entry in entries:
        yield from (entry.source_path, entry.partition_key, entry.title)


def _build_folders(workspace: Workspace, variant: str) -> list[Path]:
    return sorted(path for path in workspace.home.indexes(variant).glob("builds/*") if path.is_dir())


def _documents_of_builds(workspace: Workspace, variant: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Builds with their documents; damaged ones hold nothing that could be told."""
    for folder in _build_folders(workspace, variant):
        try:
            with closing(MetadataFile(folder / METADATA_FILE)) as metadata:
                yield folder.name, frozenset(metadata.doc_ids())
        except _UNUSABLE:
            yield folder.name, frozenset()


def _titles_in_builds(workspace: Workspace, doc_ids: set[str]) -> set[str]:
    """What the documents were called when builds were made of them."""
    titles = set()
    for lexical in _lexical_indexes(workspace):
        with closing(lexical):
            titles |= {s.title for s in lexical.iterate_sections(sorted(doc_ids & set(lexical.doc_ids)))}
    return titles


def _lexical_indexes(workspace: Workspace) -> Iterator[LexicalIndex]:
    for variant in VARIANTS:
        for folder in _build_folders(workspace, variant):
            try:
                yield LexicalIndex(folder / LEXICAL_FILE)
            except _UNUSABLE:
                continue


def _restructured_stores(workspace: Workspace) -> Iterator[RestructuredStore]:
    for name in workspace.home.strategies():
        with closing(RestructuredStore(workspace.home.restructured(name))) as store:
            yield store


def _vector_keys(workspace: Workspace, doc_ids: Sequence[str]) -> Iterator[str]:
    """Keys of the vectors, by the configured embedder, of every text of the documents that is still stored."""
    token_vectors = TokenVectors(workspace.embedder, NoCache())
    for lexical in _lexical_indexes(workspace):
        with closing(lexical):
            for section in lexical.iterate_sections(sorted(set(doc_ids) & set(lexical.doc_ids))):
                for version in texts_of(section, "both"):
                    yield from map(token_vectors.key, token_vectors.cut(scoring_text(version)))
    texts = [*_metadata_texts(workspace, doc_ids), *_full_texts(workspace, doc_ids)]
    for text in (*texts, *workspace.embedder.tokenizer.fit(texts)):
        yield text_fingerprint(workspace.embedder.fingerprint, text)


def _metadata_texts(workspace: Workspace, doc_ids: Sequence[str]) -> Iterator[str]:
    for variant in VARIANTS:
        for folder in _build_folders(workspace, variant):
            try:
                with closing(MetadataFile(folder / METADATA_FILE)) as metadata:
                    texts = metadata.texts()
            except _UNUSABLE:
                continue
            yield from (texts[doc_id] for doc_id in doc_ids if doc_id in texts)


def _full_texts(workspace: Workspace, doc_ids: Sequence[str]) -> Iterator[str]:
    catalogue = workspace.store.catalogue()
    for doc_id in doc_ids:
        entry = catalogue.get(doc_id)
        if entry and entry.version:
            try:
                yield full_text(workspace.store.load(doc_id, entry.version))
            except (DocumentChanged, StoreCorrupt, SchemaMismatch):
                continue  # nothing can be read of it, and its file goes in any case


def _as_json(doc_id: str) -> bytes:
    """An id as a JSON text names it."""
    return json.dumps(doc_id)[1:-1].encode()
