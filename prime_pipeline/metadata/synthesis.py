"""Metadata synthesis (MS): from documents to the short texts that stand for them in the vector index.

Documents stream through: of each, only counts, headings and a short opening are kept. No model is called here; the
caller brings its encoder's tokenizer, which fits texts into the window.

IDF belongs to the corpus, so that one new document moves everybody's scores; but what was counted of an unchanged document
stands, and so does its text while its terms and headings are the same ones. :func:`bring_up_to_date` takes both over
from an earlier synthesis and gives what :func:`synthesise` gives of all documents.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from prime_pipeline.metadata.heading_tree import HeadingTree, distinctive_headings, heading_tree
from prime_pipeline.metadata.lead import lead
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.terms import TermStatistics, word_reader
from prime_pipeline.models.tokenizer import Tokenizer
from prime_pipeline.records import Document, DocumentMetadata
from prime_pipeline.storage.fingerprint import fingerprint, text_fingerprint
from prime_pipeline.storage.metadata_file import CorpusCounts, DocumentCounts

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
        counts: What :func:`bring_up_to_date` counted, documents in the order of ``metadata``; a word goes by its place
            among all words of ``document_frequencies`` in alphabetical order.
    """

    metadata: tuple[DocumentMetadata, ...]
    n_documents: int
    document_frequencies: Mapping[str, int]
    counts: CorpusCounts = field(default_factory=CorpusCounts)

    @property
    def vocabulary_size(self) -> int:
        """Distinct words of the corpus, stop words included."""
        return len(self.document_frequencies)


@dataclass(frozen=True, slots=True)
class EarlierSynthesis:
    """What an earlier synthesis left.

    Attributes:
        terms: All words of its corpus in alphabetical order.
        metadata: Of its documents, in order of id.
        counts: What was counted of them; where that is empty nothing is taken over.
    """

    terms: Sequence[str]
    metadata: Sequence[DocumentMetadata]
    counts: CorpusCounts


