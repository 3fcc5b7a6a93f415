"""Assets of restructuring: the documents, the step that brings all of them up to date, and the sealed set of them."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import dagster as dg

from prime_pipeline.defs.corpus_assets import documents_failed, raw_corpus, reasons_table, tag_single_document
from prime_pipeline.defs.describing import spending_metadata, tags
from prime_pipeline.defs.documents import (
    RAW_DOCUMENTS,
    RESTRUCTURED_DOCUMENTS,
    RestructuredEvents,
    in_partitions,
)
from prime_pipeline.defs.partitions import Partition, partition_of_document, partitions_definition
from prime_pipeline.defs.table_columns import RESTRUCTURED_COLUMNS, SEAL_COLUMNS
from prime_pipeline.errors import DocumentChanged, SchemaMismatch, StoreCorrupt
from prime_pipeline.llm.budget import Prices
from prime_pipeline.records import DocumentOutcome, OutcomeKind, Section, Spending, section_id
from prime_pipeline.refresh.restructuring import (
    RestructuringReport,
    RestructuringSteps,
    Standing,
    current_standing,
    seal_restructured,
)
from prime_pipeline.restructuring.diff_page import page_path
from prime_pipeline.settings import Partitioning
from prime_pipeline.storage.documents import CatalogueEntry
from prime_pipeline.workspace import Workspace

RESTRUCTURING_CODE = "1"
"""Code version of the partitions. What decides about a rewrite (prompt, model, gate) is in the strategy, not here."""

POOL = "llm"

_GROUP = "restructuring"
_OWNERS = ["team:search"]
_SECTIONS_SHOWN = 100
_LINEAGE_SCHEMA = dg.TableSchema(
    [dg.TableColumn(name) for name in ("section", "heading", "verdict", "codes", "lines")]
)
_OFF = 'the mode is {mode}: set `mode = "full"` to have sections restructured'


def restructured_documents(partitioning: Partitioning) -> dg.AssetsDefinition:
    """The asset of restructured documents, in partitions of either kind."""

    @dg.asset(
        key=RESTRUCTURED_DOCUMENTS,
        group_name=_GROUP,
        kinds={"python", "json"},
        owners=_OWNERS,
        tags=tags("restructuring", "full"),
        metadata=RESTRUCTURED_COLUMNS,
        deps=[RAW_DOCUMENTS],
        partitions_def=partitions_definition(partitioning),
        backfill_policy=dg.BackfillPolicy.single_run(),
        output_required=False,
        code_version=RESTRUCTURING_CODE,
        pool=POOL,
    )
    def rewritten(
        context: dg.AssetExecutionContext, workspace: dg.ResourceParam[Workspace]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Restructured documents, every section rewritten, or raw with the reason; one per partition, or a bucket of them.

        The asset `restructuring` keeps these up to date by itself; a backfill restructures chosen documents again, and pays
        only for sections that were not answered before. A document with a section that could not be asked for fails alone:
        all others of the run keep their result. `prime diff DOCUMENT` shows raw beside rewritten text; the same page lies
        at the path that each event names.

        If red: the run's failure lists documents and reasons, such as an endpoint that is down or a budget that is spent;
        `prime doctor` asks the endpoint. Mend that and backfill again: answers that were paid are kept.
        """
        if workspace.mode == "offline":
            raise dg.Failure(_off(workspace), allow_retries=False)
        catalogue = workspace.store.catalogue()
        chosen = in_partitions(catalogue.values(), context.partition_keys, partitioning)
        entries = [entry for entry in chosen if entry.version]
        tag_single_document(context, entries, partitioning)
        with workspace.restructuring() as steps:
            log = _Log(context, steps, catalogue, partitioning)
            report = steps.restructure(entries, context.run_id, on_stored=log.finished)
            if partitioning == "bucket":
                log.missing(context.partition_keys)
        failed = dict(report.deferred)
        if partitioning == "document":
            unknown = set(context.partition_keys) - {entry.partition_key for entry in entries}
            failed |= dict.fromkeys(sorted(unknown), "not in the catalogue, or never read: run a refresh")
        if failed:
            n_chosen = len(chosen) if partitioning == "bucket" else len(context.partition_keys)
            raise documents_failed(failed, n_chosen, **_run_metadata(report, workspace.settings.llm.price))
        yield from ()  # no output: each partition has had its own event, and Dagster must not add a second one

    return rewritten


