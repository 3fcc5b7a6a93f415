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

from prime_pipeline import definitions

WHERE = {"broker": os.environ["CELERY_BROKER_URL"], "backend": os.environ["CELERY_RESULT_BACKEND"]}

app = make_app({**WHERE, "config_source": dict_wrapper(DEFAULT_CONFIG)})
execute_plan = create_task(app)

defs = dg.Definitions(
    assets=definitions.defs.assets,
    asset_checks=definitions.defs.asset_checks,
    jobs=definitions.defs.jobs,
    schedules=definitions.defs.schedules,
    sensors=definitions.defs.sensors,
    resources=definitions.defs.resources,
    executor=celery_executor.configured(WHERE),
)
