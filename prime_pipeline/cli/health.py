"""The command that looks for what is wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import typer

from prime_pipeline.cli.doorway import (
    EXIT_FAILED,
    HomeOption,
    JsonOption,
    ProfileOption,
    app,
    opened,
    print_json,
    reporting,
)


@app.command()
def doctor(
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for what is wrong: home, settings, models, endpoint, index, caches, warehouse, Dagster, packages.

    Changes nothing and pays nothing. Exits with 1 if there is a problem; warnings are no problem.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.health import checks_view
        from prime_pipeline.errors import SettingsError
        from prime_pipeline.reporting.health import Check

        try:
            workspace = opened({"home": home, "profile": profile})
        except SettingsError as error:
            checks = [Check("settings", "files", "problem", str(error), "correct what the message names")]
        else:
            from prime_pipeline.defs.health import examine_all

            checks = list(examine_all(workspace))
        counts = Counter(check.state for check in checks)
        if as_json:
            print_json(
                {
                    "problems": counts["problem"],
                    "warnings": counts["warning"],
                    "checks": [asdict(check) for check in checks],
                }
            )
        else:
            console.print(checks_view(checks))
            console.print(
                f"\n{counts['problem']} problems, {counts['warning']} warnings, {counts['ok']} in order"
            )
        if counts["problem"]:
            raise typer.Exit(EXIT_FAILED)
