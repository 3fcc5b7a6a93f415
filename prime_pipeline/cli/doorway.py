"""What all commands share: the app, options, how errors become messages and exit codes, and how a workspace is opened."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from prime_pipeline.defs.runs import RefreshSummary
    from prime_pipeline.retrieval.filters import DocumentFilter
    from prime_pipeline.workspace import Workspace

EXIT_FAILED = 1
EXIT_PARTIAL = 3
EXIT_VETOED = 4
EXIT_INTERRUPTED = 130

NOT_YET = "full mode has published nothing yet: the offline index answers"

app = typer.Typer(
    name="prime",
    help="Prepare a corpus of structured documents for retrieval, and keep it prepared.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 all well, 1 failed, 2 wrong usage, 3 done in part, 4 quality fell, 130 interrupted.",
)

HomeOption = Annotated[Path | None, typer.Option("--home", help="PRIME_HOME, where everything is written.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
ModeOption = Annotated[
    str | None,
    typer.Option(
        help="offline; full: sections are restructured first; or auto: what the corpus profile recommends."
    ),
]
ProfileOption = Annotated[
    str | None, typer.Option(help="embedded (no network) or paper (needs the model hub).")
]
PathOption = Annotated[
    str,
    typer.Option(
        help="Only documents whose path below the corpus begins like this; with *, ? or [...] a pattern for all of it."
    ),
]
TagOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Only documents with this tag in their front matter; repeat it to ask for several at once."
    ),
]
SinceOption = Annotated[
    datetime | None,
    typer.Option(formats=["%Y-%m-%d"], help="First day of the document's date, which its front matter says."),
]
UntilOption = Annotated[
    datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Last day of the document's date.")
]


@contextmanager
def reporting(as_json: bool) -> Iterator[Console]:
    """Turn what a user can act on into a message and an exit code; anything else is a fault and shows its trace."""
    from rich.console import Console

    from prime_pipeline.errors import PrimeError, QualityDropped

    try:
        yield Console(highlight=False)
    except BrokenPipeError:
        raise  # whoever read this has enough
    except PrimeError as error:
        report_error(as_json, type(error).__name__, str(error))
        raise typer.Exit(EXIT_VETOED if isinstance(error, QualityDropped) else EXIT_FAILED) from None
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        report_error(as_json, type(error).__name__, f"{what}{error.strerror or error}")
        raise typer.Exit(EXIT_FAILED) from None
    except KeyboardInterrupt:
        report_error(as_json, "Interrupted", "interrupted; what was published before is served on")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def report_error(as_json: bool, kind: str, text: str) -> None:
    """Tell an error: on stderr for people, as the one object for programs."""
    from rich.console import Console

    from prime_pipeline.console.parts import message

    if as_json:
        print_json({"error": kind, "message": text})
    else:
        Console(stderr=True).print(message("error:", text, "bold red"), soft_wrap=True)


def opened(options: Mapping[str, Any]) -> Workspace:
    """A workspace with the settings in force; options that are None were not given."""
    from prime_pipeline.settings import load_settings
    from prime_pipeline.workspace import Workspace

    return Workspace(load_settings(options))


@contextmanager
def opened_workspace(
    options: Mapping[str, Any], console: Console, *, show_progress: bool
) -> Iterator[Workspace]:
    """A workspace that tells its progress on the console, and is closed at the end of the block."""
    from prime_pipeline.console.parts import progress_on

    workspace = opened(options)
    with progress_on(console, enabled=show_progress) as workspace.progress:
        try:
            yield workspace
        finally:
            workspace.close()


def refreshed(
    workspace: Workspace, *, allow_removals: bool, republish: bool, accept_drop: bool = False
) -> RefreshSummary:
    """Run a refresh; what the home is for is remembered in it first."""
    from prime_pipeline.corpus.opening import open_corpus
    from prime_pipeline.datasets.locations import KNOWN_ITEMS
    from prime_pipeline.datasets.queries import load_query_set
    from prime_pipeline.definitions import definitions
    from prime_pipeline.defs.runs import run_refresh
    from prime_pipeline.settings import remember

    # Both raise before anything is written, and before a mistyped name is remembered.
    open_corpus(workspace.settings.corpus_location)
    if workspace.settings.queries and workspace.settings.queries != KNOWN_ITEMS:
        load_query_set(workspace.settings.queries)
    workspace.home.prepare()
    # Before the run, so that one that is interrupted goes on with a plain `prime refresh`.
    remember(workspace.settings)
    defs = definitions(workspace.settings.partitioning)
    return run_refresh(
        defs, workspace, allow_removals=allow_removals, republish=republish, accept_drop=accept_drop
    )


def chosen_documents(
    path: str, tag: list[str] | None, since: datetime | None, until: datetime | None
) -> DocumentFilter:
    """Which documents may answer, as the options say."""
    from prime_pipeline.errors import NoSuchDays
    from prime_pipeline.retrieval.filters import DocumentFilter

    first, last = (day.date() if day else None for day in (since, until))
    try:
        return DocumentFilter(path, tuple(tag or ()), first, last)
    except NoSuchDays as error:
        raise typer.BadParameter(str(error)) from None


def print_json(value: Mapping[str, Any]) -> None:
    """The one object that a command prints with ``--json``."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def given_path(text: str) -> Path:
    """A path as it was given; nothing, such as a variable of a shell that is not set, is not the working directory."""
    if not text.strip():
        raise typer.BadParameter("the path is empty: name a file or folder")
    return Path(text)


def from_here(path: Path) -> str:
    """A path as short as it can be said from here, quoted for a shell."""
    with suppress(ValueError, OSError):
        path = path.relative_to(Path.cwd())
    return shlex.quote(str(path))
