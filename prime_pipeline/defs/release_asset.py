"""The release: what is served, sent to object storage for other machines."""

import dagster as dg

from prime_pipeline.defs.describing import tags
from prime_pipeline.defs.index_assets import published_index_key
from prime_pipeline.defs.report_assets import report
from prime_pipeline.defs.warehouse_asset import warehouse
from prime_pipeline.indexes.builds import VARIANTS
from prime_pipeline.refresh.releasing import publish_release
from prime_pipeline.storage.releases import ReleaseStore
from prime_pipeline.workspace import Workspace


@dg.asset(
    group_name="reports",
    deps=[*(published_index_key(variant) for variant in VARIANTS), warehouse, report],
    kinds={"python"},
    owners=["team:search"],
    tags=tags("delivery"),
    code_version="1",
)
def release(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """The served index, the warehouse and the report in object storage, where `publish_to` says; `prime pull` fetches them.

    Sent whole before its name is, so that a reader finds the release before or this one, never a mixture.

    If red: the storage cannot be reached or refuses to be written; the message names address and remedy. Readers keep the
    release before, and the next refresh sends this one.
    """
    url, variant = workspace.settings.publish_to, workspace.served_variant
    if not url:
        return dg.MaterializeResult(metadata={"changed": 0, "note": "publish_to is not set"})
    build = workspace.builds(variant).live_path
    if build is None:
        raise dg.Failure(
            "nothing is published: materialise offline/published_index first", allow_retries=False
        )
    keep = workspace.settings.index.keep_builds
    with workspace.home.lock("release"):
        upload = publish_release(ReleaseStore(url), workspace.home, variant, build, keep, workspace.progress)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(upload.release.release_id),
        metadata={
            "changed": int(upload.changed),
            "release": upload.release.release_id,
            "url": url,
            "files_sent": upload.n_files,
            "bytes_sent": upload.n_bytes,
            **upload.release.about,
        },
    )
