"""Everything Dagster: assets, checks, jobs, schedules, sensors, resources. No other package imports dagster."""

import warnings

from dagster import BetaWarning

# Backfill policies are marked beta; the version of Dagster is pinned below the next minor one, and a user of this
# package can do nothing about the warning.
warnings.filterwarnings("ignore", message="Parameter `backfill_policy`", category=BetaWarning)
