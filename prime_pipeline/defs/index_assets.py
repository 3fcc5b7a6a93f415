"""Assets of the index, made by a factory per variant, so that the lineage graph shows a track for each."""

from collections.abc import Callable, Mapping

import dagster as dg
from pydantic import Field

from prime_pipeline.defs.describing import tags
from prime_pipeline.defs.table_columns import (
    LEXICAL_COLUMNS,
    METADATA_COLUMNS,
    lexical_lineage,
    metadata_lineage,
)
from prime_pipeline.errors import QualityDropped
from prime_pipeline.refresh.steps import BuildSteps, StepOutcome
from prime_pipeline.reporting.vetoing import QualityGuard
from prime_pipeline.workspace import Workspace

_OWNERS = ["team:search"]


class PublishConfig(dg.Config):
    """What publishing may do."""

    republish: bool = Field(default=False, description="Publish a build even if prime rollback took it back.")
    accept_drop: bool = Field(
        default=False, description="Publish a build even if NDCG fell by more than index.max_ndcg_drop."
    )


def published_index_key(variant: str) -> dg.AssetKey:
    """Key of the asset that publishes a variant."""
    return dg.AssetKey([variant, "published_index"])


def index_assets(variant: str, corpus: dg.AssetKey) -> list[dg.AssetsDefinition]:
    """Metadata, lexical index, vector index and their publication for one variant of the corpus."""
    metadata_key = dg.AssetKey([variant, "document_metadata"])
    lexical_key = dg.AssetKey([variant, "lexical_index"])
    vector_key = dg.AssetKey([variant, "vector_index"])

    @dg.asset(
        key=metadata_key,
        deps=[corpus],
        kinds={"python", "sqlite"},
        group_name=variant,
        owners=_OWNERS,
        tags=tags("index", variant),
        metadata={**METADATA_COLUMNS, **metadata_lineage(variant)},
        code_version="1",
    )
    def document_metadata(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
        """Discriminative terms, heading tree and the metadata text of every document.

        Terms are scored over the whole corpus, so one new document may move the terms of others a little: the number
        of changed texts is what has to be embedded again.

        If red: a stored document was damaged, or the disk is full; the message says which. Refresh again, which reads damaged
        documents anew.
        """
        return _step(workspace, variant, lambda steps: steps.synthesise_metadata(), metadata_lineage(variant))

    @dg.asset(
        key=lexical_key,
        deps=[corpus],
        kinds={"sqlite"},
        group_name=variant,
        owners=_OWNERS,
        tags=tags("index", variant),
        metadata={**LEXICAL_COLUMNS, **lexical_lineage(variant)},
        code_version="1",
    )
    def lexical_index(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
        """The FTS5 index: a row per document and a row per section, for BM25.

        Where little changed, the index before is copied and brought up to date. `prime lineage SECTION` follows a row of
        it to the lines of its file.

        If red: a stored document was damaged, or the disk is full; the message says which. Refresh again, which reads damaged
        documents anew.
        """
        return _step(workspace, variant, lambda steps: steps.build_lexical(), lexical_lineage(variant))

    @dg.asset(
        key=vector_key,
        deps=[metadata_key],
        kinds={"python", "numpy"},
        group_name=variant,
        owners=_OWNERS,
        tags=tags("index", variant),
        code_version="1",
    )
    def vector_index(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
        """One vector per document, of its metadata text. Texts embedded before come from the cache.

        If red: the embedding model cannot be loaded, or the disk is full; `prime doctor` says which and what to do.
        """
        return _step(workspace, variant, lambda steps: steps.build_vectors())

    @dg.asset(
        key=published_index_key(variant),
        deps=[lexical_key, vector_key],
        kinds={"python"},
        group_name=variant,
        owners=_OWNERS,
        tags=tags("index", variant),
        code_version="1",
    )
    def published_index(
        context: dg.AssetExecutionContext, config: PublishConfig, workspace: dg.ResourceParam[Workspace]
    ) -> dg.MaterializeResult[None]:
        """The index that answers queries: both parts checked against each other, then swapped in at once.

        With `index.max_ndcg_drop` the configured queries are asked first: if the build finds less than the served one by
        more than that, this fails, and the served one stays.

        Readers of the build before go on undisturbed; `prime rollback` returns to it.

        If red: NDCG fell (see the observation, and set `accept_drop` to publish nevertheless), or the parts of the build do
        not agree, and the next refresh makes them anew. What was served before is served on.
        """
        if not workspace.has_corpus(variant):
            return _nothing(workspace)
        keep = workspace.settings.index.keep_builds
        guard = QualityGuard(workspace, variant, accept_drop=config.accept_drop)
        with workspace.home.index_lock(variant):
            try:
                outcome, publication = workspace.steps(variant).publish(
                    even_if_withdrawn=config.republish, keep=keep, approve=guard
                )
            except QualityDropped:
                context.log_event(dg.AssetObservation(context.asset_key, metadata=_compared(guard)))
                raise
            guard.published()
        served = publication.live or "none"
        return _result(outcome, served=served, **_compared(guard))

    return [document_metadata, lexical_index, vector_index, published_index]


def _step(
    workspace: Workspace,
    variant: str,
    work: Callable[[BuildSteps], StepOutcome],
    lineage: Mapping[str, dg.TableColumnLineage] | None = None,
) -> dg.MaterializeResult[None]:
    if not workspace.has_corpus(variant):
        return _nothing(workspace)
    with workspace.home.index_lock(variant):
        return _result(work(workspace.steps(variant)), **(lineage or {}))


def _nothing(workspace: Workspace) -> dg.MaterializeResult[None]:
    """For the full track while there is nothing to build it of."""
    reason = f"the mode is {workspace.mode_label}" if workspace.mode == "offline" else "nothing is sealed yet"
    return dg.MaterializeResult(data_version=dg.DataVersion(reason), metadata={"changed": 0, "note": reason})


def _compared(guard: QualityGuard) -> dict[str, str | float]:
    """What the guard found, for the asset."""
    if (found := guard.comparison) is None:
        return {"not compared": guard.note} if guard.note else {}
    bounds = {} if found.low is None or found.high is None else {"low": found.low, "high": found.high}
    return {
        "ndcg@5": found.candidate,
        "ndcg@5 of the build before": found.served,
        "ndcg@5 difference": found.difference,
        **{f"ndcg@5 difference {name}": bound for name, bound in bounds.items()},
    }


def _result(outcome: StepOutcome, **more: str | float | dg.TableColumnLineage) -> dg.MaterializeResult[None]:
    metadata: dict[str, dg.MetadataValue | dg.TableColumnLineage | int | float | str] = {
        "changed": int(outcome.changed),
        "seconds": round(outcome.seconds, 3),
        "build": outcome.build_id,
        **outcome.counts,
        **more,
    }
    if outcome.notes:
        metadata["notes"] = dg.MetadataValue.md("\n".join(f"* {note}" for note in outcome.notes))
    if outcome.samples:
        metadata["samples"] = dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in outcome.samples])
    return dg.MaterializeResult(data_version=dg.DataVersion(outcome.build_id), metadata=metadata)
