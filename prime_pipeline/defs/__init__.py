"""Everything Dagster: assets, checks, jobs, schedules, sensors, resources. No other package imports dagster."""
