"""Checks on what the assets have made; each looks at the stored thing itself."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import dagster as dg
import numpy as np

from prime_pipeline.defs.corpus_assets import corpus_scan, raw_corpus
from prime_pipeline.defs.evaluation_asset import retrieval_runs
from prime_pipeline.defs.index_assets import published_index_key
from prime_pipeline.defs.report_assets import report
from prime_pipeline.defs.restructuring_assets import restructuring
from prime_pipeline.errors import PrimeError
from prime_pipeline.indexes.builds import LEXICAL_FILE, METADATA_FILE, VARIANTS
from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.indexes.vectors import VectorIndex, check_vectors
from prime_pipeline.refresh.restructuring import current_standing, standing_of
from prime_pipeline.reports.content import bare_numbers
from prime_pipeline.reports.writing import read_report
from prime_pipeline.storage.metadata_file import MetadataFile
from prime_pipeline.storage.seal import read_seal
from prime_pipeline.workspace import Workspace

_WITH_REASON = ("repaired", "patched", "routed", "raw", "deferred")
_N_SAMPLED = 100


@dg.asset_check(asset=corpus_scan)
def every_source_is_readable(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
    """No file or record failed. A warning only: the others are served, and the failed are tried again every time.

    If red: mend the files that the reasons name.
    """
    failed = workspace.store.failures()
    return dg.AssetCheckResult(
        passed=not failed,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"failed": len(failed), "reasons": dg.MetadataValue.json(dict(list(failed.items())[:50]))},
    )


@dg.asset_check(asset=raw_corpus, blocking=True)
def documents_are_whole(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
    """Ids are unique and documents have text in ascending sections; a hundred documents are opened to see it.

    If red: the store is damaged, and nothing is built of it. Refresh again, which reads the named documents anew.
    """
    sealed = read_seal(workspace.home.seal("raw"))
    ids = [doc_id for doc_id, _ in sealed.documents]
    chosen = _spread(sealed.documents, _N_SAMPLED)
    faults = [] if len(set(ids)) == len(ids) else ["document ids repeat"]
    for document in workspace.store.load_all(chosen):
        ordinals = [section.ordinal for section in document.sections]
        if ordinals != sorted(set(ordinals)) or not document.text.strip():
            faults.append(document.doc_id)
    return dg.AssetCheckResult(
        passed=not faults, metadata={"opened": len(chosen), "faults": dg.MetadataValue.json(faults)}
    )


@dg.asset_check(asset=restructuring)
def sections_are_accounted_for(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
    """Every section of every document is restructured, or raw with a reason.

    If red: refresh again, which restructures what is missing.
    """
    if workspace.mode == "offline":
        return _not_in_offline_mode()
    raw = {d: e.version for d, e in workspace.store.catalogue().items() if e.version is not None}
    outcomes = {outcome.doc_id: outcome for outcome in workspace.restructured.outcomes()}
    faults = [f"{doc_id}: not restructured" for doc_id in sorted(raw.keys() - outcomes.keys())]
    faults += [
        f"{outcome.doc_id}#{section.ordinal}: raw without a reason"
        for outcome in outcomes.values()
        for section in outcome.sections
        if section.kind in _WITH_REASON and not section.findings
    ]
    standing = standing_of(outcomes.values(), workspace.restructured.word_counts())
    total = max(1, sum(standing.kinds.values()))
    return dg.AssetCheckResult(
        passed=not faults,
        metadata={
            **{f"{kind} share": n / total for kind, n in standing.kinds.items()},
            "reasons": dg.MetadataValue.json(dict(standing.codes)),
            "faults": dg.MetadataValue.json(faults[:50]),
        },
    )


@dg.asset_check(asset=restructuring)
def nothing_is_put_off(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
    """No section waits for the endpoint or for budget. A warning only: the next refresh tries again.

    If red: `prime doctor` asks the endpoint; raise the limits under `[llm]` if the budget is spent.
    """
    if workspace.mode == "offline":
        return _not_in_offline_mode()
    standing = current_standing(workspace.restructured)
    n_deferred = standing.kinds.get("deferred", 0)
    return dg.AssetCheckResult(
        passed=n_deferred == 0,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"deferred sections": n_deferred, "deferred share": standing.deferred_share},
    )


def published_checks(variant: str) -> list[dg.AssetChecksDefinition]:
    """The checks on what a variant publishes."""

    @dg.asset_check(asset=published_index_key(variant))
    def index_holds_the_corpus(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
        """Metadata, lexical and vector index hold exactly the sealed documents, in files that are what was published.

        If red: the served build is damaged, which the next refresh heals, or of an earlier corpus, since it was withdrawn or
        withheld: `prime refresh --republish` publishes the new one.
        """
        if not workspace.has_corpus(variant):
            return _not_in_offline_mode()
        return _index_check(workspace, variant)

    @dg.asset_check(asset=published_index_key(variant))
    def vectors_are_unit_vectors(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
        """Every vector is finite and of length 1.

        If red: the vector index is damaged. Refresh again, which makes it anew.
        """
        if not workspace.has_corpus(variant):
            return _not_in_offline_mode()
        live = workspace.builds(variant).live_path
        if live is None:
            return dg.AssetCheckResult(passed=False, description="nothing is published")
        vectors = np.asarray(VectorIndex(live).vectors)
        fault = check_vectors(vectors)
        return dg.AssetCheckResult(
            passed=fault is None, description=fault, metadata={"vectors": len(vectors)}
        )

    return [index_holds_the_corpus, vectors_are_unit_vectors]


def _index_check(workspace: Workspace, variant: str) -> dg.AssetCheckResult:
    builds = workspace.builds(variant)
    live = builds.live_path
    if live is None:
        return dg.AssetCheckResult(passed=False, description="nothing is published")
    try:
        manifest = builds.verify(live.name)
        parts = _part_ids(live)
    except PrimeError as error:
        return dg.AssetCheckResult(passed=False, description=str(error))
    sealed = workspace.plan(variant).corpus
    expected = [doc_id for doc_id, _ in sealed.documents]
    differing = [name for name, ids in parts.items() if ids != expected]
    is_current = manifest.corpus_version == sealed.version
    return dg.AssetCheckResult(
        passed=not differing or not is_current,
        severity=dg.AssetCheckSeverity.ERROR if is_current else dg.AssetCheckSeverity.WARN,
        description=None
        if is_current
        else "the served build is of an earlier corpus: it was withdrawn or withheld",
        metadata={"documents": len(expected), "differing parts": dg.MetadataValue.json(differing)},
    )


def _not_in_offline_mode() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True, description="nothing to check: the full track is not built")


@dg.asset_check(asset=retrieval_runs)
def measures_are_complete(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
    """Every judged query has a value from 0 to 1 in every measure of every system.

    If red: rankings are stale or damaged. Refresh again, which evaluates anew.
    """
    if not workspace.settings.queries:
        return dg.AssetCheckResult(passed=True, description="no queries are configured")
    reports = workspace.evaluations()
    if not reports:
        return dg.AssetCheckResult(passed=False, description="nothing was evaluated")
    n_queries = reports[0].n_queries
    series = [v for report in reports for run in report.systems.values() for v in run.per_query.values()]
    faults = [
        values
        for values in series
        if len(values) != n_queries or not all(0.0 <= v <= 1.0 for v in values.values())
    ]
    return dg.AssetCheckResult(passed=not faults, metadata={"series": len(series), "faulty": len(faults)})


@dg.asset_check(asset=report)
def numbers_have_intervals(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
    """Every number of the report that estimates something stands with its interval, or with the reason for none.

    If red: a table of the report was added without intervals: mend its code in `reports/`.
    """
    content = read_report(workspace.home.reports)
    bare = bare_numbers(content)
    return dg.AssetCheckResult(
        passed=not bare,
        metadata={"cells": len(content.cells), "without interval": dg.MetadataValue.json(bare[:50])},
    )


def _part_ids(build: Path) -> dict[str, list[str]]:
    with (
        closing(LexicalIndex(build / LEXICAL_FILE)) as lexical,
        closing(MetadataFile(build / METADATA_FILE)) as metadata,
    ):
        return {
            "lexical": lexical.doc_ids,
            "metadata": metadata.doc_ids(),
            "vectors": VectorIndex(build).doc_ids,
        }


def _spread(items: Sequence[tuple[str, str]], n: int) -> list[tuple[str, str]]:
    """At most ``n`` items, evenly spread."""
    step = max(1, -(-len(items) // n))
    return list(items[::step])


CHECKS = [
    every_source_is_readable,
    documents_are_whole,
    sections_are_accounted_for,
    nothing_is_put_off,
    *(check for variant in VARIANTS for check in published_checks(variant)),
    measures_are_complete,
    numbers_have_intervals,
]
