"""The studies of a workspace: what each is made from, and what it depends on.

Each finds nothing where there is nothing to look at: no queries, no gold evidence, no restructured text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.datasets.sections import section_judgements
from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.corpus_profile import profile_corpus
from prime_pipeline.evaluation.corpus_properties import full_text
from prime_pipeline.evaluation.gold_evidence import GoldEvidence, evidence_text, section_qrels
from prime_pipeline.indexes.builds import LEXICAL_FILE, METADATA_FILE
from prime_pipeline.indexes.embedding import embed_texts
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.synthesis import synthesise
from prime_pipeline.records import Document, Qrels, Spending, document_of, section_id
from prime_pipeline.refresh.evaluation import EvaluationReport, SystemRuns, read_runs
from prime_pipeline.refresh.warehouse import StudyRows
from prime_pipeline.reports import wording
from prime_pipeline.restructuring.router import route
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.documents import DocumentStore
from prime_pipeline.storage.metadata_file import MetadataFile
from prime_pipeline.storage.seal import SealedCorpus, read_seal
from prime_pipeline.studies.audits import cached_audit
from prime_pipeline.studies.corpus import profile_findings
from prime_pipeline.studies.costs import N_RERANKED, BuildCost, cost_findings
from prime_pipeline.studies.findings import Findings, Study, drawn, made, part, read_study, sampling_note
from prime_pipeline.studies.localisation import Track, localisation_findings, named_section_findings
from prime_pipeline.studies.retrieval import restructurer_of, retrieval_findings
from prime_pipeline.studies.texts import audit_findings, density_findings
from prime_pipeline.text.entities import entity_finder
from prime_pipeline.text.protected import protect
from prime_pipeline.workspace import Workspace

STUDIES_VERSION: Final = 2
"""Raise it when the same inputs would make other findings; the answers' own cache is not touched by it."""
_N_READ: Final = 5
_REPLACED: Final = (
    "Evidence localisation: some documents that were ranked have been replaced since, and what was made of them is not "
    "published yet: a refresh tells."
)

MakeStudy = Callable[[Workspace], Study]


def corpus_profile(workspace: Workspace) -> Study:
    """What the corpus is like, and the regime that this predicts."""
    sample = _sample(workspace, "offline")
    queries = workspace.query_set

    def make() -> Findings:
        documents = list(loaded(workspace, "offline", sample.versions))
        embedder, cache = workspace.embedder, workspace.embeddings
        metadata = synthesise(documents, workspace.settings.metadata.options(), embedder.tokenizer).metadata
        # The regimes are the paper's claim about metadata as the paper has it, without the lead.
        literal = synthesise(documents, MetadataOptions(reading="paper_literal"), embedder.tokenizer).metadata
        tokenizer = workspace.caching_tokenizer
        texts = tokenizer.fit([full_text(document) for document in documents])
        (literal_vectors, n_literal), (text_vectors, n_texts) = (
            embed_texts(row, embedder, cache, workspace.progress)
            for row in ([item.text for item in literal], texts)
        )
        profile = profile_corpus(
            documents,
            metadata,
            tokenizer,
            queries=queries.queries if queries else (),
            qrels=queries.qrels if queries else None,
            vectors=(literal_vectors, text_vectors),
        )
        findings = with_notes(profile_findings(profile), sample.note("Corpus profile"))
        return replace(findings, counts={"encoded": n_literal + n_texts})

    determinants = {
        **sample.determinants,
        "metadata": asdict(workspace.settings.metadata.options()),
        "embedder": workspace.embedder.fingerprint,
        "queries": queries.fingerprint if queries else None,
    }
    return kept(workspace, "corpus_profile", determinants, make)


def retrieval_quality(workspace: Workspace) -> Study:
    """What the systems are worth that the evaluation ranked."""
    reports, queries = workspace.evaluations(), workspace.query_set
    determinants = {
        "evaluations": [report.fingerprint for report in reports],
        "types": dict(queries.types) if queries else None,
        "scorer": workspace.scorer_name,
    }

    def make() -> Findings:
        if queries is None or not reports:
            return Findings()
        return retrieval_findings(reports, queries, workspace.scorer_name)

    return kept(workspace, "retrieval_quality", determinants, make)


