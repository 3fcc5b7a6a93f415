"""Where a served section came from: build, restructuring, raw text, file and line, and whether the file is still the same."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from prime_pipeline.corpus.decoding import decoded
from prime_pipeline.corpus.html import decoded_html
from prime_pipeline.corpus.scan import was_read_from
from prime_pipeline.errors import (
    DocumentChanged,
    DocumentError,
    SchemaMismatch,
    StoreCorrupt,
    UnknownDocument,
)
from prime_pipeline.indexes.builds import ServedBuild
from prime_pipeline.indexes.lexical import LexicalIndex, StoredDocument, StoredSection
from prime_pipeline.records import Document, DocumentMetadata, document_of, section_id
from prime_pipeline.reporting.explaining import Verdict, section_verdicts
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.storage.documents import CatalogueEntry
from prime_pipeline.workspace import Workspace

_MAX_LINES: Final = 8
_CONTEXT_LINES: Final = 2
_N_SIMILAR: Final = 3

SourceStatus = Literal["unchanged", "moved", "changed", "gone", "unreadable", "unknown"]
"""What became of the text of a section, or of a whole document, in its source since it was published.

``unchanged``: it is the same, and for a section on the same lines; ``moved``: the same on other lines; ``changed``: it is
another; ``gone``: the source, or the section in it, is no longer there; ``unreadable``: the source cannot be read now;
``unknown``: this home has no corpus to compare with.
"""


@dataclass(frozen=True, slots=True)
class SourceState:
    """The source now, compared with what is served.

    Attributes:
        status: See :data:`SourceStatus`.
        reason: What that means and what to do, as the end of a sentence.
    """

    status: SourceStatus
    reason: str


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of raw text.

    Attributes:
        number: 1-based in the file; None where the format has no lines.
        text: Without its line end.
        is_of_section: Whether it belongs to the section; the others stand around it.
    """

    number: int | None
    text: str
    is_of_section: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """How sections of the served build were restructured.

    Attributes:
        label: As the build says, such as ``llm:deepseek-chat/full-1``.
        model: That rewrote; None for an extract, or where the settings of now are of another strategy.
        prompt_version: That it was told, likewise.
        asked_at: When the last run began that asked for the document, in UTC as ISO 8601; None where none is known.
        calls: That were paid for the document in that run.
        cache_hits: Answers about it that were known in that run already.
    """

    label: str
    model: str | None = None
    prompt_version: str | None = None
    asked_at: str | None = None
    calls: int = 0
    cache_hits: int = 0


@dataclass(frozen=True, slots=True)
class DocumentLineage:
    """Where the sections of one document came from.

    Attributes:
        build: That serves it.
        document: As it is served.
        version: Content version that is served.
        indexed_text: The text that BM25 sees: ``raw``, ``restructured`` or ``both``.
        origin: How it was restructured; None in the offline index.
        metadata: The terms, headings and text that stand for the document in the vectors.
        state: Its source now.
        sections: All of them, in order, with the verdicts on them.
    """

    build: ServedBuild
    document: StoredDocument
    version: str
    indexed_text: str
    origin: Origin | None
    metadata: DocumentMetadata | None
    state: SourceState
    sections: tuple[tuple[StoredSection, Verdict], ...]


@dataclass(frozen=True, slots=True)
class SectionLineage:
    """Where one section came from.

    Attributes:
        of_document: The same of its document.
        section: As it is served.
        verdict: What restructuring decided about it.
        state: Its text in the source now.
        lines: Its first lines, with some around them where the file is the one that was read.
        n_lines_left: Further lines of the section.
    """

    of_document: DocumentLineage
    section: StoredSection
    verdict: Verdict
    state: SourceState
    lines: tuple[SourceLine, ...]
    n_lines_left: int


