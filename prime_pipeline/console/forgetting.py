"""What forgetting documents shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group

from prime_pipeline.console.parts import counts_table, message

if TYPE_CHECKING:
    from prime_pipeline.defs.forgetting import ForgettingReport
    from prime_pipeline.reporting.forgetting import Kept


def kept_view(kept: Kept) -> Group:
    """What there is of documents that are going to be forgotten."""
    return Group(
        counts_table("Would be forgotten", _kept_counts(kept)),
        message("nothing was removed:", "run it again with --yes", "bold"),
    )


def forgetting_view(report: ForgettingReport) -> Group:
    """What went, and what is left to do."""
    served = {"served": report.refresh.published.get("served", "none")}
    parts: list[Any] = [
        counts_table("Forgotten", {**_kept_counts(report.kept), **served}),
        counts_table("\nRemoved", {name: n for name, n in report.removed.items() if n}),
    ]
    parts += [
        message(f"{variant}:", "could not be published without them, and is not served: prime refresh")
        for variant in report.not_published
    ]
    if n_replies := report.replies_without_origin:
        parts.append(
            message(
                "left:",
                f"{n_replies:,} cached replies from before it was noted what they are about: delete cache/llm.sqlite if "
                "they must go, too, which means paying for them again",
            )
        )
    if report.refresh.is_partial:
        parts.append(message("the refresh was partial:", "run prime refresh for the details"))
    return Group(*parts)


def _kept_counts(kept: Kept) -> dict[str, Any]:
    return {
        "documents": ", ".join(kept.doc_ids),
        "parsed texts": kept.parsed,
        "restructured texts": kept.restructured,
        "pages": kept.pages,
        "builds that hold one": ", ".join(f"{v} {b}" for v, ids in kept.builds.items() for b in ids)
        or "none",
    }
