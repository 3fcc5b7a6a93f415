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
    from prime_pipeline.records import DocumentMetadata
    from prime_pipeline.reporting.explaining import Verdict
    from prime_pipeline.reporting.lineage import DocumentLineage, SectionLineage
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
def lineage(
    section: Annotated[
        str,
        typer.Argument(
            help="Id of a section, as prime search --json gives it (guide.md#2), or of a document, to list its sections."
        ),
    ],
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where a section of an answer came from: build, restructuring, metadata, raw text, file and lines.

    It is also told whether the file has changed since. For a document, its sections are listed with the verdicts on them.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.lineage import lineage_view
        from prime_pipeline.reporting.lineage import lineage_of

        options = {"home": home, "profile": profile}
        with (
            opened_workspace(options, console, show_progress=False) as workspace,
            workspace.retriever() as retriever,
        ):
            found = lineage_of(workspace, retriever, section)
            if retriever.manifest.variant != workspace.mode and not as_json:
                console.print(f"[dim]{NOT_YET}[/]")
        if as_json:
            print_json(_lineage_fields(found))
        else:
            console.print(lineage_view(found))


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


def _lineage_fields(found: DocumentLineage | SectionLineage) -> dict[str, Any]:
    from prime_pipeline.records import section_id
    from prime_pipeline.reporting.lineage import SectionLineage

    whole = found.of_document if isinstance(found, SectionLineage) else found
    document = {
        **_fields(whole.build),
        **_fields(whole.document),
        "version": whole.version,
        "indexed_text": whole.indexed_text,
        "restructuring": _fields(whole.origin) if whole.origin else None,
        "metadata": _metadata_fields(whole.metadata),
    }
    if isinstance(found, SectionLineage):
        section = found.section
        return {
            "section_id": section_id(section.doc_id, section.ordinal),
            "heading_path": section.heading_path,
            "start_line": section.start_line,
            "end_line": section.end_line,
            "text": section.text,
            "restructured": section.restructured,
            "verdict": _fields(found.verdict),
            "source": _fields(found.state),
            "lines": [_fields(line) for line in found.lines],
            "lines_left": found.n_lines_left,
            "document": document,
        }
    sections = [
        {
            "section_id": section_id(section.doc_id, section.ordinal),
            "heading_path": section.heading_path,
            "start_line": section.start_line,
            "end_line": section.end_line,
            "is_restructured": section.rewritten is not None,
            "verdict": verdict.status,
            "codes": [finding.code for finding in verdict.findings],
        }
        for section, verdict in whole.sections
    ]
    return {"document": document, "source": _fields(whole.state), "sections": sections}


def _metadata_fields(metadata: DocumentMetadata | None) -> dict[str, Any] | None:
    if metadata is None:
        return None
    terms = [{"term": term, "score": score} for term, score in metadata.terms]
    headings = [{"level": level, "text": text} for level, text in metadata.headings]
    return {"terms": terms, "headings": headings, "text": metadata.text}


def _warmed_fields(warmed: Warmed, limit_bytes: int) -> dict[str, Any]:
    return {**_fields(warmed), "n_left": warmed.n_left, "limit_bytes": limit_bytes}


def _fields(record: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(record)
