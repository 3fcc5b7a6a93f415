"""The steps of restructuring: all pending documents, or chosen ones, and the set of them that can be indexed.

Every document ends in the store, whatever the language model does: a section that could not be asked for is served raw
and stays pending. What is finished survives whatever happens to the rest.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from prime_pipeline.llm.budget import Prices
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document, DocumentOutcome, OutcomeKind, SectionOutcome, Spending
from prime_pipeline.restructuring.diff_page import page_path, write_diff_page
from prime_pipeline.restructuring.estimate import Estimate
from prime_pipeline.restructuring.restructurer import Restructurer, restructure_all
from prime_pipeline.storage.documents import CatalogueEntry, DocumentStore
from prime_pipeline.storage.ledger import Ledger, LedgerLine, LedgerRun
from prime_pipeline.storage.restructured import RestructuredStore
from prime_pipeline.storage.seal import read_seal, seal_corpus

LARGEST_DEFERRED_SHARE = 0.05
"""A larger share of sections that are raw for the time being only, and the set is not published."""


@dataclass(frozen=True, slots=True)
class RestructuringReport:
    """What a run of restructuring did.

    Attributes:
        done: Documents restructured, with the versions they have now; those with deferred sections are not among them.
        deferred: First reason by document, for documents that the next run tries again.
        kinds: Sections of the run by outcome.
        codes: Reasons by how often they occurred.
        spending: In all.
        cost: In the currency of the prices; None without a price.
        seconds: Wall time.
    """

    done: Mapping[str, str]
    deferred: Mapping[str, str]
    kinds: Mapping[OutcomeKind, int]
    codes: Mapping[str, int]
    spending: Spending
    cost: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the restructured corpus stands.

    Attributes:
        kinds: Sections by outcome.
        codes: Reasons by how often they occur.
        n_words_raw: Words of all bodies before.
        n_words: Words of all bodies after.
    """

    kinds: Mapping[OutcomeKind, int]
    codes: Mapping[str, int]
    n_words_raw: int
    n_words: int

    @property
    def deferred_share(self) -> float:
        """Share of sections that are raw for the time being only, from 0 to 1."""
        total = sum(self.kinds.values())
        return self.kinds.get("deferred", 0) / total if total else 0.0

    @property
    def acceptance_share(self) -> float | None:
        """Share of the rewrites that were judged and stand, repaired and patched ones included; None without any.

        A section that stays raw because the endpoint refused it counts as one that does not stand.
        """
        stand = sum(self.kinds.get(kind, 0) for kind in ("accepted", "repaired", "patched"))
        judged = stand + self.kinds.get("raw", 0)
        return stand / judged if judged else None

    @property
    def words_saved(self) -> float:
        """Share of words that restructuring saved; below 0 where it added some."""
        return 1.0 - self.n_words / self.n_words_raw if self.n_words_raw else 0.0


@dataclass(frozen=True, slots=True)
class Sealing:
    """What sealing the restructured corpus came to.

    Attributes:
        version: Of the set that is sealed now; empty if none is.
        n_documents: In that set.
        changed: Whether it is another one than before.
        deferred_share: Share of sections that are raw for the time being only.
        withheld: Why the set as it stands was not sealed, if so.
    """

    version: str
    n_documents: int
    changed: bool
    deferred_share: float
    withheld: str | None = None


StoredListener = Callable[[CatalogueEntry, DocumentOutcome], None]
"""Told of every document that is completely restructured: its entry in the restructured store, and its outcome."""


