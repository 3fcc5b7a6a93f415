"""Assets of the corpus: the scan, the documents, and the sealed set of them."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import ScanReport, parse_documents, scan
from prime_pipeline.corpus.source import PARSER_VERSION
from prime_pipeline.defs.describing import tag_run, tags
from prime_pipeline.defs.documents import RAW_DOCUMENTS, in_partitions, raw_event, sync_documents
from prime_pipeline.defs.partitions import (
    Partition,
    partition_of_document,
    partitions,
    partitions_definition,
)
from prime_pipeline.defs.table_columns import DOCUMENT_COLUMNS, SEAL_COLUMNS
from prime_pipeline.reporting.mode import decide_mode
from prime_pipeline.settings import Partitioning
from prime_pipeline.storage.documents import CatalogueEntry
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline.workspace import Workspace

_GROUP = "corpus"
_OWNERS = ["team:search"]
_SHOWN = 50


class ScanConfig(dg.Config):
    """What a scan may do."""

    allow_removals: bool = Field(
        default=False, description="Remove documents even if more than a fifth of the corpus would go."
    )


@dg.asset(
    group_name=_GROUP,
    kinds={"python", "file"},
    owners=_OWNERS,
    tags=tags("corpus"),
    code_version=PARSER_VERSION,
)
def corpus_scan(
    context: dg.AssetExecutionContext, config: ScanConfig, workspace: dg.ResourceParam[Workspace]
) -> dg.MaterializeResult[None]:
    """Compares the corpus with the stored documents and brings these up to date.

    New and changed files are parsed, files that failed before are tried again, documents whose file is gone are
    removed. Each new or changed document gets one event on **raw_documents**, so its partition shows when and from
    which file it was read. A file that cannot be read fails alone: it is listed here, and the last good text of its
    document is served on.

    If red: the corpus as a whole cannot be read, or more than a fifth of it is gone. Mount it again, or allow the removals
    in the run's configuration (`prime refresh --allow-removals`).
    """
    location = workspace.settings.corpus_location
    with workspace.home.lock("documents"):
        report = workspace.last_scan = scan(
            open_corpus(location),
            workspace.store,
            allow_removals=config.allow_removals,
            forgotten=workspace.forgotten.ids(),
            progress=workspace.progress,
        )
        synced = sync_documents(
            context.instance,
            workspace.store.catalogue(),
            context.log_event,
            workspace.progress,
            workspace.settings.partitioning,
        )
    return dg.MaterializeResult(metadata={"corpus": location, **_scan_metadata(report), **synced})


def raw_documents(partitioning: Partitioning) -> dg.AssetsDefinition:
    """The asset of parsed documents, in partitions of either kind."""

    @dg.asset(
        key=RAW_DOCUMENTS,
        group_name=_GROUP,
        kinds={"python", "json"},
        owners=_OWNERS,
        tags=tags("corpus"),
        metadata=DOCUMENT_COLUMNS,
        partitions_def=partitions_definition(partitioning),
        backfill_policy=dg.BackfillPolicy.single_run(),
        output_required=False,
        code_version=PARSER_VERSION,
    )
    def parsed(
        context: dg.AssetExecutionContext, workspace: dg.ResourceParam[Workspace]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Parsed documents: title, preamble and sections with their lines in the source; one per partition, or a bucket of them.

        The scan keeps these up to date by itself; a backfill parses chosen documents again. A document that cannot be
        read fails alone: all others of the run keep their result, and *re-execute from failure* tries only the failed.

        If red: the run's failure lists documents and reasons. Repair those files and refresh.
        """
        entries = in_partitions(workspace.store.catalogue().values(), context.partition_keys, partitioning)
        tag_single_document(context, entries, partitioning)
        failed = parse_documents(
            open_corpus(workspace.settings.corpus_location),
            workspace.store,
            [entry.doc_id for entry in entries],
            on_stored=_event_logger(context, partitioning),
            forgotten=workspace.forgotten.ids(),
        )
        catalogue = workspace.store.catalogue()
        if partitioning == "bucket":
            for partition in _chosen(context, catalogue.values(), partitioning):
                if not failed.keys() & {entry.doc_id for entry in partition.entries}:
                    context.log_event(raw_event(partition))
        else:
            unknown = set(context.partition_keys) - {entry.partition_key for entry in catalogue.values()}
            failed |= dict.fromkeys(sorted(unknown), "not in the catalogue: run a refresh")
        if failed:
            n_chosen = len(entries) if partitioning == "bucket" else len(context.partition_keys)
            raise documents_failed(failed, n_chosen)
        yield from ()  # no output: each partition has had its own event, and Dagster must not add a second one

    return parsed