def evidence_localisation(workspace: Workspace) -> Study:
    """How well sections are found that hold gold evidence, or that the queries name as relevant."""
    evidence, found, queries = gold_evidence(workspace), evaluated(workspace), workspace.query_set
    named = queries.section_references if queries and not evidence else {}
    determinants = {
        "evaluations": [report.fingerprint for report, _ in found],
        "evidence": {q: [gold.doc_id, *gold.spans] for q, gold in evidence.items()},
        "named": {q: [list(place) for place in places] for q, places in named.items()},
        "scorer": workspace.scorer_name,
    }

    def make() -> Findings:
        if not (evidence or named) or not found or queries is None:
            return Findings()
        if named:
            return _named_sections(workspace, queries, found)
        tracks = [_track(workspace, report, runs, evidence) for report, runs in found]
        raw, restructured = tracks[0], tracks[1] if len(tracks) > 1 else None
        if raw is None or (restructured is None and len(tracks) > 1):
            return Findings(part(notes=(_REPLACED,)))
        return localisation_findings(evidence, raw, restructured, queries.clusters, workspace.scorer_name)

    return kept(workspace, "evidence_localisation", determinants, make)


def unknown_documents(workspace: Workspace) -> list[str]:
    """Ids that the queries call relevant and the corpus does not have, in order."""
    queries = workspace.query_set
    known = {doc_id for doc_id, _ in sealed(workspace, "offline").documents} if queries else set()
    return sorted(queries.relevant_documents - known) if queries else []


def query_faults(workspace: Workspace) -> list[str]:
    """What is relevant and not there, in sentences: it counts as not found, or keeps sections from being measured."""
    faults = []
    if unknown := unknown_documents(workspace):
        is_one = len(unknown) == 1
        faults.append(
            f"{wording.plural(len(unknown), 'document')} that the queries call relevant {'is' if is_one else 'are'} not in the "
            f"index, the first is {unknown[0]!r}: what asks for {'it' if is_one else 'them'} counts as not found."
        )
    queries = workspace.query_set
    if queries and queries.section_references:  # gold evidence names no section that could be missing
        try:
            relevant_sections(workspace)
        except EvaluationError as error:
            faults.append(f"Relevant sections are not measured: {error}.")
    return faults


def relevant_sections(workspace: Workspace) -> Qrels:
    """Section ids with their grades by query id: those that the queries name, or that hold gold evidence; else nothing.

    Raises:
        EvaluationError: A section is named that the corpus does not have.
    """
    queries = workspace.query_set
    if queries is None:
        return {}
    evidence = gold_evidence(workspace)
    wanted = {gold.doc_id for gold in evidence.values()} | {
        name
        for places in queries.section_references.values()
        for doc_id, section in places
        for name in (doc_id, f"{doc_id}#{section}")
    }
    if not wanted:
        return {}
    known = loaded(workspace, "offline", versions(workspace, "offline", filter(None, wanted)))
    if evidence:
        documents = {document.doc_id: document for document in known}
        about = {q: gold for q, gold in evidence.items() if gold.doc_id in documents}
        return section_qrels(about, documents).qrels
    return section_judgements(queries, known)


def _named_sections(
    workspace: Workspace, queries: QuerySet, found: Sequence[tuple[EvaluationReport, SystemRuns]]
) -> Findings:
    try:
        qrels = relevant_sections(workspace)
    except EvaluationError:
        return Findings()  # the report names the fault
    if not qrels:
        return Findings()
    tracks = [Track({}, runs.sections, restructurer_of(report.restructuring)) for report, runs in found]
    return named_section_findings(qrels, tracks, queries.clusters, workspace.scorer_name)


def text_density(workspace: Workspace) -> Study:
    """How dense the raw and the restructured text are."""
    sample = _sample(workspace, "offline")
    restructured = _sample(workspace, "full")

    def make() -> Findings:
        raw = list(loaded(workspace, "offline", sample.versions))
        rewritten = list(loaded(workspace, "full", restructured.versions))
        return with_notes(density_findings(raw, rewritten), sample.note("Text density"))

    determinants = {"raw": sample.determinants, "restructured": restructured.determinants}
    return kept(workspace, "text_density", determinants, make)


