"""The representations of the PRIME paper's experiment, our default, and negative controls.

One protocol for all: a representation gives units of text, each with a document id; each unit is one vector, and a document
scores as its best unit does. What is searched beside the vectors, and how units are embedded, is decided elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Final, Literal, get_args

from prime_pipeline.evaluation.corpus_properties import full_text
from prime_pipeline.metadata.lead import lead
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.synthesis import SynthesisResult, synthesise
from prime_pipeline.metadata.terms import is_candidate
from prime_pipeline.models.tokenizer import Tokenizer
from prime_pipeline.records import Document, DocumentMetadata, Section

Representation = Literal[
    "full-text",
    "chunk-256",
    "structure-chunks",
    "summary-augmented",
    "raptor-lite",
    "bge-m3-chunk-256",
    "prime-offline",
    "prime-full-text",
    "sr-full-text",
    "prime-full",
    "default",
]
Control = Literal["control-identity", "control-shuffled", "control-random-terms"]
Text = Literal["raw", "restructured"]
"""Which text lexical arms and the section scorer read beside the vectors."""

REPRESENTATIONS: Final[tuple[Representation, ...]] = get_args(Representation)
CONTROLS: Final[tuple[Control, ...]] = get_args(Control)
BGE_M3: Final = "bge-m3-chunk-256"
"""The one that an embedder of its own makes."""
SUMMARY_AUGMENTED: Final = "summary-augmented"
"""The one that a language model may have written summaries for."""
CHUNK_TOKENS: Final = 256
SUMMARY_TOKENS: Final = 64
"""Tokens of the summary that is put in front of a chunk; the chunk is that much shorter, so that both are read."""
LITERAL: Final = MetadataOptions(reading="paper_literal")
"""The metadata of the paper."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A text that becomes one vector, and the document that it stands for."""

    doc_id: str
    text: str


class Corpus:
    """What representations are made from. What several of them need is made once.

    Args:
        raw: The raw documents, in order of id.
        restructured: The same with their rewritten bodies; empty where there is no restructured text.
        options: How our own metadata is synthesised.
        tokenizer: Of the encoder.
        summaries: Document id to a summary; a document without one is summarised by its lead.
    """

    def __init__(
        self,
        raw: Sequence[Document],
        restructured: Sequence[Document],
        options: MetadataOptions,
        tokenizer: Tokenizer,
        summaries: Mapping[str, str] | None = None,
    ) -> None:
        self.raw = raw
        self.restructured = restructured
        self.options = options
        self.tokenizer = tokenizer
        self.summaries = summaries or {}

    @cached_property
    def literal(self) -> SynthesisResult:
        """Metadata of the raw text as the paper has it."""
        return synthesise(self.raw, LITERAL, self.tokenizer)

    @cached_property
    def chunks(self) -> tuple[Unit, ...]:
        """Windows of the encoder's tokens over the full text."""
        return tuple(self._windows(CHUNK_TOKENS))

    @cached_property
    def sections(self) -> tuple[Unit, ...]:
        """Sections, heading and text."""
        return tuple(Unit(d.doc_id, section.text) for d in self.raw for section in d.content_sections)

    def summary(self, document: Document) -> str:
        """A short text that says what a document is about, at most :data:`SUMMARY_TOKENS` long."""
        text = self.summaries.get(document.doc_id) or lead(
            document.sections, self.options.min_lead_words, self.options.max_characters
        )
        title = document.own_title
        joined = f"{title}\n{text}" if title else text
        return self.tokenizer.windows(joined, SUMMARY_TOKENS)[0]

    def summarised_chunks(self) -> Iterator[Unit]:
        """Shorter windows, each behind the summary of its document."""
        for document in self.raw:
            summary = self.summary(document)
            for window in self.tokenizer.windows(full_text(document), CHUNK_TOKENS - SUMMARY_TOKENS):
                yield Unit(document.doc_id, f"{summary}\n{window}")

    def _windows(self, size_tokens: int) -> Iterator[Unit]:
        for document in self.raw:
            for window in self.tokenizer.windows(full_text(document), size_tokens):
                yield Unit(document.doc_id, window)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a representation is made.

    Attributes:
        text: What is searched and scored beside its vectors; ``restructured`` ones need restructured text.
        units: Gives its units, documents in order of id.
        about: One sentence for people.
        is_configured: Whether its units depend on the options of our own metadata.
    """

    text: Text
    units: Callable[[Corpus], Iterable[Unit]]
    about: str
    is_configured: bool = False


def units(name: str, corpus: Corpus) -> list[Unit]:
    """The units of a representation; blank texts are left out unless a document has no other.

    Raises:
        KeyError: The name is in neither :data:`REPRESENTATIONS` nor :data:`CONTROLS`.
    """
    made = list(RECIPES[name].units(corpus))
    with_text = {unit.doc_id for unit in made if unit.text.strip()}
    return [unit for unit in made if unit.text.strip() or unit.doc_id not in with_text]


def _of_metadata(metadata: Iterable[DocumentMetadata]) -> Iterator[Unit]:
    return (Unit(item.doc_id, item.text) for item in metadata)


def _of_documents(documents: Iterable[Document]) -> Iterator[Unit]:
    return (Unit(document.doc_id, full_text(document)) for document in documents)


def _prime_offline(corpus: Corpus) -> Iterator[Unit]:
    return _of_metadata(corpus.literal.metadata)


def _prime_full_text(corpus: Corpus) -> Iterator[Unit]:
    texts = {document.doc_id: full_text(document) for document in corpus.raw}
    return (Unit(m.doc_id, f"{m.text}\n{texts[m.doc_id]}") for m in corpus.literal.metadata)


def _prime_full(corpus: Corpus) -> Iterator[Unit]:
    documents = (document.restructured for document in corpus.restructured)
    return _of_metadata(synthesise(documents, LITERAL, corpus.tokenizer).metadata)


def _default(corpus: Corpus) -> Iterator[Unit]:
    return _of_metadata(synthesise(corpus.raw, corpus.options, corpus.tokenizer).metadata)


# --- negative controls: what a gain must not come from ------------------------------------------------------------


def _identity(corpus: Corpus) -> Iterator[Unit]:
    """The full mode's way with text that was rewritten as it was: whatever it gains comes from the way."""
    documents = (_rewritten(document, lambda section: section.body).restructured for document in corpus.raw)
    return _of_metadata(synthesise(documents, LITERAL, corpus.tokenizer).metadata)


