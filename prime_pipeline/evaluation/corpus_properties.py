"""Properties of a corpus that can be measured before anything is retrieved, each a small function with its interval.

What they predict is for the corpus profile to say. Documents, metadata and vectors are the caller's; no model is asked,
only an encoder's tokenizer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from prime_pipeline.evaluation.density import ReferenceIdf
from prime_pipeline.evaluation.statistics import Interval, Resampling, share_interval
from prime_pipeline.models.tokenizer import Tokenizer
from prime_pipeline.records import Document, DocumentMetadata, Qrels, Query, Section
from prime_pipeline.text.protected import inline_spans, protect
from prime_pipeline.text.references import symbols
from prime_pipeline.text.sentences import first_sentence
from prime_pipeline.text.stems import content_stems
from prime_pipeline.text.stop_words import STOP_WORDS
from prime_pipeline.text.words import term_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

COMMON_HEADING_SHARE: Final = 0.05
"""A heading is common if more than this share of the documents has it, and more than one: it tells none from others."""
RESAMPLING: Final = Resampling(n_resamples=2_000)

Part = tuple[float, float]
"""What one document, or one query, adds to the numerator and to the denominator of a property."""

_POINTS_BACK: Final = re.compile(
    r"""(?:as|like)\ (?:above|before|mentioned|noted|discussed|shown|described|stated|seen)\b
    | (?:these|those|that|it|its|they|their|them|such|here|both|above)\b
    | this\b(?!\ (?:rfc|paper|section|chapter|page|document|article|tutorial|guide|work|thesis|report|appendix|part)\b)
    | the\ (?:former|latter|above|same|previous|preceding|other)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_GOES_ON: Final = re.compile(
    r"(?:then|therefore|thus|hence|so|consequently|accordingly|it follows|recall|now|next|finally|"
    r"by (?:lemma|theorem|proposition|corollary|definition)|(?:second|third|fourth|last)(?:ly)?)\b",
    re.IGNORECASE,
)
_LEADING_MARKS: Final = re.compile(r"^[\W_]+")
_MAX_OPENING_CHARACTERS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a corpus.

    Attributes:
        meaning: What is measured, in words that follow the number: "of the documents have section headings".
        interval: A ratio of sums over documents (or queries), see :data:`Part`, with its bootstrap interval. ``n`` counts
            the documents (queries) that it rests on: those with something in the denominator.
        is_share: Whether it goes from 0 to 1 and reads best in per cent.
    """

    meaning: str
    interval: Interval
    is_share: bool = True

    @property
    def value(self) -> float:
        """Of the whole corpus."""
        return self.interval.value

    def __str__(self) -> str:
        """Such as ``81 % [72 %, 89 %] of the documents have section headings (n = 83)``."""
        low, high = self.interval.low, self.interval.high
        within = "" if low is None or high is None else f" [{self._shown(low)}, {self._shown(high)}]"
        return f"{self._shown(self.value)}{within} {self.meaning} (n = {self.interval.n:,})"

    def _shown(self, number: float) -> str:
        return f"{100 * number:.0f} %" if self.is_share else f"{number:.2f}"


def from_parts(
    meaning: str, parts: Iterable[Part], *, is_share: bool = True, resampling: Resampling = RESAMPLING
) -> Property | None:
    """The property that parts add up to; None where nothing is in any denominator.

    Documents (queries) are resampled. What was read off the whole corpus, such as which headings are common, counts as
    given.
    """
    import numpy as np

    from prime_pipeline.evaluation.resampling import ratio_bounds

    kept = np.array([part for part in parts if part[1] > 0], dtype=np.float64).reshape(-1, 2)
    if not len(kept):
        return None
    numerators, denominators = kept[:, :1], kept[:, 1:]
    value = numerators.sum(axis=0) / denominators.sum(axis=0)
    # Resampling knows no width where all documents have all, or nothing: then they are the trials of Wilson's interval.
    certain = (
        share_interval(int(value[0]) * len(kept), len(kept)) if is_share and value[0] in {0, 1} else None
    )
    if certain is not None:
        return Property(meaning, certain, is_share)
    ((low, high, method),) = ratio_bounds(value, numerators, denominators, resampling)
    interval = Interval(float(value[0]), low, high, len(kept), len(kept), method)
    return Property(meaning, interval, is_share)


# --- headings ---------------------------------------------------------------------------------------------------


def heading_key(text: str) -> str:
    """A heading's words without case, numbers and punctuation; empty where nothing is left."""
    return " ".join(word for word in term_words(text) if not word.isdigit())