def lineage_of(workspace: Workspace, retriever: Retriever, name: str) -> DocumentLineage | SectionLineage:
    """Where a section came from, or all sections of a document.

    Args:
        workspace: Whose stores are looked into; nothing is made for that.
        retriever: Over the build that is served; open.
        name: Id of a section, as searches give them, or of a document.

    Raises:
        UnknownDocument: The build holds neither.
    """
    document = retriever.lexical.document(name)
    if document:
        return _of_document(workspace, retriever, document, _source(workspace, document.doc_id))
    document = retriever.lexical.document(document_of(name))
    if document is None:
        raise UnknownDocument(name, _similar_sections(retriever.lexical, name))
    source = _source(workspace, document.doc_id)
    whole = _of_document(workspace, retriever, document, source)
    by_id = {section_id(section.doc_id, section.ordinal): (section, v) for section, v in whole.sections}
    if name not in by_id:
        raise UnknownDocument(name, difflib.get_close_matches(name, by_id, _N_SIMILAR, 0.0))
    section, verdict = by_id[name]
    state = _section_state(source, section)
    lines, n_left = _lines(source, section, state)
    return SectionLineage(whole, section, verdict, state, lines, n_left)


@dataclass(frozen=True, slots=True)
class _Source:
    """A source as it is now: the document that was last read from it, and the file's text where that is the same still."""

    state: SourceState | None = None
    stored: Document | None = None
    file_text: str | None = None


def _of_document(
    workspace: Workspace, retriever: Retriever, document: StoredDocument, source: _Source
) -> DocumentLineage:
    sections = list(retriever.lexical.iterate_sections([document.doc_id]))
    ids = [section_id(section.doc_id, section.ordinal) for section in sections]
    judged = section_verdicts(workspace, retriever, ids)
    manifest = retriever.manifest
    published = {item["build"]: item["published_at"] for item in workspace.builds(manifest.variant).history()}
    return DocumentLineage(
        build=ServedBuild(manifest.variant, manifest.build_id, published.get(manifest.build_id, "")),
        document=document,
        version=retriever.lexical.stored_versions()[document.doc_id],
        indexed_text=manifest.lexical_source,
        origin=_origin(workspace, manifest.restructuring, document.doc_id)
        if manifest.restructuring
        else None,
        metadata=retriever.metadata.document(document.doc_id),
        state=_document_state(source, sections),
        sections=tuple(zip(sections, judged, strict=True)),
    )


def _origin(workspace: Workspace, label: str, doc_id: str) -> Origin:
    strategy = workspace.strategy
    if strategy.label != label:
        return Origin(label)
    model, prompt = strategy.details.get("model"), strategy.details.get("prompt_version")
    known = workspace.home.ledger.is_file()
    asked = workspace.ledger.latest(doc_id, strategy.fingerprint) if known else None
    if asked is None:
        return Origin(label, model, prompt)
    run, line = asked
    return Origin(label, model, prompt, run.started_at, line.spending.calls, line.spending.cache_hits)


def _source(workspace: Workspace, doc_id: str) -> _Source:
    """What is known of a document's source; a file is read where the document is one by itself."""
    if not workspace.home.documents.is_dir():  # a store that is opened is made
        return _Source(SourceState("unknown", "this home reads no corpus, what it serves was fetched"))
    entry = workspace.store.catalogue_entry(doc_id)
    if entry is None:
        return _Source(SourceState("gone", "the last refresh did not find it in the corpus any more"))
    if entry.failure or entry.version is None:
        reason = entry.failure or "it was never read"
        return _Source(
            SourceState("unreadable", f"it cannot be read now ({reason}): its last good text is served")
        )
    try:
        stored = workspace.store.load(doc_id, entry.version)
    except (DocumentChanged, StoreCorrupt, SchemaMismatch):
        return _Source(SourceState("unknown", "its stored text cannot be used: prime refresh reads it again"))
    return _with_file(workspace.settings.corpus, entry, stored)