@dataclass(frozen=True, slots=True)
class _Draft:
    """What is kept of a document once it has been counted; ``is_structured`` if metadata stands for its text."""

    doc_id: str
    title: str
    own_title: str
    is_structured: bool
    tree: HeadingTree
    opening: str


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is taken over of a document that was counted before."""

    tree: HeadingTree
    text: str
    text_key: str


@dataclass(frozen=True, slots=True)
class _Described:
    """What the corpus says about a document."""

    doc_id: str
    tree: HeadingTree
    terms: tuple[tuple[str, float], ...]
    distinctive: tuple[str, ...]


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
    drafts = [_counted(document, options, statistics) for document in documents]
    described = _described({draft.doc_id: draft.tree for draft in drafts}, statistics, options)
    return SynthesisResult(
        metadata=_metadata(described, _texts(drafts, described, options, tokenizer)),
        n_documents=statistics.n_documents,
        document_frequencies=statistics.document_frequencies(),
    )


def bring_up_to_date(
    versions: Sequence[tuple[str, str]],
    load: Callable[[str, str], Document],
    options: MetadataOptions,
    tokenizer: Tokenizer,
    encoder: str,
    earlier: EarlierSynthesis | None = None,
) -> SynthesisResult:
    """What :func:`synthesise` makes of documents, reading only those that an earlier synthesis did not have.

    Read are new and changed documents, and those whose terms or distinctive headings are others now that the IDF has
    moved. The result, ``counts`` included, does not depend on what was taken over.

    Args:
        versions: (document id, content version).
        load: Gives the document of an id and version.
        options: See there.
        tokenizer: Of the encoder that will read the texts.
        encoder: Tells that encoder from others.
        earlier: Where to take over from; made by whatever options, encoder and version of this program.
    """
    statistics = TermStatistics()
    how_counted = fingerprint([SYNTHESIS_VERSION, unicodedata.unidata_version, options.reading])
    counts_keys = {doc_id: text_fingerprint(how_counted, version) for doc_id, version in versions}
    kept = _taken_over(earlier, counts_keys, statistics) if earlier else {}
    drafts = {
        doc_id: _counted(load(doc_id, version), options, statistics)
        for doc_id, version in versions
        if doc_id not in kept
    }
    trees = {doc_id: of_one.tree for doc_id, of_one in (kept | drafts).items()}
    described = _described(trees, statistics, options)
    how_composed = fingerprint([asdict(options), encoder])
    text_keys = {d.doc_id: _text_key(counts_keys[d.doc_id], how_composed, d) for d in described}
    outdated = [d for d in described if d.doc_id in drafts or kept[d.doc_id].text_key != text_keys[d.doc_id]]
    wanted = dict(versions)
    ready = [drafts.get(d.doc_id) or _draft(load(d.doc_id, wanted[d.doc_id]), options) for d in outdated]
    texts = {doc_id: of_one.text for doc_id, of_one in kept.items()}
    texts.update(_texts(ready, outdated, options, tokenizer))
    return SynthesisResult(
        metadata=_metadata(described, texts),
        n_documents=statistics.n_documents,
        document_frequencies=statistics.document_frequencies(),
        counts=_counts(described, statistics, counts_keys, text_keys),
    )


def _counts(
    described: Sequence[_Described],
    statistics: TermStatistics,
    counts_keys: Mapping[str, str],
    text_keys: Mapping[str, str],
) -> CorpusCounts:
    order = sorted(range(len(described)), key=lambda at: described[at].doc_id)
    ids, lengths, sizes = [d.doc_id for d in described], statistics.lengths, statistics.sizes
    documents = (
        DocumentCounts(ids[at], counts_keys[ids[at]], text_keys[ids[at]], lengths[at], sizes[at])
        for at in order
    )
    return CorpusCounts(tuple(documents), statistics.counted(order)[1])


def _taken_over(
    earlier: EarlierSynthesis, counts_keys: Mapping[str, str], statistics: TermStatistics
) -> dict[str, _Kept]:
    """The documents that were counted before in the version and the way that are asked for, in the order of ``statistics``."""
    before = earlier.counts.documents
    same = [at for at, counted in enumerate(before) if counts_keys.get(counted.doc_id) == counted.counts_key]
    statistics.take_over(
        earlier.terms,
        earlier.counts.entries,
        [counted.n_entries for counted in before],
        {at: before[at].n_words for at in same},
    )
    metadata = {m.doc_id: m for m in earlier.metadata}
    pairs = ((before[at], metadata[before[at].doc_id]) for at in same)
    return {
        counted.doc_id: _Kept(described.headings, described.text, counted.text_key)
        for counted, described in pairs
    }


def _counted(document: Document, options: MetadataOptions, statistics: TermStatistics) -> _Draft:
    """Count the document and keep what its metadata text may need."""
    words = word_reader(options.reading)
    draft = _draft(document, options)
    headings = "\n".join([document.own_title, *(text for _, text in draft.tree)])
    statistics.add(words(document.text), words(headings))
    return draft


def _draft(document: Document, options: MetadataOptions) -> _Draft:
    is_structured = options.reading != "full_text" and any(s.kind == "section" for s in document.sections)
    return _Draft(
        doc_id=document.doc_id,
        title=document.title,
        own_title=document.own_title,
        is_structured=is_structured,
        tree=heading_tree(document),
        opening="" if options.reading == "paper_literal" else _opening(document, is_structured, options),
    )


def _described(
    trees: Mapping[str, HeadingTree], statistics: TermStatistics, options: MetadataOptions
) -> list[_Described]:
    """The documents in the order in which they were counted, which is that of the trees."""
    terms = statistics.best_terms(options)
    headings = distinctive_headings(list(trees.values()), options.heading_share)
    return [
        _Described(doc_id, tree, best, distinctive)
        for (doc_id, tree), best, distinctive in zip(trees.items(), terms, headings, strict=True)
    ]


def _text_key(counts_key: str, how_composed: str, described: _Described) -> str:
    """Hash of all that a metadata text is composed of: where it is the same, the text is."""
    terms = [term for term, _ in described.terms]
    return text_fingerprint(counts_key, how_composed, str(len(terms)), *terms, *described.distinctive)


def _texts(
    drafts: Iterable[_Draft],
    described: Sequence[_Described],
    options: MetadataOptions,
    tokenizer: Tokenizer,
) -> dict[str, str]:
    """The metadata texts of drafts by document id, fitted into the window."""
    pairs = list(zip(drafts, described, strict=True))
    texts = [
        _compose(draft, [term for term, _ in d.terms], d.distinctive, options, tokenizer)
        for draft, d in pairs
    ]
    fitted = [text for at in range(0, len(texts), _BATCH) for text in tokenizer.fit(texts[at : at + _BATCH])]
    return {
        draft.doc_id: text if text.strip() else _name(draft)
        for (draft, _), text in zip(pairs, fitted, strict=True)
    }


def _metadata(described: Iterable[_Described], texts: Mapping[str, str]) -> tuple[DocumentMetadata, ...]:
    """One record per document, in order of id."""
    found = (DocumentMetadata(d.doc_id, d.terms, d.tree, texts[d.doc_id]) for d in described)
    return tuple(sorted(found, key=lambda m: m.doc_id))


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