@dg.asset(
    group_name=_GROUP,
    kinds={"python", "openai"},
    owners=_OWNERS,
    tags=tags("restructuring", "full"),
    deps=[raw_corpus],
    code_version=RESTRUCTURING_CODE,
    pool=POOL,
)
def restructuring(
    context: dg.AssetExecutionContext, workspace: dg.ResourceParam[Workspace]
) -> dg.MaterializeResult[None]:
    """Restructures every document that is new or changed, or that was put off before.

    Each gets one event on **restructured_documents**. Sections are rewritten one by one, and every answer is kept: an
    edited section is one call, an unchanged one none. When the endpoint fails or the budget is spent, what is left is
    put off to the next refresh, and its raw text stands in.

    If red: key, model or prompt of the endpoint is wrong, see the message and `prime doctor`. Sections that are merely put
    off do not make this red, but its check.
    """
    removed = workspace.forget_removed()
    if workspace.mode == "offline":
        return dg.MaterializeResult(
            data_version=dg.DataVersion("offline"), metadata=_nothing(_off(workspace))
        )
    catalogue = workspace.store.catalogue()
    with workspace.restructuring() as steps:
        pending = steps.pending()
        expected = workspace.estimate(pending)
        log = _Log(context, steps, catalogue, workspace.settings.partitioning)
        report = steps.restructure(pending, context.run_id, expected, on_stored=log.finished)
        log.missing()
        standing = current_standing(steps.restructured)
    metadata: dict[str, Any] = {
        "changed": int(bool(pending or removed)),
        "strategy": steps.restructurer.strategy.label,
        **_run_metadata(report, workspace.settings.llm.price),
        "removed": removed,
        "events": log.n_logged,
        **_put_off(report.deferred),
        **_standing_metadata(standing),
    }
    if expected is not None:
        metadata["expected calls"] = expected.n_calls
        metadata["expected tokens"] = expected.prompt_tokens + expected.completion_tokens
    return dg.MaterializeResult(
        data_version=dg.DataVersion(workspace.restructured_version()), metadata=metadata
    )