def common_headings(headings: Iterable[Iterable[str]]) -> frozenset[str]:
    """The keys of headings that more than ``COMMON_HEADING_SHARE`` of the documents have, and more than one.

    Args:
        headings: The heading texts of each document.
    """
    keys = [{heading_key(text) for text in texts} for texts in headings]
    frequencies = Counter(key for found in keys for key in found)
    limit = max(1.0, COMMON_HEADING_SHARE * len(keys))
    return frozenset(key for key, n_documents in frequencies.items() if n_documents > limit)


def heading_coverage(documents: Sequence[Document]) -> Property | None:
    """The share of documents that are cut into sections by headings."""
    return from_parts("of the documents have section headings", ((_is_structured(d), 1) for d in documents))


def heading_depth(metadata: Sequence[DocumentMetadata]) -> Property | None:
    """The mean number of heading levels below the title; documents without headings count 0."""
    parts = ((len({level for level, _ in item.headings}), 1) for item in metadata)
    return from_parts("heading levels per document", parts, is_share=False)


def sections_per_document(documents: Sequence[Document]) -> Property | None:
    """The mean number of sections with content; a document without headings is one."""
    parts = ((len(d.content_sections), 1) for d in documents)
    return from_parts("sections per document", parts, is_share=False)


def common_heading_share(metadata: Sequence[DocumentMetadata]) -> Property | None:
    """The share of headings that are common, see :func:`common_headings`."""
    common = common_headings(map(_heading_texts, metadata))
    parts = ((sum(heading_key(t) in common for _, t in m.headings), len(m.headings)) for m in metadata)
    return from_parts("of the headings stand in more than 5 % of the documents", parts)


# --- the encoder's window -----------------------------------------------------------------------------------------


def full_text(document: Document) -> str:
    """What a full-text vector is made of: the document's text, its own title in front where the text lacks it."""
    text, title = document.text, document.own_title
    return text if title in text[: len(title) + 1000] else f"{title}\n{text}"


def long_sections(documents: Sequence[Document], tokenizer: Tokenizer) -> Property | None:
    """The share of sections with content that are longer than the encoder's window."""
    counts = (tokenizer.count([s.text for s in d.content_sections]) for d in documents)
    parts = ((sum(n > tokenizer.window for n in row), len(row)) for row in counts)
    return from_parts("of the sections are longer than the encoder's window", parts)


def long_documents(documents: Sequence[Document], tokenizer: Tokenizer) -> Property | None:
    """The share of documents whose full text is longer than the encoder's window."""
    counts = tokenizer.count([full_text(document) for document in documents])
    return from_parts(
        "of the documents are longer than the encoder's window", ((n > tokenizer.window, 1) for n in counts)
    )


def text_read(documents: Sequence[Document], tokenizer: Tokenizer) -> Property | None:
    """The share of a document's tokens that the encoder reads of its full text, mean over documents."""
    counts = tokenizer.count([full_text(document) for document in documents])
    parts = ((min(1, tokenizer.window / n), 1) for n in counts if n)
    return from_parts("of a document is read by the encoder, on average", parts)


