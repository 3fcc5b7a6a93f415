"""Known-item queries, made from a corpus that has no judgements: each should find the document it was made from.

Only queries and what is relevant to them are made here; the documents come from the caller, the same as are indexed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean, median
from typing import Final, Literal, get_args

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.corpus_properties import common_headings, heading_key
from prime_pipeline.evaluation.density import ReferenceIdf
from prime_pipeline.metadata.lead import prose
from prime_pipeline.metadata.terms import is_candidate
from prime_pipeline.records import Document, Qrels, Query, Section, section_id
from prime_pipeline.text.references import without_references
from prime_pipeline.text.sentences import sentences
from prime_pipeline.text.words import term_words

N_KNOWN_ITEMS: Final = 200

Kind = Literal["heading", "sentence"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MAX_WORDS: Final = 8
"""Words of a query."""

_MIN_WORDS: Final = 2
_MIN_SENTENCE_WORDS: Final = 6
_SHARE_OF_SENTENCE: Final = 2 / 3
_MAX_SECTION_CHARACTERS: Final = 20_000


@dataclass(frozen=True, slots=True)
class KnownItems:
    """Queries made from the documents themselves.

    Attributes:
        query_set: The queries with document judgements, ``known_item`` set and the :data:`Kind` as type; the query id
            is ``<kind>:<document id>``.
        section_qrels: The section that each was made from, under the same query ids; ids as
            :func:`~prime_pipeline.records.section_id` makes them.
    """

    query_set: QuerySet
    section_qrels: Qrels


def known_item_queries(
    documents: Sequence[Document],
    n: int = N_KNOWN_ITEMS,
    *,
    kinds: Sequence[Kind] = KINDS,
    name: str = "known-items",
    seed: int = 0,
) -> KnownItems:
    """Make at most ``n`` queries, at most one of each kind per document.

    * ``heading``: content words of a section's heading path, in their order. Headings that are common in the corpus
      ("Motivation"), bare numbers and words of one or two letters are left out, and so are words of the title, which
      every representation of a document begins with.
    * ``sentence``: two thirds of the content words of a body sentence, at most ``MAX_WORDS``, in another order. It is a
      distinctive sentence: its words' mean IDF is at least the median of its section's sentences.

    Both are easier than questions of people, for their words stand in the document. Each favors what holds its words:
    ``heading`` the metadata vectors and the lexical index (heading words are in both), ``sentence`` BM25, and full-text
    vectors where the sentence lies within the encoder's window. So compare representations on both kinds, or on neither.
    A heading-free document gets sentence queries only: its title would find it whatever is indexed.

    Which documents, sections, sentences and words are taken is decided by hashes of the seed and their names, so that
    a document that joins the corpus changes no other document's queries unless it makes a heading common, or words
    frequent.

    Raises:
        EvaluationError: ``n`` is below 1, or no document yields a query.
    """
    if n < 1:
        raise EvaluationError(f"{n} known-item queries were asked for: ask for 1 or more")
    drafts = list(islice(_drafts(documents, kinds, seed), n))
    if not drafts:
        raise EvaluationError(
            "no document yields a known-item query: it takes sections with distinctive headings, or sentences of at "
            f"least {_MIN_SENTENCE_WORDS} content words; give a query set instead"
        )
    return _known_items(name, sorted(drafts, key=lambda draft: draft.query.query_id))


@dataclass(frozen=True, slots=True)
class _Draft:
    query: Query
    kind: Kind
    doc_id: str
    section_id: str


def _drafts(documents: Sequence[Document], kinds: Sequence[Kind], seed: int) -> Iterator[_Draft]:
    if not any(term_words(document.text) for document in documents):
        return
    maker = _Maker(documents, seed)
    for document in sorted(documents, key=lambda d: (_draw(seed, d.doc_id), d.doc_id)):
        yield from filter(None, (maker.draft(document, kind) for kind in kinds))


class _Maker:
    def __init__(self, documents: Sequence[Document], seed: int) -> None:
        self._seed = seed
        self._idf = ReferenceIdf(document.text for document in documents)
        self._common = common_headings(
            [part for s in d.sections for part in s.heading_path] for d in documents
        )

    def draft(self, document: Document, kind: Kind) -> _Draft | None:
        """A query of that kind, from the section that is drawn first among those that yield one."""
        words_of = self._heading_words if kind == "heading" else self._sentence_words
        for section in sorted(document.content_sections, key=lambda s: self._draw(document, s.ordinal)):
            if words := words_of(document, section):
                query = Query(f"{kind}:{document.doc_id}", " ".join(words))
                return _Draft(query, kind, document.doc_id, section_id(document.doc_id, section.ordinal))
        return None

    def _heading_words(self, document: Document, section: Section) -> list[str]:
        if section.kind != "section" or not section.body:
            return []
        own = [part for part in section.heading_path if heading_key(part) not in self._common]
        title = set(term_words(document.title))
        words = [word for word in _content_words(" ".join(own)) if word not in title]
        return words[-MAX_WORDS:] if len(words) >= _MIN_WORDS else []

    def _sentence_words(self, document: Document, section: Section) -> list[str]:
        if section.kind == "captions":
            return []
        text = prose(section.body[:_MAX_SECTION_CHARACTERS])
        found = {sentence: _content_words(sentence) for sentence in sentences(without_references(text))}
        found = {s: words for s, words in found.items() if len(words) >= _MIN_SENTENCE_WORDS}
        if not found:
            return []
        rarity = {s: fmean(map(self._idf, words)) for s, words in found.items()}
        middle = median(rarity.values())
        chosen = min((s for s in found if rarity[s] >= middle), key=lambda s: (self._draw(document, s), s))
        return self._sampled(document, found[chosen])

    def _sampled(self, document: Document, words: Sequence[str]) -> list[str]:
        n_words = min(MAX_WORDS, round(len(words) * _SHARE_OF_SENTENCE))
        return sorted(words, key=lambda word: (self._draw(document, "word", word), word))[:n_words]

    def _draw(self, document: Document, *names: object) -> bytes:
        return _draw(self._seed, document.doc_id, *names)


def _known_items(name: str, drafts: Sequence[_Draft]) -> KnownItems:
    return KnownItems(
        QuerySet(
            name=name,
            queries=tuple(draft.query for draft in drafts),
            qrels={draft.query.query_id: {draft.doc_id: 1} for draft in drafts},
            known_item=True,
            types={draft.query.query_id: draft.kind for draft in drafts},
        ),
        section_qrels={draft.query.query_id: {draft.section_id: 1} for draft in drafts},
    )


def _content_words(text: str) -> list[str]:
    """The distinct words that can be discriminative terms, in order."""
    return list(dict.fromkeys(filter(is_candidate, term_words(text))))


def _draw(seed: int, *names: object) -> bytes:
    """A number drawn for a name, as bytes: the same in every run, independent of all other names."""
    return hashlib.blake2b(repr((seed, *names)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