@dg.asset(
    group_name=_GROUP,
    kinds={"python", "json"},
    owners=_OWNERS,
    tags=tags("corpus"),
    metadata=SEAL_COLUMNS,
    deps=[corpus_scan, RAW_DOCUMENTS],
    code_version="1",
)
def raw_corpus(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """The sealed corpus: exactly which documents, in which versions, everything downstream is made of.

    Its data version is a hash of all of them, so it is the same whenever nothing changed. With `mode = auto` the corpus
    is profiled here, and what follows is built as the profile recommends.

    If red: nothing could be read, so there is nothing to seal; see the failures of `corpus_scan`. What was published before
    is served on.
    """
    started = time.monotonic()
    path = workspace.home.seal("raw")
    with workspace.home.lock("documents"):
        before = path.read_bytes() if path.is_file() else b""
        sealed = seal_corpus(workspace.store, path, workspace.settings.corpus_location)
        after = path.read_bytes()
        catalogue = workspace.store.catalogue()
    decision = decide_mode(workspace)
    reasons = {"because": dg.MetadataValue.md(_list(decision.reasons))} if decision else {}
    return dg.MaterializeResult(
        data_version=dg.DataVersion(sealed.version),
        metadata={
            "documents": len(sealed.documents),
            "sections": sum(catalogue[doc_id].n_sections for doc_id, _ in sealed.documents),
            "changed": int(after != before),
            "seconds": round(time.monotonic() - started, 3),
            "version": sealed.version[:16],
            "mode": workspace.mode_label,
            **reasons,
        },
    )


def tag_single_document(
    context: dg.AssetExecutionContext, entries: Iterable[CatalogueEntry], partitioning: Partitioning
) -> None:
    """Name the document on a run that is about one."""
    if partitioning == "document" and len(context.partition_keys) == 1:
        for entry in entries:
            tag_run(context, entry.doc_id, entry.title)


def _event_logger(
    context: dg.AssetExecutionContext, partitioning: Partitioning
) -> Callable[[CatalogueEntry], None]:
    """Logs a document as soon as it is stored; a bucket has to wait for its other documents."""

    def log(entry: CatalogueEntry) -> None:
        if partitioning == "document":
            context.log_event(raw_event(partition_of_document(entry)))

    return log


def _chosen(
    context: dg.AssetExecutionContext, entries: Iterable[CatalogueEntry], partitioning: Partitioning
) -> list[Partition]:
    by_key = partitions(entries, partitioning)
    return [by_key[key] for key in context.partition_keys if key in by_key]


def _list(sentences: Iterable[str]) -> str:
    return "\n".join(f"* {sentence}" for sentence in sentences)


def _scan_metadata(report: ScanReport) -> dict[str, dg.MetadataValue | int | float | str]:
    return {
        "added": len(report.added),
        "changed": report.n_changes,
        "updated": len(report.changed),
        "unchanged": report.unchanged,
        "removed": len(report.removed),
        "forgotten": report.n_forgotten,
        "failed": len(report.failed),
        "seconds": round(report.seconds, 3),
        "failures": reasons_table(report.failed),
        "served from before": dg.MetadataValue.json(list(report.served_from_before[:_SHOWN])),
        "ignored files": dg.MetadataValue.json(dict(report.ignored)),
        "warnings": reasons_table(dict(report.warnings)),
    }


def documents_failed(failed: Mapping[str, str], n_chosen: int, **metadata: Any) -> dg.Failure:
    """How a partitioned step ends when some of its documents failed, with their reasons; the others keep their events."""
    return dg.Failure(
        f"{len(failed)} of {n_chosen} documents failed: {', '.join(list(failed)[:5])}",
        metadata={"failed": len(failed), "failures": reasons_table(failed), **metadata},
        allow_retries=False,
    )


def reasons_table(failed: Mapping[str, str]) -> dg.MetadataValue:
    """Reasons by source as a table, the first fifty."""
    records = [
        dg.TableRecord({"source": source, "reason": reason})
        for source, reason in list(failed.items())[:_SHOWN]
    ]
    schema = dg.TableSchema([dg.TableColumn("source"), dg.TableColumn("reason")])
    return dg.MetadataValue.table(records, schema)
