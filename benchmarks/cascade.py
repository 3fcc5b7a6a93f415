"""How many sections have to be scored, and whether stopping early pays; prints one Markdown table a home.

    python benchmarks/cascade.py HOME [HOME ...]

A home is one that was refreshed with queries. Sections are scored in the cheap order (section BM25). Rows with a budget score
the first so many of them; rows with an exit score eight at a time and stop when the next one, were its own score so many
standard deviations above the mean of those scored so far, would not be among the best five. Differences are to scoring every
section of the 30 candidates. Ratios are of the median time of the scorer
alone, for every tenth query, with token vectors in memory, to that of the first row. The ideal one is that of the numbers of
sections; that of the tokens that are compared is less, since the sections that come first are longer than the others.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

import numpy as np
from captured import Captured, CapturedQuery, capture, difference, shown
from numpy.typing import NDArray

from prime_pipeline.evaluation.statistics import PerQuery
from prime_pipeline.indexes.lexical import StoredSection
from prime_pipeline.retrieval.scorers import LateInteractionScorer
from prime_pipeline.retrieval.stage2 import IsOver, z_normalised
from prime_pipeline.retrieval.token_vectors import QuantisedVectors
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace

BUDGETS = (96, 48, 32, 24, 16, 8)
EXITS = (3.0, 2.5, 2.0, 1.5, 1.0)
STEP = 8
TOP = 5
PLAIN = (1.0, 1.0, 1.0)
ALL = "all"
_EVERY = 10
_ROUNDS = 7

Positions = NDArray[np.int64]


class CountingScorer(LateInteractionScorer):
    """Counts the tokens of sections that it compares."""

    n_tokens = 0

    def _vectors(
        self, sections: Sequence[StoredSection], query_idf: Mapping[str, float], is_over: IsOver | None
    ) -> Iterator[tuple[dict[int, Sequence[str]], Mapping[str, QuantisedVectors]]]:
        for windows, vectors in super()._vectors(sections, query_idf, is_over):
            self.n_tokens += sum(len(vectors[window]) for texts in windows.values() for window in texts)
            yield windows, vectors


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
    yield ALL, everything
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


def costs(
    home: Path, captured: Captured, chosen: Mapping[str, dict[str, Positions]]
) -> tuple[dict[str, float], dict[str, int]]:
    """Seconds of the scorer by way, for some of the queries, and the tokens that it compared.

    All vectors are in memory; seconds are medians of rounds that take turns.
    """
    workspace = Workspace(load_settings({"home": home, "token_vector_memory_bytes": 1 << 33}))
    took: dict[str, list[float]] = {name: [] for name in chosen}
    n_tokens: dict[str, int] = {}
    with workspace.retriever("offline") as retriever:
        kept = retriever.options.windows_per_section
        scorer = CountingScorer(workspace.embedder, workspace.token_vectors, retriever.idf, kept)
        queries = captured.queries[::_EVERY]
        sections = {
            (name, q.query_id): [retriever.lexical.stored_section(int(at)) for at in positions[q.query_id]]
            for name, positions in chosen.items()
            for q in queries
        }
        for number in range(_ROUNDS + 1):
            for name, rounds in took.items():
                scorer.n_tokens, started = 0, time.perf_counter()
                for query in queries:
                    scorer.score(query.text, sections[name, query.query_id])
                n_tokens[name] = scorer.n_tokens
                if number:  # the first round fills the memory
                    rounds.append(time.perf_counter() - started)
    workspace.close()
    return {name: median(rounds) for name, rounds in took.items()}, n_tokens


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("homes", nargs="+", type=Path)
    for home in parser.parse_args().homes:
        captured = capture(home)
        chosen = dict(choices(captured))
        timed = {name: found for name, found in chosen.items() if "exit" not in name}
        took, n_tokens = costs(home, captured, timed)
        values = {name: measured(captured, found) for name, found in chosen.items()}
        n_sections = {name: fmean(map(len, found.values())) for name, found in chosen.items()}
        clusters = {query_id: captured.clusters[query_id] for query_id in values[ALL]}
        print(
            f"\n{home.name}\n\n| | sections | ideal ratio | by tokens | ratio | of ideal | by tokens | NDCG@5 | difference |"
        )
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for name, found in values.items():
            ideal = n_sections[ALL] / n_sections[name]
            cells = "| - | - | - | -"
            if name in took:
                ratio, by_tokens = took[ALL] / took[name], n_tokens[ALL] / n_tokens[name]
                cells = f"| {by_tokens:.2f} | {ratio:.2f} | {ratio / ideal:.2f} | {ratio / by_tokens:.2f}"
            print(
                f"| {name} | {n_sections[name]:.1f} | {ideal:.2f} {cells} | {fmean(found.values()):.4f} "
                f"| {shown(difference(found, values[ALL], clusters))} |"
            )


if __name__ == "__main__":
    main()
