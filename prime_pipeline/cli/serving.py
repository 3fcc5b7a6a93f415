"""Commands that answer questions for other programs until somebody ends them: over HTTP, and as tools for agents."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from prime_pipeline.cli.doorway import (
    HomeOption,
    JsonOption,
    ProfileOption,
    app,
    opened_workspace,
    print_json,
    reporting,
)

if TYPE_CHECKING:
    from rich.console import Console

    from prime_pipeline.workspace import Workspace

HostOption = Annotated[
    str,
    typer.Option(help="Address to listen on; any but loopback needs a token (PRIME_SERVE__TOKEN)."),
]


@app.command()
def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8765,
    host: HostOption = "127.0.0.1",
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer queries over HTTP: /search, /explain, /documents/ID, /health, /openapi.json, and a page to try them on.

    What a refresh publishes is served without a restart. Ctrl-C ends it, with exit code 0.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.parts import message
        from prime_pipeline.server.answers import QueryService
        from prime_pipeline.server.running import listening_socket, run, url_of
        from prime_pipeline.server.web import application

        with opened_workspace({"home": home, "profile": profile}, console, show_progress=False) as workspace:
            token = workspace.settings.serve.token.get_secret_value()
            with listening_socket(host, port, token) as bound:
                service = QueryService(workspace)
                waiting = nullcontext() if as_json else console.status("loading the models")
                with waiting:
                    missing = service.warm_up()
                if missing and not as_json:
                    console.print(message("not yet:", str(missing)), soft_wrap=True)
                _announce(console, as_json, url_of(bound), workspace)
                try:
                    run(application(service, token), bound)
                finally:
                    service.close()


@app.command()
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Over HTTP at /mcp instead of standard input and output.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port, with --http.")] = 8766,
    host: HostOption = "127.0.0.1",
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Offer the tools search_sections and read_section to agents (Model Context Protocol), by default on stdin and stdout.

    Needs the extra mcp. What a refresh publishes is served without a restart.
    """
    with reporting(as_json) as console:
        from prime_pipeline.server.answers import QueryService
        from prime_pipeline.server.running import listening_socket, run, url_of
        from prime_pipeline.server.tools import agent_application, agent_server

        with opened_workspace({"home": home, "profile": profile}, console, show_progress=False) as workspace:
            service = QueryService(workspace)
            server = agent_server(service)
            try:
                if http:
                    token = workspace.settings.serve.token.get_secret_value()
                    with listening_socket(host, port, token) as bound:
                        _announce(console, as_json, f"{url_of(bound)}/mcp", workspace)
                        run(agent_application(server, token), bound)
                else:
                    with suppress(KeyboardInterrupt):
                        server.run()
            finally:
                service.close()


def _announce(console: Console, as_json: bool, url: str, workspace: Workspace) -> None:
    """Say where a server answers; nothing follows on stdout."""
    from prime_pipeline.console.parts import message

    if as_json:
        print_json({"url": url, "home": str(workspace.home.root)})
        sys.stdout.flush()
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    else:
        console.print(message("Serving:", f"{url} (Ctrl-C ends it)", "bold"))
