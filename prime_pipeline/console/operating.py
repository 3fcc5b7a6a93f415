"""What commands that operate an index show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from prime_pipeline.records import SectionHit
from prime_pipeline.restructuring.diff import (
    VERDICTS,
)

if TYPE_CHECKING:
    from prime_pipeline.defs.runs import RefreshSummary
    from prime_pipeline.evaluation.statistics import Interval

from prime_pipeline.console.parts import counts_table, hits_view, measures_table, message, messages, printable


def refresh_view(summary: RefreshSummary) -> Group:
    """What a refresh did: counts, failures, notes, checks and measures."""
    scan, published = summary.scan, summary.published
    counts: dict[str, Any] = {
        "added": len(scan.added),
        "updated": len(scan.changed),
        "removed": len(scan.removed),
        "unchanged": scan.unchanged,
        "failed": len(scan.failed),
        **({"forgotten": scan.n_forgotten} if scan.n_forgotten else {}),
        "embedded": sum(
            step.get("encoded", 0) for name, step in summary.steps.items() if name.endswith("vector_index")
        ),
    }
    moved = (
        summary.steps["offline/document_metadata"].get("changed_texts", 0)
        - len(scan.added)
        - len(scan.changed)
    )
    if moved > 0:
        counts["moved terms"] = f"{moved:,} unchanged documents, whose terms depend on the whole corpus"
    if "because" in (corpus := summary.steps.get("raw_corpus", {})):
        counts["mode"] = corpus["mode"]
    counts |= {
        name: published[name] for name in ("documents", "sections", "vectors", "served") if name in published
    }
    notes = {name: str(step["notes"]) for name, step in summary.steps.items() if "notes" in step}
    parts: list[Any] = [
        counts_table("Refresh", {**counts, **_restructuring_counts(summary)}),
        *messages("failed:", [f"{source}: {reason}" for source, reason in scan.failed.items()]),
        *messages("note:", [f"{source}: {warning}" for source, warning in scan.warnings]),
        *(message(f"{name}:", note.removeprefix("* "), "dim") for name, note in notes.items()),
        *(message("check did not pass:", check) for check in summary.failed_checks),
    ]
    if summary.evaluations:
        title = f"{summary.n_queries} queries, {summary.evaluations[-1].queries}"
        parts.append(measures_table(title, measures_of(summary), ("ndcg@5", "mrr")))
    if page := summary.steps.get("report", {}).get("page"):
        parts.append(message("report:", str(page), "dim"))
    return Group(*parts)


def runtime_label(runtime: Mapping[str, Any]) -> str:
    """What computes an embedder's vectors, and how far it agrees with torch where it is not torch."""
    backend = str(runtime.get("backend", "not known"))
    if "rank_correlation" not in runtime:
        return backend
    return (
        f"{backend}; against torch: rank correlation {runtime['rank_correlation']:.4f}, scores differ by at most "
        f"{runtime['max_difference']:.3f} ({runtime['processor']})"
    )


def _restructuring_counts(summary: RefreshSummary) -> dict[str, str]:
    """What restructuring did and where it stands; nothing in offline mode."""
    step = summary.steps["restructuring"]
    if "strategy" not in step:
        return {}
    shares = {kind: step.get(f"{kind} share", 0.0) for kind in VERDICTS}
    counts = {
        "restructured": f"{step['restructured']:,} documents by {step['strategy']}",
        "outcomes": ", ".join(
            f"{round(share * step['sections']):,} {kind}" for kind, share in shares.items() if share
        ),
        "words saved": f"{step['words saved']:.1%}",
    }
    if step["calls"] or step["cache hits"]:
        tokens = step["prompt tokens"] + step["completion tokens"]
        cost = next((f", {value:,.4f} {name[5:]}" for name, value in step.items() if name[:5] == "cost "), "")
        counts["language model"] = (
            f"{step['calls']:,} calls, {step['cache hits']:,} from the cache, {tokens:,} tokens{cost}"
        )
    if step["put off documents"]:
        counts["put off"] = f"{step['put off documents']:,} documents, tried again by the next refresh"
        counts["because"] = str(step["put off because"])
    if note := summary.steps["restructured_corpus"].get("note"):
        counts["not published"] = str(note)
    return counts


def demo_view(summary: RefreshSummary, question: str, hits: Sequence[SectionHit], ui_command: str) -> Group:
    """What the demo built and found, and how to go on."""
    counts: dict[str, Any] = {name: summary.published[name] for name in ("documents", "sections", "vectors")}
    failed = {"failed": len(summary.scan.failed)} if summary.scan.failed else {}
    restructuring = _restructuring_counts(summary)
    parts = [counts_table("\nRestructured", restructuring)] if restructuring else []
    title = f"\n{summary.n_queries} known-item queries: one-line summaries that are not in the indexed text"
    return Group(
        counts_table("\nIndexed", {**counts, **failed}),
        *parts,
        measures_table(title, measures_of(summary), ("ndcg@5", "mrr")),
        Text(f"\n{question}", style="bold"),
        hits_view(hits),
        *_report_line(summary),
        Text.assemble("Look at it in the Dagster UI:  ", (printable(ui_command), "bold")),
        Text.assemble(
            "Index a folder of your own:    ",
            ("prime refresh --corpus DIR", "bold"),
            ", then ",
            ('prime search "…"', "bold"),
        ),
    )


def _report_line(summary: RefreshSummary) -> list[Text]:
    page = summary.steps.get("report", {}).get("page")
    return [Text.assemble("Read the report in a browser:  ", (printable(str(page)), "bold"))] if page else []


def measures_of(summary: RefreshSummary) -> dict[str, dict[str, Interval]]:
    """Measures by system with their intervals; empty where nothing was evaluated.

    Systems of the full track carry its name and how sections were rewritten, so that an extract is never taken for the
    paper's semantic restructuring.
    """
    return {
        name if report.variant == "offline" else f"{name}, full ({report.restructuring})": dict(
            measured.intervals
        )
        for report in summary.evaluations
        for name, measured in report.systems.items()
    }
