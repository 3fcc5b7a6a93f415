"""Our jobs with their steps on Celery workers.

Copy this file next to what starts them, and start both sides from it::

    celery -A prime_celery worker --queues dagster --pool solo   # where steps are to run, as often as you like
    dagster dev -m prime_celery                                  # or dagster-webserver and dagster-daemon

Both need CELERY_BROKER_URL and CELERY_RESULT_BACKEND (redis://… will do for both), PRIME_HOME and DAGSTER_HOME=$PRIME_HOME/dagster.
A worker that is started with ``-A dagster_celery.app`` knows neither address and dials amqp://localhost:5672 for ever: this
module is the app, so that executor and workers cannot disagree. It needs the extra ``celery``.
"""

import os

import dagster as dg
from dagster_celery import celery_executor
from dagster_celery.config import DEFAULT_CONFIG, dict_wrapper
from dagster_celery.make_app import make_app
from dagster_celery.tasks import create_task

from prime_pipeline.definitions import definitions
from prime_pipeline.settings import load_settings

WHERE = {"broker": os.environ["CELERY_BROKER_URL"], "backend": os.environ["CELERY_RESULT_BACKEND"]}

app = make_app({**WHERE, "config_source": dict_wrapper(DEFAULT_CONFIG)})
execute_plan = create_task(app)


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads: all of ours, on another executor."""
    ours = definitions(load_settings().partitioning)
    return dg.Definitions(
        assets=ours.assets,
        asset_checks=ours.asset_checks,
        jobs=ours.jobs,
        schedules=ours.schedules,
        sensors=ours.sensors,
        resources=ours.resources,
        executor=celery_executor.configured(WHERE),
    )
