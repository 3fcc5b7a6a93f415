"""Metadata synthesis (MS): from documents to the short texts that stand for them in the vector index.

Documents stream through: of each, only counts, headings and a short opening are kept. No model is called here; the
caller brings its encoder's tokenizer, which fits texts into the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from prime_pipeline.metadata.heading_tree import HeadingTree, distinctive_headings, heading_tree
from prime_pipeline.metadata.lead import lead
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.terms import TermStatistics, word_reader
from prime_pipeline.models.tokenizer import Tokenizer
from prime_pipeline.records import Document, DocumentMetadata

SYNTHESIS_VERSION: Final = "1"
"""Raise it when the same documents and options would give other metadata."""

_BATCH: Final = 256
_LEAST_TOKENS: Final = 8


@dataclass(frozen=True, slots=True)
class SynthesisResult:
    """The metadata of a corpus.

    Attributes:
        metadata: One record per document, sorted by document id.
        n_documents: Documents read: the N of the IDF.
        document_frequencies: In how many documents each word occurs, stop words included, for the IDF of query
            words. Words are cut as the reading of the options does, see
            :func:`prime_pipeline.metadata.terms.word_reader`.
    """

    metadata: tuple[DocumentMetadata, ...]
    n_documents: int
    document_frequencies: Mapping[str, int]

    @property
    def vocabulary_size(self) -> int:
        """Distinct words of the corpus, stop words included."""
        return len(self.document_frequencies)


@dataclass(frozen=True, slots=True)
class _Draft:
    """What is kept of a document once it has been counted; ``is_structured`` if metadata stands for its text."""

    doc_id: str
    title: str
    own_title: str
    is_structured: bool
    tree: HeadingTree
    opening: str


def synthesise(
    documents: Iterable[Document], options: MetadataOptions, tokenizer: Tokenizer
) -> SynthesisResult:
    """The metadata of all documents; their order makes no difference.

    The metadata text of a document holds, a line each and in this order,

    * with section headings: its own title, the lead, discriminative terms, and distinctive headings. The lead is the
      preamble, continued with the next sections while it is short, and is cut so that terms and headings still fit
      into the encoder's window (at most half of it is theirs). The paper's metadata has no lead;
    * without section headings, or in the reading ``full_text``: its own title and its text, since where there is no
      structure nothing describes a text better than itself;
    * in the reading ``paper_literal`` (PRIME paper, sections 3.3 and 3.4): the title, the terms, and the H2 headings
      (those of the shallowest level where there is no H2).

    A title taken from a file name stays out of the first two. No text is empty: where nothing else is left it is
    the display title, or else the document id.

    Args:
        documents: Read once, one at a time.
        options: See there.
        tokenizer: Of the encoder that will read the texts; each text is cut to its window.
    """
    statistics = TermStatistics()
    drafts = [_draft(document, options, statistics) for document in documents]
    terms = statistics.best_terms(options)
    headings = distinctive_headings([draft.tree for draft in drafts], options.heading_share)
    texts = [
        _compose(draft, [term for term, _ in best], distinctive, options, tokenizer)
        for draft, best, distinctive in zip(drafts, terms, headings, strict=True)
    ]
    fitted = [text for at in range(0, len(texts), _BATCH) for text in tokenizer.fit(texts[at : at + _BATCH])]
    metadata = (
        DocumentMetadata(draft.doc_id, best, draft.tree, text if text.strip() else _name(draft))
        for draft, best, text in zip(drafts, terms, fitted, strict=True)
    )
    return SynthesisResult(
        metadata=tuple(sorted(metadata, key=lambda m: m.doc_id)),
        n_documents=statistics.n_documents,
        document_frequencies=statistics.document_frequencies(),
    )


def _draft(document: Document, options: MetadataOptions, statistics: TermStatistics) -> _Draft:
    """Count the document and keep what its metadata text may need."""
    words = word_reader(options.reading)
    tree = heading_tree(document)
    statistics.add(words(document.text), words("\n".join([document.own_title, *(text for _, text in tree)])))
    is_structured = options.reading != "full_text" and any(s.kind == "section" for s in document.sections)
    return _Draft(
        doc_id=document.doc_id,
        title=document.title,
        own_title=document.own_title,
        is_structured=is_structured,
        tree=tree,
        opening="" if options.reading == "paper_literal" else _opening(document, is_structured, options),
    )


def _opening(document: Document, is_structured: bool, options: MetadataOptions) -> str:
    if is_structured:
        return lead(document.sections, options.min_lead_words, options.max_characters)
    sections = (section for section in document.sections if section.kind != "captions")
    bodies = [s.text.strip() if s.kind == "section" else s.body for s in sections]
    return "\n".join(bodies).strip()[: options.max_characters]


def _compose(
    draft: _Draft,
    terms: Sequence[str],
    distinctive: Sequence[str],
    options: MetadataOptions,
    tokenizer: Tokenizer,
) -> str:
    """The metadata text, at most a little longer than the window; never blank."""
    if options.reading == "paper_literal":
        parts = [draft.title, " ".join(terms), *_section_headings(draft.tree)]
    elif draft.is_structured:
        keys = _joined([", ".join(terms), "; ".join(distinctive[: options.max_headings])])
        keys = _cut(keys[: options.max_characters], tokenizer.window // 2, tokenizer)
        beside = _joined([draft.own_title[: options.max_characters], keys])
        room = tokenizer.window - tokenizer.count([beside])[0]
        parts = [draft.own_title, _cut(draft.opening, room, tokenizer), keys]
    else:
        parts = [draft.own_title, draft.opening]
    return (_joined(parts) or _name(draft))[: options.max_characters]


def _joined(parts: Iterable[str]) -> str:
    return "\n".join(part for part in parts if part.strip())


def _cut(text: str, size_tokens: int, tokenizer: Tokenizer) -> str:
    """The beginning of a text, whole words of at most so many tokens; empty where there is no room to speak of."""
    return tokenizer.windows(text, size_tokens)[0] if size_tokens >= _LEAST_TOKENS and text.strip() else ""


def _section_headings(tree: HeadingTree) -> list[str]:
    levels = {level for level, _ in tree}
    section_level = 2 if 2 in levels else min(levels, default=2)
    return [text for level, text in tree if level == section_level]


def _name(draft: _Draft) -> str:
    return draft.title.strip() or draft.doc_id
