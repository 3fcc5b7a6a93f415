"""What can be asked of the published index, and what is answered: the same for HTTP, the page and agents.

Each answer is made from one build, which it names. Texts of documents are data: they are handed on as they are, and
whoever shows them escapes them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from prime_pipeline.errors import PrimeError, UnknownDocument
from prime_pipeline.indexes.builds import ServedBuild
from prime_pipeline.indexes.lexical import StoredSection
from prime_pipeline.records import SectionHit, section_id
from prime_pipeline.reporting.explaining import Verdict, verdicts
from prime_pipeline.retrieval.explanation import ArmPlace, QueryWord
from prime_pipeline.retrieval.filters import DocumentFilter
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.server.live import LiveRetriever
from prime_pipeline.workspace import Workspace

MAX_QUERY_CHARACTERS: Final = 2_000
MAX_TOP_K: Final = 50
MAX_PATH_CHARACTERS: Final = 500
MAX_TAGS: Final = 20
MAX_TAG_CHARACTERS: Final = 200

_Tag = Annotated[str, StringConstraints(max_length=MAX_TAG_CHARACTERS)]


class Question(BaseModel):
    """What is searched for, and in which documents."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(
        max_length=MAX_QUERY_CHARACTERS, description="The question, in plain words; nothing in it is syntax."
    )
    top_k: int | None = Field(
        default=None, ge=1, le=MAX_TOP_K, description="Sections to return. Default: as the settings say."
    )
    path: str = Field(
        default="",
        max_length=MAX_PATH_CHARACTERS,
        description="Beginning of the path of the document below the corpus; with *, ? or [...] a pattern for all of it.",
    )
    tag: tuple[_Tag, ...] = Field(
        default=(),
        max_length=MAX_TAGS,
        description="Tags that the document must have, all of them; of its front matter.",
    )
    since: date | None = Field(
        default=None, description="First day of the document's date, which its front matter says."
    )
    until: date | None = Field(default=None, description="Last day of the document's date.")

    @property
    def documents(self) -> DocumentFilter:
        """The documents that may answer."""
        return DocumentFilter(self.path, self.tag, self.since, self.until)


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The best sections for a query.

    Attributes:
        query: As it was asked.
        variant: ``offline`` or ``full``.
        build: Whose answer it is.
        hits: Best first.
    """

    query: str
    variant: str
    build: str
    hits: tuple[SectionHit, ...]


@dataclass(frozen=True, slots=True)
class ExplainedHit:
    """Why a section was returned where it was; see :class:`~prime_pipeline.retrieval.explanation.HitExplanation`.

    Attributes:
        hit: The section.
        arms: By arm the place of its document; None where the arm did not find it.
        fused_score: Of the document after stage 1.
        added: The signals of stage 2 as they were added up.
        words: Words of the query that the section holds, the rarest first.
        verdict: What restructuring decided about it.
    """

    hit: SectionHit
    arms: Mapping[str, ArmPlace | None]
    fused_score: float
    added: Mapping[str, float]
    words: tuple[QueryWord, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ExplainAnswer:
    """The best sections for a query, and what led to each.

    Attributes:
        query: As it was asked.
        variant: ``offline`` or ``full``.
        build: Whose answer it is.
        documents: In the index.
        words: The query's words, in order, each once.
        unknown_words: Those that no document holds.
        hits: Best first.
    """

    query: str
    variant: str
    build: str
    documents: int
    words: tuple[QueryWord, ...]
    unknown_words: tuple[str, ...]
    hits: tuple[ExplainedHit, ...]


@dataclass(frozen=True, slots=True)
class SectionText:
    """One section of a document.

    Attributes:
        section_id: Document id and ordinal.
        heading_path: From the outermost heading below the title to the section's own.
        text: Raw.
        restructured: After restructuring; None where the raw text stands.
        start_line: 1-based first line in the source; None where the format has no lines.
        end_line: 1-based last line, inclusive.
    """

    section_id: str
    heading_path: tuple[str, ...]
    text: str
    restructured: str | None
    start_line: int | None
    end_line: int | None


@dataclass(frozen=True, slots=True)
class DocumentAnswer:
    """A document as it is indexed.

    Attributes:
        variant: ``offline`` or ``full``.
        build: Whose answer it is.
        doc_id: The document.
        title: For display.
        source_path: File below the corpus root.
        properties: What the source says about it, such as its front matter.
        sections: In order; joined, their raw texts are the document but for a preamble that holds nothing.
    """

    variant: str
    build: str
    doc_id: str
    title: str
    source_path: str
    properties: Mapping[str, str]
    sections: tuple[SectionText, ...]


@dataclass(frozen=True, slots=True)
class SectionAnswer:
    """A section with its document and its neighbours.

    Attributes:
        build: Whose answer it is.
        title: Of the document.
        source_path: File below the corpus root.
        section: The section.
        previous_id: The section before it in the document; None for the first.
        next_id: The section behind it; None for the last.
    """

    build: str
    title: str
    source_path: str
    section: SectionText
    previous_id: str | None
    next_id: str | None


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """What is served.

    Attributes:
        status: ``ok``, or ``behind`` where what was published last cannot be used and the build before answers on.
        variant: ``offline`` or ``full``.
        build: The build.
        published_at: In UTC, as ISO 8601.
        age_s: Seconds since then; never negative.
        documents: Documents in it.
        sections: Sections in it.
        vectors: Vectors in it.
        mode: Why this variant was built.
        profile: ``embedded`` or ``paper``.
        embedder: The model that made the vectors.
        problem: Why it is behind, and what to do.
    """

    status: Literal["ok", "behind"]
    variant: str
    build: str
    published_at: str
    age_s: float
    documents: int
    sections: int
    vectors: int
    mode: str
    profile: str
    embedder: str
    problem: str | None = None


class QueryService:
    """Answers questions about what is published now. Safe for several threads.

    Every method raises what :meth:`LiveRetriever.borrowed` does where nothing can be served.

    Args:
        workspace: Whose index is served; closed by who opened it.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._live = LiveRetriever(workspace)
        self._judging = (
            threading.Lock()
        )  # the workspace opens what verdicts are looked up in when first asked

    def search(self, question: Question) -> SearchAnswer:
        """The best sections; of all documents that pass the filters, before any ranking is cut."""
        with self._live.borrowed() as (build, retriever):
            hits = retriever.search(
                question.query, question.top_k, _options(retriever, question), question.documents
            )
            return SearchAnswer(question.query, build.variant, build.build_id, tuple(hits))

    def explain(self, question: Question) -> ExplainAnswer:
        """The same hits with what led to each."""
        with self._live.borrowed() as (build, retriever):
            found = retriever.explain(
                question.query, question.top_k, _options(retriever, question), question.documents
            )
            with self._judging:
                judged = verdicts(self._workspace, retriever, [explained.hit for explained in found.hits])
            hits = tuple(
                ExplainedHit(e.hit, e.arms, e.fused_score, e.added, e.words, verdict)
                for e, verdict in zip(found.hits, judged, strict=True)
            )
            return ExplainAnswer(
                question.query,
                build.variant,
                build.build_id,
                found.n_documents,
                found.words,
                found.unknown_words,
                hits,
            )

    def document(self, doc_id: str) -> DocumentAnswer:
        """A document with its sections, raw and restructured.

        Raises:
            UnknownDocument: It is not in the index.
        """
        with self._live.borrowed() as (build, retriever):
            found = retriever.lexical.document(doc_id)
            if found is None:
                raise UnknownDocument(doc_id)
            sections = tuple(map(_section_text, retriever.lexical.iterate_sections([doc_id])))
            return DocumentAnswer(
                build.variant,
                build.build_id,
                found.doc_id,
                found.title,
                found.source_path,
                found.properties,
                sections,
            )

    def section(self, identifier: str) -> SectionAnswer:
        """A section by its id.

        Raises:
            UnknownDocument: It is not in the index.
        """
        doc_id, _, _ = identifier.rpartition("#")
        try:
            document = self.document(doc_id)
        except UnknownDocument:
            raise UnknownDocument(identifier) from None
        ids = [section.section_id for section in document.sections]
        if identifier not in ids:
            raise UnknownDocument(identifier)
        at = ids.index(identifier)
        return SectionAnswer(
            document.build,
            document.title,
            document.source_path,
            document.sections[at],
            ids[at - 1] if at else None,
            ids[at + 1] if at + 1 < len(ids) else None,
        )

    def health(self) -> HealthAnswer:
        """What is served, and since when."""
        with self._live.borrowed() as (build, retriever):
            manifest, problem = retriever.manifest, self._live.problem
            return HealthAnswer(
                status="behind" if problem else "ok",
                variant=build.variant,
                build=build.build_id,
                published_at=build.published_at,
                age_s=_age_s(build),
                documents=manifest.n_documents,
                sections=manifest.n_sections,
                vectors=manifest.n_vectors,
                mode=manifest.mode,
                profile=manifest.profile,
                embedder=manifest.embedder_name,
                problem=str(problem) if problem else None,
            )

    def warm_up(self) -> PrimeError | None:
        """Open what is published and load the models, so that no caller waits; returns why that cannot be done yet."""
        try:
            with self._live.borrowed() as (_, retriever):
                retriever.search("warm up", top_k=1)
        except PrimeError as error:
            return error
        return None

    def close(self) -> None:
        """Close the build that is open when its last request ends."""
        self._live.close()


def _options(retriever: Retriever, question: Question) -> RetrievalOptions:
    """Those of the settings, but with at least as many documents considered as sections are asked for."""
    options = retriever.options
    wanted = question.top_k or options.top_k
    return replace(
        options,
        n_candidates=max(options.n_candidates, wanted),
        arm_depth=max(options.arm_depth, wanted),
    )


def _section_text(section: StoredSection) -> SectionText:
    return SectionText(
        section_id(section.doc_id, section.ordinal),
        section.heading_path,
        section.text,
        section.restructured,
        section.start_line,
        section.end_line,
    )


def _age_s(build: ServedBuild) -> float:
    """Seconds since it was published; 0 where the clock was set back."""
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(build.published_at)).total_seconds())