@dg.asset(
    group_name=_GROUP,
    kinds={"python", "json"},
    owners=_OWNERS,
    tags=tags("restructuring", "full"),
    metadata=SEAL_COLUMNS,
    deps=[restructuring, RESTRUCTURED_DOCUMENTS],
    code_version="1",
)
def restructured_corpus(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """The sealed set of restructured documents that the full track is built of.

    It is not sealed anew while more than 5 % of the sections are raw only because they were put off: the set before
    is served on.

    If red: no document is restructured yet, see `restructuring`. The offline index answers meanwhile.
    """
    if workspace.mode == "offline":
        return dg.MaterializeResult(
            data_version=dg.DataVersion("offline"), metadata=_nothing(_off(workspace))
        )
    started = time.monotonic()
    sealing = seal_restructured(
        workspace.restructured, workspace.restructured_seal, workspace.settings.corpus_location
    )
    metadata: dict[str, Any] = {
        "changed": int(sealing.changed),
        "documents": sealing.n_documents,
        **({} if sealing.withheld else {"sections": _n_sections(workspace)}),
        "seconds": round(time.monotonic() - started, 3),
        "version": sealing.version[:16] or "none",
        "deferred share": round(sealing.deferred_share, 4),
    }
    if sealing.withheld:
        metadata["note"] = sealing.withheld
    return dg.MaterializeResult(data_version=dg.DataVersion(sealing.version or "none"), metadata=metadata)


def _put_off(deferred: Mapping[str, str]) -> dict[str, Any]:
    if not deferred:
        return {}
    return {"put off": reasons_table(deferred), "put off because": next(iter(deferred.values()))}


def _n_sections(workspace: Workspace) -> int:
    return sum(e.n_sections for e in workspace.restructured.documents.catalogue().values() if e.version)


class _Log:
    """Logs what is restructured: a document as soon as it is stored, a bucket when all its documents are.

    Attributes:
        n_logged: Events so far.
    """

    def __init__(
        self,
        context: dg.AssetExecutionContext,
        steps: RestructuringSteps,
        raw: Mapping[str, CatalogueEntry],
        partitioning: Partitioning,
    ) -> None:
        self._events = RestructuredEvents(
            context.instance, context.log_event, raw, RESTRUCTURING_CODE, partitioning
        )
        self._steps = steps
        self._is_by_document = partitioning == "document"
        self.n_logged = 0

    def finished(self, entry: CatalogueEntry, outcome: DocumentOutcome) -> None:
        """A document was stored."""
        if self._is_by_document:
            self._log(partition_of_document(entry), _document_metadata(self._steps, entry, outcome))

    def missing(self, keys: Iterable[str] | None = None) -> None:
        """Log what is complete and has no event yet, of all partitions or of some."""
        wanted = None if keys is None else set(keys)
        for partition in self._events.missing(self._steps.restructured.documents.catalogue().values()):
            if wanted is None or partition.key in wanted:
                outcomes = [self._steps.restructured.outcome(entry.doc_id) for entry in partition.entries]
                known = [outcome for outcome in outcomes if outcome]
                if partition.is_bucket:
                    self._log(partition, _bucket_metadata(self._steps, known))
                else:
                    self._log(partition, _single_metadata(self._steps, partition.entries[0], known))

    def _log(self, partition: Partition, metadata: Mapping[str, Any]) -> None:
        self._events.log(partition, metadata)
        self.n_logged += 1


def _single_metadata(
    steps: RestructuringSteps, entry: CatalogueEntry, outcomes: Sequence[DocumentOutcome]
) -> dict[str, Any]:
    return _document_metadata(steps, entry, outcomes[0]) if outcomes else {}


def _bucket_metadata(steps: RestructuringSteps, outcomes: Sequence[DocumentOutcome]) -> dict[str, Any]:
    total = sum((outcome.spending for outcome in outcomes), Spending())
    return {
        "strategy": steps.restructurer.strategy.label,
        **_sections_metadata(outcomes),
        **spending_metadata(total, steps.prices),
        "diff pages": dg.MetadataValue.path(str(steps.pages)),
    }


def _sections_metadata(outcomes: Sequence[DocumentOutcome]) -> dict[str, Any]:
    sections = [section for outcome in outcomes for section in outcome.sections]
    kinds = Counter(section.kind for section in sections)
    codes = sorted({finding.code for section in sections for finding in section.findings})
    return {**{f"{kind} sections": n for kind, n in sorted(kinds.items())}, "reasons": ", ".join(codes)}


def _document_metadata(
    steps: RestructuringSteps, entry: CatalogueEntry, outcome: DocumentOutcome
) -> dict[str, Any]:
    return {
        "strategy": steps.restructurer.strategy.label,
        **_sections_metadata([outcome]),
        **spending_metadata(outcome.spending, steps.prices),
        # No link: browsers do not follow one from a server to a file. The UI offers to copy a path.
        "diff page": dg.MetadataValue.path(str(page_path(steps.pages, outcome.doc_id))),
        **_section_lineage(steps, entry),
    }


def _section_lineage(steps: RestructuringSteps, entry: CatalogueEntry) -> dict[str, Any]:
    """The first sections as a table: what became of each, why, and where it stands in the file."""
    try:
        loaded = steps.restructured.load(entry)
    except (DocumentChanged, StoreCorrupt, SchemaMismatch):  # the next run makes it anew
        loaded = None
    if loaded is None:
        return {}
    document, outcome = loaded
    sections = {section.ordinal: section for section in document.sections}
    rows = [
        dg.TableRecord(
            {
                "section": section_id(document.doc_id, what.ordinal),
                "heading": " › ".join(sections[what.ordinal].heading_path),
                "verdict": what.kind,
                "codes": ", ".join(dict.fromkeys(finding.code for finding in what.findings)),
                "lines": _lines(sections[what.ordinal]),
            }
        )
        for what in outcome.sections[:_SECTIONS_SHOWN]
    ]
    left = len(outcome.sections) - len(rows)
    return {
        "section lineage": dg.MetadataValue.table(rows, _LINEAGE_SCHEMA),
        **({"sections not listed": left} if left else {}),
    }


def _lines(section: Section) -> str:
    return "" if section.start_line is None else f"{section.start_line}-{section.end_line}"


def _run_metadata(report: RestructuringReport, price: Prices | None) -> dict[str, Any]:
    return {
        "restructured": len(report.done),
        "put off documents": len(report.deferred),
        "seconds": round(report.seconds, 3),
        **spending_metadata(report.spending, price),
        "reasons of this run": dg.MetadataValue.json(dict(report.codes)),
    }


def _standing_metadata(standing: Standing) -> dict[str, Any]:
    total = sum(standing.kinds.values())
    shares = {kind: standing.kinds.get(kind, 0) / max(1, total) for kind in get_args(OutcomeKind)}
    accepted = standing.acceptance_share
    return {
        "sections": total,
        **{
            f"{kind} share": round(share, 4) for kind, share in shares.items()
        },  # all of them, so that plots have no gaps
        **({} if accepted is None else {"acceptance share": round(accepted, 4)}),
        "words saved": round(standing.words_saved, 4),
        "reasons": dg.MetadataValue.json(dict(standing.codes)),
    }


def _off(workspace: Workspace) -> str:
    return _OFF.format(mode=workspace.mode_label)


def _nothing(note: str) -> dict[str, Any]:
    return {"changed": 0, "note": note}