@dataclass(frozen=True, slots=True)
class RestructuringSteps:
    """The steps for one strategy.

    Args:
        raw: Whence documents come.
        restructured: Where they go.
        restructurer: Rewrites sections.
        n_workers: Sections at once.
        ledger: Notes what was spent.
        prices: What tokens cost; None if unknown.
        pages: Folder for a page per document that shows both texts.
        progress: Told of every section.
    """

    raw: DocumentStore
    restructured: RestructuredStore
    restructurer: Restructurer
    n_workers: int
    ledger: Ledger
    prices: Prices | None
    pages: Path
    progress: Progress = silent

    def pending(self) -> list[CatalogueEntry]:
        """Raw documents that are new or changed, or had sections deferred, in order of id."""
        return self.restructured.pending(self.raw.catalogue().values())

    def restructure(
        self,
        entries: Sequence[CatalogueEntry],
        run_id: str,
        expected: Estimate | None = None,
        on_stored: StoredListener | None = None,
    ) -> RestructuringReport:
        """Restructure documents; each is stored when it is finished.

        Args:
            entries: Catalogue entries of the raw documents.
            run_id: For the ledger.
            expected: What was estimated before, for the ledger.
            on_stored: Told of every document without deferred sections.
        """
        started = time.monotonic()
        if entries:
            self.ledger.open_run(_ledger_run(run_id, self.restructurer, expected))
        by_id = {entry.doc_id: entry for entry in entries}
        done, deferred, outcomes = {}, {}, []
        for document, outcome in self._restructured(entries):
            stored = self._store(by_id[document.doc_id], document, outcome, run_id)
            if outcome.is_complete:
                done[document.doc_id] = stored.version or ""
                if on_stored:
                    on_stored(stored, outcome)
            else:
                deferred[document.doc_id] = _first_reason(outcome)
            outcomes.extend(_without_texts(outcome.sections))
        spending = sum((section.spending for section in outcomes), Spending())
        return RestructuringReport(
            done=done,
            deferred=deferred,
            kinds=_kinds(outcomes),
            codes=_codes(outcomes),
            spending=spending,
            cost=self._cost(spending),
            seconds=time.monotonic() - started,
        )

    def _restructured(self, entries: Sequence[CatalogueEntry]) -> Iterator[tuple[Document, DocumentOutcome]]:
        n_sections = sum(entry.n_sections for entry in entries)

        def of_all_sections(activity: str, done: int, total: int | None) -> None:
            del total  # unknown to who streams documents
            self.progress(activity, done, max(done, n_sections))

        documents = self.raw.load_entries(entries)
        return restructure_all(documents, self.restructurer, self.n_workers, of_all_sections)

    def _store(
        self, raw: CatalogueEntry, document: Document, outcome: DocumentOutcome, run_id: str
    ) -> CatalogueEntry:
        stored = self.restructured.put(raw, document, outcome)
        write_diff_page(self.pages, document, outcome)
        if outcome.spending.calls or outcome.spending.cache_hits:
            self.ledger.add(
                LedgerLine(run_id, document.doc_id, outcome.spending, self._cost(outcome.spending))
            )
        return stored

    def _cost(self, spending: Spending) -> float | None:
        return self.prices.cost(spending.prompt_tokens, spending.completion_tokens) if self.prices else None


def forget_removed(raw: DocumentStore, stores: Iterable[RestructuredStore], pages: Path) -> int:
    """Forget what was made of documents that are gone, in every strategy's store, and their pages; returns how many."""
    kept = [doc_id for doc_id, entry in raw.catalogue().items() if entry.version is not None]
    gone = {doc_id for store in stores for doc_id in store.keep_only(kept)}
    names = {page_path(pages, doc_id).name for doc_id in kept}
    for page in pages.glob("*.html"):
        if page.name not in names:
            page.unlink(missing_ok=True)
    return len(gone)


def current_standing(store: RestructuredStore) -> Standing:
    """Where a whole restructured corpus stands."""
    return standing_of(store.outcomes(), store.word_counts())


def standing_of(outcomes: Iterable[DocumentOutcome], word_counts: tuple[int, int]) -> Standing:
    """Where documents with these outcomes stand; their words before and after."""
    sections = [section for outcome in outcomes for section in _without_texts(outcome.sections)]
    return Standing(_kinds(sections), _codes(sections), *word_counts)


def seal_restructured(store: RestructuredStore, path: Path, location: str) -> Sealing:
    """Write down the set that can be indexed now, unless too much of it was put off.

    Raises:
        EmptyCorpus: There is no document.
    """
    before = read_seal(path) if path.is_file() else None
    share = current_standing(store).deferred_share
    if share > LARGEST_DEFERRED_SHARE:
        withheld = (
            f"{share:.0%} of the sections are raw only because they were put off, more than "
            f"{LARGEST_DEFERRED_SHARE:.0%}: what was published before is served on; refresh again to go on"
        )
        version, n_documents = (before.version, len(before.documents)) if before else ("", 0)
        return Sealing(version, n_documents, changed=False, deferred_share=share, withheld=withheld)
    sealed = seal_corpus(store.documents, path, location)
    changed = before is None or before.version != sealed.version
    return Sealing(sealed.version, len(sealed.documents), changed, share)


def _ledger_run(run_id: str, restructurer: Restructurer, expected: Estimate | None) -> LedgerRun:
    return LedgerRun(
        run_id=run_id,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        strategy=restructurer.strategy.fingerprint,
        label=restructurer.strategy.label,
        expected_calls=expected.n_calls if expected else None,
        expected_prompt_tokens=expected.prompt_tokens if expected else None,
        expected_completion_tokens=expected.completion_tokens if expected else None,
    )


def _without_texts(sections: Iterable[SectionOutcome]) -> list[SectionOutcome]:
    """Outcomes as the report needs them, so that memory does not grow with the texts."""
    return [SectionOutcome(s.ordinal, s.kind, findings=s.findings, spending=s.spending) for s in sections]


def _kinds(outcomes: Iterable[SectionOutcome]) -> dict[OutcomeKind, int]:
    return dict(sorted(Counter(outcome.kind for outcome in outcomes).items()))


def _codes(outcomes: Iterable[SectionOutcome]) -> dict[str, int]:
    counts = Counter(code for outcome in outcomes for code in {f.code for f in outcome.findings})
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _first_reason(outcome: DocumentOutcome) -> str:
    finding = next(f for s in outcome.sections if s.kind == "deferred" for f in s.findings)
    return f"{finding.code}: {finding.detail}"