def fidelity_audit(workspace: Workspace) -> Study:
    """What restructuring kept, added and contradicted."""
    sample = _sample(workspace, "full")
    if not sample.versions:  # before anything is loaded that only an audit needs
        return kept(workspace, "fidelity_audit", {"documents": None}, Findings)
    settings, nli = workspace.settings, workspace.nli
    finder = entity_finder(settings.restructuring.entities)
    evidence: dict[str, list[str]] = {}
    for gold in gold_evidence(workspace).values():
        if gold.doc_id in sample.ids:
            evidence.setdefault(gold.doc_id or "", []).extend(map(evidence_text, gold.spans))

    def make() -> Findings:
        documents = list(loaded(workspace, "full", sample.versions))
        hashes = (version for _, version in sample.versions)
        with closing(BlobCache(workspace.home.audits)) as cache:
            found = cached_audit(
                zip(hashes, documents, strict=True),
                len(documents),
                finder,
                evidence,
                nli,
                cache,
                workspace.progress,
            )
        flags = {
            section_id(document.doc_id, section.ordinal): frozenset({reason.code})
            for document in documents
            for section in document.content_sections
            if (reason := route(section, protect(section.body), settings.restructuring.router_options))
        }
        findings = audit_findings(
            found, flags, restructurer(workspace), obeys_router=settings.method == "llm", evidence=evidence
        )
        return with_notes(findings, sample.note("Fidelity audit"))

    determinants = {
        **sample.determinants,
        "finder": finder.name,
        "nli": nli and nli.fingerprint,
        "evidence": evidence,
        "router": asdict(settings.restructuring.router_options),
        "strategy": workspace.strategy.fingerprint,
    }
    return kept(workspace, "fidelity_audit", determinants, make)


def index_costs(workspace: Workspace) -> Study:
    """What the published indexes cost."""
    variants = studied_variants(workspace)
    sample = _sample(workspace, "offline")
    spent = _restructuring_spending(workspace) if "full" in variants else None
    found = evaluated(workspace)
    builds = [_build_cost(workspace, variant, sample, found, spent) for variant in variants]

    def make() -> Findings:
        if not variants:
            return Findings()
        documents = list(loaded(workspace, "offline", sample.versions))
        tokenizer = workspace.caching_tokenizer
        paper_literal = MetadataOptions(reading="paper_literal")
        literal = synthesise(documents, paper_literal, workspace.embedder.tokenizer).metadata
        findings = cost_findings(
            documents,
            [item.text for item in literal],
            [_with_sections_read(workspace, variant, b) for variant, b in zip(variants, builds, strict=True)],
            tokenizer,
            workspace.embedder.dimensions,
            is_whole=sample.is_whole,
        )
        return with_notes(findings, sample.note("Costs"))

    determinants = {
        **sample.determinants,
        "builds": [[build.restructurer, build.lexical_bytes, *build.texts] for build in builds],
        "evaluations": [report.fingerprint for report, _ in found],
        "embedder": workspace.embedder.fingerprint,
        "spent": None if spent is None else [asdict(spent[0]), spent[1]],
    }
    return kept(workspace, "index_costs", determinants, make)


STUDIES: Final[Mapping[str, MakeStudy]] = {
    "corpus_profile": corpus_profile,
    "retrieval_quality": retrieval_quality,
    "evidence_localisation": evidence_localisation,
    "text_density": text_density,
    "fidelity_audit": fidelity_audit,
    "index_costs": index_costs,
}
"""The studies that a refresh brings up to date, in their order; none of them asks a language model."""


def study_rows(workspace: Workspace) -> StudyRows:
    """What the kept studies found, for the warehouse."""
    studies = [study for name in STUDIES if (study := read_study(workspace.home.study(name))) is not None]
    with_rows = [study for study in studies if study.findings.rows]
    return StudyRows(
        [study.fingerprint for study in with_rows],
        {table: rows for study in with_rows for table, rows in study.findings.rows.items()},
    )


