"""Commands about how queries are answered: making the first ones as quick as later ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from prime_pipeline.cli.doorway import (
    EXIT_INTERRUPTED,
    EXIT_PARTIAL,
    HomeOption,
    JsonOption,
    ProfileOption,
    app,
    opened_workspace,
    print_json,
    report_error,
    reporting,
)

if TYPE_CHECKING:
    from prime_pipeline.retrieval.warming import Warmed


@app.command()
def warm(profile: ProfileOption = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Compute the token vectors of all sections ahead, so that no search has to wait for them.

    What is made stays when this is interrupted. Exits with 3 if the cache is too small for all of them.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.explaining import warmed_view

        options = {"home": home, "profile": profile}
        with opened_workspace(options, console, show_progress=not as_json) as workspace:
            try:
                warmed = workspace.warm()
            except KeyboardInterrupt:
                report_error(
                    as_json, "Interrupted", "interrupted; what was made stays: prime warm goes on from there"
                )
                raise typer.Exit(EXIT_INTERRUPTED) from None
            limit_bytes = workspace.settings.token_vector_cache_bytes
        if as_json:
            print_json(_warmed_fields(warmed, limit_bytes))
        else:
            console.print(warmed_view(warmed, limit_bytes), soft_wrap=True)
        if warmed.n_left:
            raise typer.Exit(EXIT_PARTIAL)


def _warmed_fields(warmed: Warmed, limit_bytes: int) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(warmed), "n_left": warmed.n_left, "limit_bytes": limit_bytes}
