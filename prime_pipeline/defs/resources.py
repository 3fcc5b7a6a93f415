"""The resource of all assets: a plain workspace, opened from the settings when a run starts."""

import dagster as dg

from prime_pipeline.progress import Progress
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace


class WorkspaceResource(dg.ConfigurableResource[Workspace]):
    """Hands out the workspace of PRIME_HOME, with the settings in force when the run starts."""

    home: str | None = None

    def create_resource(self, context: dg.InitResourceContext) -> Workspace:
        """The workspace; its progress goes to the run's log."""
        workspace = Workspace(load_settings({"home": self.home}), progress=logged_progress(context.log))
        workspace.home.prepare()
        return workspace


def logged_progress(log: dg.DagsterLogManager | None) -> Progress:
    """A listener that logs an activity at each tenth of it, since every line of a run's log is a database row."""
    last: dict[str, int] = {}

    def report(activity: str, done: int, total: int | None) -> None:
        if log is None or not total or total < 10:
            return
        tenth = 10 * done // total
        if tenth > last.get(activity, 0):
            log.info(f"{activity}: {done:,} of {total:,}")
        last[activity] = tenth

    return report