def shuffled(documents: Sequence[Document]) -> list[Document]:
    """The documents with each section rewritten as another one was: of equal length over all, and about something else.

    The only section of a corpus keeps its own.
    """
    bodies = {
        (d.doc_id, s.ordinal): s.body if s.rewritten is None else s.rewritten
        for d in documents
        for s in d.content_sections
    }
    drawn = sorted(bodies, key=lambda place: (_draw(*place), place))
    others = dict(zip(drawn, drawn[1:] + drawn[:1], strict=True))  # one cycle: no section keeps its own
    return [
        _rewritten(d, lambda section, d=d: bodies[others[d.doc_id, section.ordinal]])  # type: ignore[misc]
        for d in documents
    ]


def _shuffled(corpus: Corpus) -> Iterator[Unit]:
    documents = (document.restructured for document in shuffled(corpus.restructured))
    return _of_metadata(synthesise(documents, LITERAL, corpus.tokenizer).metadata)


def _random_terms(corpus: Corpus) -> Iterator[Unit]:
    """Metadata as the paper has it, with as many terms drawn from the corpus's words in place of the best ones."""
    words = sorted(filter(is_candidate, corpus.literal.document_frequencies))
    titles = {document.doc_id: document.title for document in corpus.raw}
    for item in corpus.literal.metadata:
        terms = [term for term, _ in item.terms]
        chosen = Random(item.doc_id).sample(words, min(len(terms), len(words)))  # noqa: S311  nothing secret
        behind = len(titles[item.doc_id])  # a title may hold the very words
        yield Unit(
            item.doc_id,
            item.text[:behind] + item.text[behind:].replace(" ".join(terms), " ".join(chosen), 1),
        )


def _rewritten(document: Document, body: Callable[[Section], str]) -> Document:
    content = {section.ordinal for section in document.content_sections}
    sections = (replace(s, rewritten=body(s)) if s.ordinal in content else s for s in document.sections)
    return replace(document, sections=tuple(sections))


def _draw(*names: object) -> bytes:
    return hashlib.blake2b(repr(names).encode("utf-8", "surrogatepass"), digest_size=8).digest()


RECIPES: Final[Mapping[str, Recipe]] = {
    "full-text": Recipe(
        "raw", lambda c: _of_documents(c.raw), "One vector of the text, as far as it is read."
    ),
    "chunk-256": Recipe("raw", lambda c: c.chunks, "Windows of 256 tokens."),
    "structure-chunks": Recipe("raw", lambda c: c.sections, "Sections, heading and text."),
    "summary-augmented": Recipe(
        "raw", Corpus.summarised_chunks, "Windows behind a summary of their document.", is_configured=True
    ),
    "raptor-lite": Recipe(
        "raw", lambda c: (*c.sections, *c.chunks), "Sections and windows, without summaries."
    ),
    "bge-m3-chunk-256": Recipe("raw", lambda c: c.chunks, "Windows of 256 tokens, embedded by BGE-M3."),
    "prime-offline": Recipe("raw", _prime_offline, "Title, terms and headings, as the paper has it."),
    "prime-full-text": Recipe("raw", _prime_full_text, "The same in front of the text."),
    "sr-full-text": Recipe(
        "restructured",
        lambda c: _of_documents(document.restructured for document in c.restructured),
        "One vector of the restructured text.",
    ),
    "prime-full": Recipe("restructured", _prime_full, "Title, terms and headings of the restructured text."),
    "default": Recipe(
        "raw", _default, "Our metadata: title, lead, terms, distinctive headings.", is_configured=True
    ),
    "control-identity": Recipe("raw", _identity, "PRIME full of text that was not rewritten."),
    "control-shuffled": Recipe("restructured", _shuffled, "PRIME full of sections rewritten as others were."),
    "control-random-terms": Recipe("raw", _random_terms, "PRIME offline with terms drawn at random."),
}
"""Every representation and control by name."""