def unread_metadata(
    documents: Sequence[Document], metadata: Sequence[DocumentMetadata], tokenizer: Tokenizer
) -> Property | None:
    """The share of the words of discriminative terms and distinctive headings that the encoder does not meet in the full text.

    That is what metadata can tell an encoder beyond what a full-text vector was made of anyway. Words are compared by
    stem.
    """
    common = common_headings(map(_heading_texts, metadata))
    read = dict(
        zip((d.doc_id for d in documents), tokenizer.fit([full_text(d) for d in documents]), strict=True)
    )
    parts = []
    for item in metadata:
        headings = (text for text in _heading_texts(item) if heading_key(text) not in common)
        told = set(content_stems(" ".join([*(term for term, _ in item.terms), *headings])))
        parts.append((len(told - set(content_stems(read[item.doc_id]))), len(told)))
    return from_parts(
        "of the words of terms and distinctive headings lie beyond what the encoder reads", parts
    )


def word_pieces(documents: Sequence[Document], tokenizer: Tokenizer) -> Property | None:
    """Tokens of the encoder per word between blanks: English prose has about 1.3 to 1.5, text foreign to it more."""
    texts = [full_text(document) for document in documents]
    parts = ((n, len(text.split())) for n, text in zip(tokenizer.count(texts), texts, strict=True))
    return from_parts("tokens of the encoder per word", parts, is_share=False)


# --- words ----------------------------------------------------------------------------------------------------------


def stop_word_share(documents: Sequence[Document]) -> Property | None:
    """The share of words that are stop words."""
    words = (term_words(document.text) for document in documents)
    return from_parts(
        "of the words are stop words", ((sum(w in STOP_WORDS for w in row), len(row)) for row in words)
    )


def shared_terms(metadata: Sequence[DocumentMetadata]) -> Property | None:
    """The share of discriminative terms that are among those of another document too."""
    counts = Counter(term for item in metadata for term, _ in item.terms)
    parts = ((sum(counts[term] > 1 for term, _ in item.terms), len(item.terms)) for item in metadata)
    return from_parts("of the discriminative terms stand for another document too", parts)


def term_idf(documents: Sequence[Document], metadata: Sequence[DocumentMetadata]) -> Property | None:
    """Mean IDF of the discriminative terms, as a share of the IDF of a word that one document alone has.

    IDF is that of :class:`~prime_pipeline.evaluation.density.ReferenceIdf`.
    """
    if not any(item.terms for item in metadata):
        return None
    idf = ReferenceIdf(document.text for document in documents)
    highest = math.log((len(documents) + 1) / 2) + 1
    parts = ((sum(idf(term) / highest for term, _ in item.terms), len(item.terms)) for item in metadata)
    return from_parts("of the highest possible IDF is reached by the discriminative terms, on average", parts)


def vocabulary_gap(documents: Sequence[Document], queries: Sequence[Query], qrels: Qrels) -> Property | None:
    """The share of a query's content words that none of its relevant documents holds, by stem; None without queries."""
    if not queries:
        return None
    stems = {document.doc_id: set(content_stems(full_text(document))) for document in documents}
    parts = []
    for query in queries:
        relevant = [d for d, grade in qrels.get(query.query_id, {}).items() if grade > 0 and d in stems]
        asked = set(content_stems(query.text)) if relevant else set()
        parts.append((len(asked.difference(*(stems[d] for d in relevant))), len(asked)))
    return from_parts("of the query words are missing from the relevant documents", parts)


def unknown_query_words(documents: Sequence[Document], queries: Sequence[Query]) -> Property | None:
    """The share of a query's content words that no document holds, by stem; None without queries."""
    if not queries:
        return None
    known = {stem for document in documents for stem in content_stems(full_text(document))}
    asked = (set(content_stems(query.text)) for query in queries)
    return from_parts(
        "of the query words are missing from every document", ((len(row - known), len(row)) for row in asked)
    )


# --- what sections are made of --------------------------------------------------------------------------------------


def section_openings(documents: Iterable[Document]) -> list[list[str]]:
    """For each document the first sentences of the sections behind its first, without marks in front."""
    return [
        [_opening(section) for section in document.content_sections[1:] if section.kind == "section"]
        for document in documents
    ]


def dangling_sections(openings: Iterable[Sequence[str]]) -> Property | None:
    """The share of :func:`section_openings` with a word that points back ("this", "the latter")."""
    return _matching("of the later sections open by pointing back", openings, _POINTS_BACK)