def kept(
    workspace: Workspace, name: str, determinants: Mapping[str, Any], make: Callable[[], Findings]
) -> Study:
    """The study of that name: as it is kept in the home, or made now."""
    with workspace.home.lock(f"study-{name}"):
        return made(workspace.home.study(name), {"version": STUDIES_VERSION, **determinants}, make)


def evaluated(workspace: Workspace) -> list[tuple[EvaluationReport, SystemRuns]]:
    """The evaluations of what is served with what was ranked in them; those without rankings are left out."""
    known = set(studied_variants(workspace))
    reports = [report for report in workspace.evaluations() if report.variant in known]
    pairs = [(r, read_runs(workspace.home.rankings(r.variant), r.fingerprint)) for r in reports]
    return [(report, runs) for report, runs in pairs if runs is not None]


def studied_variants(workspace: Workspace) -> list[str]:
    """The variants that are published and whose text is at hand: not the full one where the strategy is another now."""
    return [variant for variant in workspace.published_variants() if workspace.has_corpus(variant)]


def restructurer(workspace: Workspace) -> str:
    """Who restructured what is served, as a report names it; empty where nothing is."""
    return restructurer_of(workspace.strategy.label) if workspace.has_corpus("full") else ""


def versions(workspace: Workspace, variant: str, doc_ids: Iterable[str]) -> list[tuple[str, str]]:
    """(id, version) of those of the documents that are sealed and at hand, in order of id."""
    wanted = set(doc_ids)
    return [pair for pair in at_hand(workspace, variant) if pair[0] in wanted]


def at_hand(workspace: Workspace, variant: str) -> list[tuple[str, str]]:
    """(id, version) of the sealed documents that the store still holds in that version, in order of id.

    It holds others while a refresh withholds what it made, and after a backfill that no refresh has followed yet.
    """
    pairs = sealed(workspace, variant).documents  # raises before a store is made
    catalogue = _store(workspace, variant).catalogue()
    return [(d, v) for d, v in pairs if (entry := catalogue.get(d)) is not None and entry.version == v]


def loaded(workspace: Workspace, variant: str, of_versions: Iterable[tuple[str, str]]) -> Iterator[Document]:
    """Documents of a variant; in ``full`` with the rewritten bodies beside the raw ones."""
    wanted = list(of_versions)
    return (
        _store(workspace, variant).load_all(wanted) if wanted else iter(())
    )  # a store that is opened is made


@dataclass(frozen=True, slots=True)
class _Sample:
    """The documents of a variant that a study reads: (id, version) in order of id."""

    versions: tuple[tuple[str, str], ...]
    n_documents: int

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(doc_id for doc_id, _ in self.versions)

    @property
    def is_whole(self) -> bool:
        return len(self.versions) == self.n_documents

    @property
    def determinants(self) -> dict[str, Any]:
        # Not how many documents there are: of a large corpus, one more or less changes nothing that is looked at.
        return {"documents": [list(pair) for pair in self.versions], "is_whole": self.is_whole}

    def note(self, what: str) -> tuple[str, ...]:
        return () if self.is_whole else sampling_note(what, len(self.versions))


def _sample(workspace: Workspace, variant: str) -> _Sample:
    """Nothing where nothing of the variant is sealed."""
    if not workspace.has_corpus(variant):
        return _Sample((), 0)
    documents = at_hand(workspace, variant)
    chosen = drawn(doc_id for doc_id, _ in documents)
    n_documents = len(sealed(workspace, variant).documents)
    return _Sample(tuple(pair for pair in documents if pair[0] in chosen), n_documents)


def sealed(workspace: Workspace, variant: str) -> SealedCorpus:
    """The sealed documents of a variant.

    Raises:
        EmptyCorpus: Nothing of it is sealed.
    """
    return read_seal(workspace.restructured_seal if variant == "full" else workspace.home.seal("raw"))


def _store(workspace: Workspace, variant: str) -> DocumentStore:
    return workspace.restructured.documents if variant == "full" else workspace.store


