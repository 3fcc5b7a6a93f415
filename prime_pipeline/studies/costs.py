"""What indexing the corpus costs, and what it would cost to embed it section by section, which is the base of ratios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from prime_pipeline.evaluation.cost import (
    PAPER_RERANKING_TOKENS,
    EmbeddedTokens,
    TokenCounter,
    embedded_tokens,
)
from prime_pipeline.records import Document
from prime_pipeline.reports.content import BreakEven, SystemCost
from prime_pipeline.studies.findings import Findings, part

N_RERANKED: Final = 20
"""Sections that pointwise reranking by a language model would read for a query, as in the PRIME paper."""
RERANKING: Final = "pointwise reranking by a language model"
"""The row of what no system here does, and the paper compares with."""
_FLOAT_BYTES: Final = 4
_READ: Final = 5
COST_CONVENTIONS: Final = (
    "Structure-chunks are the sections, heading and text; one vector each.",
    "Embedded tokens are counted twice: those of the texts, and those that the encoder reads within its window.",
    "Index size is that of the lexical index and of the vectors as 32-bit numbers.",
    f"A query's tokens are those of the {_READ} sections that are read, by the encoder's tokenizer.",
    (
        f"Pointwise reranking by a language model would read the first {N_RERANKED} sections of each query, one by one: "
        "their raw texts are counted, and neither question nor instructions. No model is asked for that."
    ),
)


@dataclass(frozen=True, slots=True)
class BuildCost:
    """What is known of one published build.

    Attributes:
        texts: Metadata texts of the documents in question; one vector each.
        lexical_bytes: Size of the lexical index, of the whole corpus.
        section_runs: Query id to the section ids of its best sections; none without queries.
        section_texts: Section id to the text that is read; of the best :data:`N_RERANKED` sections of every query.
        llm_tokens: Read and generated to restructure the corpus; 0 by rules, None for raw text.
        money: What these cost; None if that is not known.
        restructurer: As in a report.
    """

    texts: Sequence[str]
    lexical_bytes: int
    section_runs: Mapping[str, Sequence[str]]
    section_texts: Mapping[str, str]
    llm_tokens: int | None = None
    money: float | None = None
    restructurer: str = ""


def cost_findings(
    documents: Sequence[Document],
    literal_texts: Sequence[str],
    builds: Sequence[BuildCost],
    tokenizer: TokenCounter,
    dimensions: int,
    *,
    is_whole: bool,
) -> Findings:
    """Costs of structure-chunks, of one vector of the full text, of the paper's metadata, and of each build.

    Args:
        documents: The raw documents in question.
        literal_texts: Their metadata as the paper has it.
        builds: What is published; the first one of raw text.
        tokenizer: Of the encoder.
        dimensions: Of a vector.
        is_whole: Whether the documents are the whole corpus; what is known of the whole only (sizes of indexes, tokens and
            money of restructuring) is left out if not.
    """
    lexical_bytes = builds[0].lexical_bytes if builds else 0

    def index_bytes(n_vectors: int, size: int) -> dict[str, float]:
        return {"index_bytes": size + n_vectors * dimensions * _FLOAT_BYTES} if is_whole else {}

    def of_texts(texts: Iterable[str], size: int = lexical_bytes) -> dict[str, float]:
        found = embedded_tokens(texts, tokenizer)
        return {**_amounts(found), **index_bytes(found.n_texts, size)}

    rows = [
        SystemCost("structure-chunks", of_texts(_chunks(documents))),
        SystemCost("full-text", of_texts(document.text for document in documents)),
        SystemCost("prime-offline", of_texts(literal_texts)),
    ]
    for build in builds:
        amounts = of_texts(build.texts, build.lexical_bytes)
        if build.llm_tokens is not None and is_whole:
            amounts["llm_tokens"] = build.llm_tokens
        if build.money is not None and is_whole:
            amounts["money"] = build.money
        if (read := _tokens_read(build, tokenizer, _READ)) is not None:
            amounts["query_read_tokens"] = round(read)
        rows.append(SystemCost("default", amounts, restructurer=build.restructurer))
    reranking = _tokens_read(builds[0], tokenizer, N_RERANKED) if builds else None
    if reranking is not None:
        rows.append(SystemCost(RERANKING, {"query_llm_tokens": round(reranking)}))
    spent = next((build.llm_tokens for build in builds if build.llm_tokens), None)
    per_query = PAPER_RERANKING_TOKENS if reranking is None else float(round(reranking))
    return Findings(
        part(
            costs=tuple(rows),
            break_even=None if spent is None else BreakEven(float(spent), per_query),
            conventions=COST_CONVENTIONS,
        )
    )


def _chunks(documents: Iterable[Document]) -> Iterable[str]:
    return (section.text for document in documents for section in document.content_sections)


def _amounts(found: EmbeddedTokens) -> dict[str, float]:
    return {
        "embedded_tokens_text": found.in_texts,
        "embedded_tokens_read": found.read,
        "vectors": found.n_texts,
    }


def _tokens_read(build: BuildCost, tokenizer: TokenCounter, n_sections: int) -> float | None:
    """Mean over queries of the tokens of the best sections."""
    best = {query_id: list(ids[:n_sections]) for query_id, ids in build.section_runs.items()}
    needed = sorted({found for ids in best.values() for found in ids})
    if not needed or any(found not in build.section_texts for found in needed):
        return None
    counts = dict(zip(needed, tokenizer.count([build.section_texts[n] for n in needed]), strict=True))
    return fmean(sum(counts[found] for found in ids) for ids in best.values())