def chained_sections(openings: Iterable[Sequence[str]]) -> Property | None:
    """The share of :func:`section_openings` that are a further step ("then", "therefore", "by Lemma")."""
    return _matching("of the later sections open as a further step", openings, _GOES_ON)


def code_and_formulas(documents: Sequence[Document]) -> tuple[Property | None, Property | None]:
    """The share of characters in code, and the share in formulas.

    Code is blocks of it and spans between backticks; formulas are display math, inline math, and the marks of formulas
    that an extraction lost (``INLINEFORM3``).
    """
    counts = [_code_and_formula_characters(document.text) for document in documents]
    return (
        from_parts("of the characters are code", ((code, total) for code, _, total in counts)),
        from_parts("of the characters are formulas", ((formulas, total) for _, formulas, total in counts)),
    )


# --- embeddings -------------------------------------------------------------------------------------------------------


def embedding_agreement(metadata_vectors: Vectors, full_text_vectors: Vectors) -> Property | None:
    """The mean cosine of a document's metadata vector and its full-text vector.

    Args:
        metadata_vectors: Shape (n_documents, dim), rows of unit length.
        full_text_vectors: The same documents in the same order.
    """
    cosines = (metadata_vectors * full_text_vectors).sum(axis=1).tolist()
    parts = ((cosine, 1) for cosine in cosines)
    return from_parts("mean cosine of metadata and full text", parts, is_share=False)


def neighbor_agreement(
    metadata_vectors: Vectors, full_text_vectors: Vectors, depth: int = 10
) -> Property | None:
    """The mean share of a document's nearest neighbors by full text that are among those by metadata too.

    Arguments as in :func:`embedding_agreement`. Where there are fewer other documents than twice ``depth``, half of
    them are compared, since all of them would agree in any case.
    """
    depth = min(depth, (len(metadata_vectors) - 1) // 2)
    if depth < 1:
        return None
    both = zip(_neighbors(metadata_vectors, depth), _neighbors(full_text_vectors, depth), strict=True)
    parts = ((len(set(left) & set(right)), depth) for left, right in both)
    return from_parts("of the nearest neighbors are the same by metadata and by full text", parts)


def _neighbors(vectors: Vectors, depth: int) -> list[list[int]]:
    """For each row the nearest other rows; ties in the order of rows."""
    import numpy as np

    found: list[list[int]] = []
    for row, vector in enumerate(vectors):
        cosines = vectors @ vector
        cosines[row] = -np.inf
        found.append(np.argsort(-cosines, kind="stable")[:depth].tolist())
    return found


def _heading_texts(item: DocumentMetadata) -> list[str]:
    return [text for _, text in item.headings]


def _is_structured(document: Document) -> bool:
    return any(section.kind == "section" for section in document.sections)


def _matching(name: str, openings: Iterable[Sequence[str]], pattern: re.Pattern[str]) -> Property | None:
    return from_parts(name, ((sum(bool(pattern.match(text)) for text in row), len(row)) for row in openings))


def _opening(section: Section) -> str:
    """The first sentence of a section's prose, without marks in front."""
    guarded = protect(section.body[:_MAX_OPENING_CHARACTERS])
    text = guarded.text
    for block in guarded.blocks:
        text = text.replace(block.placeholder, "")
    return _LEADING_MARKS.sub("", first_sentence(text))


def _code_and_formula_characters(text: str) -> tuple[int, int, int]:
    """(characters of code, of formulas, of the whole text)."""
    guarded = protect(text)
    spans = inline_spans(guarded.text)
    in_code = [b.text for b in guarded.blocks if b.kind == "code"] + [s for s in spans if s.startswith("`")]
    in_math = [b.text for b in guarded.blocks if b.kind == "math"] + [
        s for s in spans if not s.startswith("`")
    ]
    n_formulas = sum(map(len, in_math)) + sum(map(len, symbols(guarded.text)))
    return sum(map(len, in_code)), n_formulas, len(text)