def _with_file(corpus: str | None, entry: CatalogueEntry, stored: Document) -> _Source:
    folder = Path(corpus).expanduser() if corpus else None
    if folder is None or entry.doc_id != entry.source_path or not folder.is_dir():
        return _Source(stored=stored)
    try:
        data = (folder / entry.source_path).read_bytes()
    except FileNotFoundError:
        return _Source(SourceState("gone", "its file is no longer there: prime refresh takes it out"), stored)
    except OSError as error:
        return _Source(SourceState("unreadable", f"its file cannot be read now: {error.strerror}"), stored)
    if not was_read_from(entry, stored.media_type, data):
        return _Source(
            SourceState("changed", "its file was changed since it was read: prime refresh reads it"), stored
        )
    decode = decoded_html if stored.media_type == "text/html" else decoded
    try:
        return _Source(stored=stored, file_text=decode(data, entry.source_path))
    except DocumentError:  # PDF has no lines
        return _Source(stored=stored)


def _document_state(source: _Source, served: Sequence[StoredSection]) -> SourceState:
    if source.state or source.stored is None:
        return source.state or SourceState("unknown", "nothing is known of its source")
    now = {section.ordinal: section.text for section in source.stored.content_sections}
    if now == {section.ordinal: section.text for section in served}:
        return SourceState("unchanged", f"it is what is served{_as_of(source)}")
    return SourceState("changed", "it was read anew, and that is not published yet: prime refresh does it")


def _section_state(source: _Source, served: StoredSection) -> SourceState:
    if source.state or source.stored is None:
        return source.state or SourceState("unknown", "nothing is known of its source")
    found = [section for section in source.stored.content_sections if section.text == served.text]
    places = [(section.start_line, section.end_line) for section in found]
    if (served.start_line, served.end_line) in places:
        return SourceState("unchanged", f"it is what is served{_as_of(source)}")
    if places:
        first, last = places[0]
        return SourceState("moved", f"the same text now stands on lines {first}-{last}")
    return SourceState(
        "changed",
        "the document was read anew, and this text is no longer in it: prime refresh publishes that",
    )


def _as_of(source: _Source) -> str:
    return "" if source.file_text is not None else ", as the last refresh read it"


def _lines(source: _Source, section: StoredSection, state: SourceState) -> tuple[tuple[SourceLine, ...], int]:
    """The first lines of a section, and how many more it has."""
    first, last = section.start_line, section.end_line
    if first is None or last is None:
        own = [SourceLine(None, text, True) for text in section.text.rstrip().split("\n")]
        return tuple(own[:_MAX_LINES]), max(0, len(own) - _MAX_LINES)
    if source.file_text is not None and state.status == "unchanged":
        of_file = source.file_text.split("\n")
        shown_last = min(last, first + _MAX_LINES - 1)
        start, end = first - _CONTEXT_LINES, last + _CONTEXT_LINES if shown_last == last else shown_last
        numbered = enumerate(of_file[max(0, start - 1) : end], start=max(1, start))
        return tuple(SourceLine(n, text, first <= n <= last) for n, text in numbered), last - shown_last
    own = list(_own_lines(section, first, last))
    return tuple(own[:_MAX_LINES]), max(0, len(own) - _MAX_LINES)


def _own_lines(section: StoredSection, first: int, last: int) -> Iterator[SourceLine]:
    """Those of the served text; numbered only where it has as many as it had in the file."""
    texts = section.text.removesuffix("\n").split("\n")
    is_verbatim = len(texts) == last - first + 1
    for number, text in enumerate(texts, start=first):
        yield SourceLine(number if is_verbatim else None, text, True)


def _similar_sections(lexical: LexicalIndex, name: str) -> list[str]:
    """Sections or documents whose ids look like a name."""
    doc_id, _, ordinal = name.rpartition("#")
    wanted = doc_id or name
    similar = [known for known in lexical.doc_ids if wanted in known][:_N_SIMILAR]
    similar = similar or difflib.get_close_matches(wanted, lexical.doc_ids, n=_N_SIMILAR)
    if not doc_id:
        return similar
    served = {section_id(s.doc_id, s.ordinal) for s in lexical.iterate_sections(similar)}
    return [with_it if (with_it := f"{known}#{ordinal}") in served else known for known in similar]
