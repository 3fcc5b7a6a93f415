"""Commands about how queries are answered: why sections were found, and making the first queries as quick as later ones."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prime_pipeline.cli.doorway import (
    EXIT_INTERRUPTED,
    EXIT_PARTIAL,
    NOT_YET,
    HomeOption,
    JsonOption,
    PathOption,
    ProfileOption,
    SinceOption,
    TagOption,
    UntilOption,
    app,
    chosen_documents,
    opened_workspace,
    print_json,
    report_error,
    reporting,
)

if TYPE_CHECKING:
    from prime_pipeline.reporting.explaining import Verdict
    from prime_pipeline.retrieval.explanation import HitExplanation
    from prime_pipeline.retrieval.warming import Warmed


@app.command()
def explain(
    query: Annotated[str, typer.Argument(help="The question, in plain words.")],
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", min=1, help="Sections to explain.")] = None,
    path: PathOption = "",
    tag: TagOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show why the sections that answer a question were found: ranks, scores, matched words, verdict, source.

    The sections are those of prime search, among the same documents.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.explaining import explanation_view
        from prime_pipeline.reporting.explaining import verdicts

        waiting = nullcontext() if as_json else console.status("searching")
        documents = chosen_documents(path, tag, since, until)
        options = {"home": home, "profile": profile}
        with opened_workspace(options, console, show_progress=False) as workspace:
            with waiting, workspace.retriever() as retriever:
                found = retriever.explain(query, top_k, documents=documents)
                judged = verdicts(workspace, retriever, [explained.hit for explained in found.hits])
            manifest = retriever.manifest
            if manifest.variant != workspace.mode and not as_json:
                console.print(f"[dim]{NOT_YET}[/]")
        if not as_json:
            console.print(explanation_view(found, judged))
            return
        print_json(
            {
                "query": query,
                "variant": manifest.variant,
                "build": manifest.build_id,
                "documents": found.n_documents,
                "words": [_fields(word) for word in found.words],
                "unknown_words": list(found.unknown_words),
                "hits": [_hit_fields(hit, verdict) for hit, verdict in zip(found.hits, judged, strict=True)],
            }
        )


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


def _hit_fields(explained: HitExplanation, verdict: Verdict) -> dict[str, Any]:
    fields = _fields(explained)
    return {**fields.pop("hit"), **fields, "verdict": _fields(verdict)}


def _warmed_fields(warmed: Warmed, limit_bytes: int) -> dict[str, Any]:
    return {**_fields(warmed), "n_left": warmed.n_left, "limit_bytes": limit_bytes}


def _fields(record: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(record)
