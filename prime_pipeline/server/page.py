"""The page to try queries on: a form and its answer, raw beside restructured text. One file of HTML without scripts.

All that it shows of documents and questions is escaped by the template; it loads nothing, and its policy forbids it to.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from prime_pipeline.pages import csp_hash, environment
from prime_pipeline.records import SectionHit
from prime_pipeline.restructuring.diff import Piece, diff
from prime_pipeline.server.answers import (
    MAX_PATH_CHARACTERS,
    MAX_QUERY_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TOP_K,
    ExplainAnswer,
    ExplainedHit,
)
from prime_pipeline.server.problems import Problem

FIELDS = ("query", "top_k", "path", "tag", "since", "until")
"""Of the form, as they are called in an address."""


def query_page(
    fields: Mapping[str, str], answer: ExplainAnswer | None = None, problem: Problem | None = None
) -> str:
    """The page.

    Args:
        fields: What was entered, by name; the form shows it again. Others than :data:`FIELDS` are ignored.
        answer: What was found; None if nothing was asked.
        problem: Why there is no answer.
    """
    return (
        environment(__package__ or "")
        .get_template("query.html")
        .render(
            style=_style(),
            policy=_policy(),
            fields={name: fields.get(name, "") for name in FIELDS},
            limits={
                "query": MAX_QUERY_CHARACTERS,
                "top_k": MAX_TOP_K,
                "path": MAX_PATH_CHARACTERS,
                "tag": MAX_TAG_CHARACTERS,
            },
            answer=answer,
            problem=problem,
            sides=_sides,
            place=_place,
            arms=_arms,
            signals=_signals,
        )
    )


def page_policy() -> str:
    """The content security policy of the page as a header."""
    return f"{_policy()}; frame-ancestors 'none'"


@cache
def _style() -> str:
    """That of the reports, and what this page adds."""
    own = environment(__package__ or "").get_template("query.css").render()
    return environment("prime_pipeline.reports").get_template("report.css").render() + own


@cache
def _policy() -> str:
    return f"default-src 'none'; style-src '{csp_hash(_style())}'; base-uri 'none'; form-action 'self'"


def _sides(hit: SectionHit) -> tuple[list[Piece], list[Piece]] | None:
    """The pieces of raw and restructured text; None where the raw text stands."""
    return None if hit.restructured is None else diff(hit.text, hit.restructured)


def _place(hit: SectionHit) -> str:
    """File and lines."""
    return hit.source_path if hit.start_line is None else f"{hit.source_path}:{hit.start_line}-{hit.end_line}"


def _arms(found: ExplainedHit) -> str:
    """The document's rank in every arm."""
    places = (f"{_name(arm)} {f'#{place.rank}' if place else '–'}" for arm, place in found.arms.items())
    return ", ".join(places)


def _signals(found: ExplainedHit) -> str:
    return ", ".join(f"{_name(signal)} {value:.3f}" for signal, value in found.hit.signals.items())


def _name(of: str) -> str:
    return of.replace("_", " ")
