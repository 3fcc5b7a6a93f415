"""How many sections have to be scored, and whether stopping early pays; prints one Markdown table a home.

    python benchmarks/cascade.py HOME [HOME ...]

A home is one that was refreshed with queries. Sections are scored in the cheap order (section BM25). Rows with a budget score
the first so many of them; rows with an exit score eight at a time and stop when the next one, were its own score so many
standard deviations above the mean of those scored so far, would not be among the best five. Differences are to scoring every
section of the 30 candidates. Seconds are of the scorer alone, for every tenth query, with token vectors in memory; the ratio
is to the first row, and the ideal one is that of the numbers of sections.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import numpy as np
from captured import Captured, CapturedQuery, capture, difference, shown
from numpy.typing import NDArray

from prime_pipeline.evaluation.statistics import PerQuery
from prime_pipeline.retrieval.scorers import LateInteractionScorer
from prime_pipeline.retrieval.stage2 import z_normalised
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace

BUDGETS = (96, 48, 32, 24, 16, 8)
EXITS = (3.0, 2.5, 2.0, 1.5, 1.0)
STEP = 8
TOP = 5
PLAIN = (1.0, 1.0, 1.0)
_EVERY = 10

Positions = NDArray[np.int64]


def measured(captured: Captured, chosen: dict[str, Positions]) -> PerQuery:
    """NDCG@5 when of each query just these sections are scored."""
    return captured.ndcg(
        {q.query_id: captured.reranked(q, q.fused(PLAIN), chosen[q.query_id]) for q in captured.queries}
    )


def until_exit(query: CapturedQuery, ordered: Positions, deviations: float) -> Positions:
    """The sections that are scored before the next one is thought to be out of reach."""
    lexical = z_normalised(query.lexical[ordered])
    for n_scored in range(STEP, len(ordered), STEP):
        own = z_normalised(query.own[ordered[:n_scored]])
        best = np.sort(lexical[:n_scored] + own)
        if lexical[n_scored] + deviations <= best[-TOP]:
            return ordered[:n_scored]
    return ordered


def choices(captured: Captured) -> Iterator[tuple[str, dict[str, Positions]]]:
    """Names of the ways, and the sections that each scores by query."""
    everything = {q.query_id: captured.cheap_order(q, q.fused(PLAIN)) for q in captured.queries}
    yield "all", everything
    for budget in BUDGETS:
        yield f"budget {budget}", {query_id: found[:budget] for query_id, found in everything.items()}
    for deviations in EXITS:
        yield (
            f"budget 48, exit at {deviations}",
            {
                query.query_id: until_exit(query, everything[query.query_id][:48], deviations)
                for query in captured.queries
            },
        )


def seconds(home: Path, captured: Captured, chosen: dict[str, Positions]) -> float:
    """Of the scorer, for some of the queries, once all vectors are in memory: the best of three rounds."""
    workspace = Workspace(load_settings({"home": home, "token_vector_memory_bytes": 1 << 33}))
    rounds = []
    with workspace.retriever("offline") as retriever:
        kept = retriever.options.windows_per_section
        scorer = LateInteractionScorer(workspace.embedder, workspace.token_vectors, retriever.idf, kept)
        queries = captured.queries[::_EVERY]
        sections = {
            q.query_id: [retriever.lexical.stored_section(int(at)) for at in chosen[q.query_id]]
            for q in queries
        }
        for number in range(4):
            started = time.perf_counter()
            for query in queries:
                scorer.score(query.text, sections[query.query_id])
            if number:  # the first round fills the memory
                rounds.append(time.perf_counter() - started)
    workspace.close()
    return min(rounds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("homes", nargs="+", type=Path)
    for home in parser.parse_args().homes:
        captured = capture(home)
        print(f"\n{home.name}\n\n| | sections | ideal ratio | ratio | of ideal | NDCG@5 | difference |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        base: PerQuery = {}
        base_seconds = base_sections = 0.0
        for name, chosen in choices(captured):
            values = measured(captured, chosen)
            n_sections = fmean(len(found) for found in chosen.values())
            base = base or values
            base_sections = base_sections or n_sections
            ratio = of_ideal = "-"
            ideal = base_sections / n_sections
            if "exit" not in name:
                took = seconds(home, captured, chosen)
                base_seconds = base_seconds or took
                ratio, of_ideal = f"{base_seconds / took:.2f}", f"{base_seconds / took / ideal:.2f}"
            clusters = {query_id: captured.clusters[query_id] for query_id in values}
            print(
                f"| {name} | {n_sections:.1f} | {ideal:.2f} | {ratio} | {of_ideal} | {fmean(values.values()):.4f} "
                f"| {shown(difference(values, base, clusters))} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
