"""What starts a refresh by itself. Everything here is off until somebody turns it on in the UI."""

from collections.abc import Iterator

import dagster as dg

from prime_pipeline.corpus.watch import corpus_state
from prime_pipeline.defs.documents import RAW_DOCUMENTS, RESTRUCTURED_DOCUMENTS
from prime_pipeline.defs.experiment_assets import experiment, experiment_cells, experiment_report
from prime_pipeline.defs.liveness import refresh_is_live
from prime_pipeline.defs.report_assets import generated_answers_asset, report
from prime_pipeline.settings import load_settings

refresh = dg.define_asset_job(
    "refresh",
    selection=dg.AssetSelection.all()
    - dg.AssetSelection.assets(RAW_DOCUMENTS, RESTRUCTURED_DOCUMENTS, generated_answers_asset)
    - dg.AssetSelection.assets(experiment_cells, experiment, experiment_report),
    description="Scan the corpus, restructure in full mode, bring metadata and indexes up to date, publish, evaluate, report. "
    "Cheap when nothing changed.",
)

answer = dg.define_asset_job(
    "answer",
    selection=dg.AssetSelection.assets(generated_answers_asset, report),
    description="Have the language model answer the questions that have reference answers, and report. This spends money.",
)

reproduce = dg.define_asset_job(
    "reproduce",
    selection=dg.AssetSelection.assets(experiment, experiment_report),
    description="Every representation under every pipeline over what is published, and the report: see prime reproduce.",
)


@dg.schedule(job=refresh, cron_schedule="0 3 * * *", default_status=dg.DefaultScheduleStatus.STOPPED)
def nightly_refresh(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """Refresh every night at three, unless one is still running."""
    if refresh_is_live(context.instance):
        return dg.SkipReason("a refresh is still running")
    return dg.RunRequest()


@dg.sensor(job=refresh, minimum_interval_seconds=60, default_status=dg.DefaultSensorStatus.STOPPED)
def corpus_changes(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Refresh when a file of the corpus was added, changed or removed (told by size and time of change)."""
    location = load_settings().corpus
    if not location:
        return dg.SkipReason("no corpus is set")
    state = corpus_state(location)
    if state == context.cursor:
        return dg.SkipReason("the corpus has not changed")
    if refresh_is_live(context.instance):
        return dg.SkipReason("a refresh is still running")
    return dg.SensorResult(run_requests=[dg.RunRequest()], cursor=state)


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS, request_job=refresh, default_status=dg.DefaultSensorStatus.STOPPED
)
def refresh_after_backfill(context: dg.RunStatusSensorContext) -> Iterator[dg.RunRequest]:
    """Refresh when a backfill of documents has succeeded, raw or restructured, so that the indexes follow."""
    run = context.dagster_run
    if run.job_name == refresh.name:  # its scan logs events of raw_documents, too
        return
    events = context.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    keys = {RAW_DOCUMENTS, RESTRUCTURED_DOCUMENTS}
    if any(e.dagster_event and e.dagster_event.asset_key in keys for e in events):
        yield dg.RunRequest(
            run_key=run.run_id
        )  # one per run, since the last run of a backfill is the one that counts