def with_notes(findings: Findings, notes: tuple[str, ...]) -> Findings:
    """The findings with notes behind their own."""
    content = replace(findings.content, notes=findings.content.notes + notes)
    return replace(findings, content=content)


def gold_evidence(workspace: Workspace) -> dict[str, GoldEvidence]:
    """Gold evidence by query id, with the document that it is from where that is known."""
    queries = workspace.query_set
    if queries is None:
        return {}
    homes = queries.clusters or {}
    return {
        query_id: GoldEvidence(spans, homes.get(query_id))
        for query_id, spans in queries.gold_evidence.items()
    }


def _track(
    workspace: Workspace, report: EvaluationReport, runs: SystemRuns, evidence: Mapping[str, GoldEvidence]
) -> Track | None:
    """What was ranked over a variant, with the documents that hold evidence or stand among the best sections.

    None where one of these is not at hand in the version that was ranked.
    """
    everything = {doc_id for doc_id, _ in sealed(workspace, report.variant).documents}
    anywhere = any(gold.doc_id is None for gold in evidence.values())
    needed = {gold.doc_id for gold in evidence.values() if gold.doc_id} | _documents_read(runs)
    wanted = versions(workspace, report.variant, everything if anywhere else needed & everything)
    if len(wanted) < len(everything if anywhere else needed & everything):
        return None
    documents = {document.doc_id: document for document in loaded(workspace, report.variant, wanted)}
    return Track(documents, runs.sections, restructurer_of(report.restructuring))


def _documents_read(runs: SystemRuns) -> set[str]:
    ranked = (ids for by_query in runs.sections.values() for ids in by_query.values())
    return {document_of(found) for ids in ranked for found in ids[:_N_READ]}


def _build_cost(
    workspace: Workspace,
    variant: str,
    sample: _Sample,
    of_evaluations: Sequence[tuple[EvaluationReport, SystemRuns]],
    spent: tuple[Spending, float | None] | None,
) -> BuildCost:
    """What a build costs, without the texts of the sections that were read."""
    builds = workspace.builds(variant)
    folder = builds.path(builds.served_id)
    doc_ids = sample.ids
    with closing(MetadataFile(folder / METADATA_FILE)) as metadata:
        texts = [text for doc_id, text in metadata.texts().items() if doc_id in doc_ids]
    runs = next((found for report, found in of_evaluations if report.variant == variant), None)
    is_full = variant == "full" and spent is not None
    return BuildCost(
        texts=texts,
        lexical_bytes=(folder / LEXICAL_FILE).stat().st_size if sample.is_whole else 0,
        section_runs=runs.sections.get("default", {}) if runs else {},
        section_texts={},
        llm_tokens=spent[0].prompt_tokens + spent[0].completion_tokens if is_full and spent else None,
        money=spent[1] if is_full and spent else None,
        restructurer=restructurer(workspace) if is_full else "",
    )


def _with_sections_read(workspace: Workspace, variant: str, build: BuildCost) -> BuildCost:
    read = {document_of(found) for ids in build.section_runs.values() for found in ids[:N_RERANKED]}
    section_texts = {
        section_id(document.doc_id, section.ordinal): section.restructured_text
        for document in loaded(workspace, variant, versions(workspace, variant, read))
        for section in document.content_sections
    }
    return replace(build, section_texts=section_texts)


def _restructuring_spending(workspace: Workspace) -> tuple[Spending, float | None]:
    """All that restructuring by the strategy in force has taken so far, samples included; money is None if unknown."""
    if workspace.settings.method == "extractive":
        return Spending(), 0.0
    return spent_on(workspace, workspace.strategy.fingerprint)


def spent_on(workspace: Workspace, strategy: str) -> tuple[Spending, float | None]:
    """All that the runs of a strategy have taken so far; money is None if that of some is not known."""
    runs = {run.run_id for run in workspace.ledger.runs() if run.strategy == strategy}
    lines = [line for line in workspace.ledger.lines() if line.run_id in runs]
    costs = [line.cost for line in lines]
    known = [cost for cost in costs if cost is not None]
    spending = sum((line.spending for line in lines), Spending())
    return spending, sum(known) if len(known) == len(costs) else None
