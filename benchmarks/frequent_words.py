"""What leaving frequent words out of BM25 costs in quality, and saves in time; prints one Markdown table a home.

    python benchmarks/frequent_words.py HOME [HOME ...]

A home is one that was refreshed with queries. Words of a query that more than a share of the rows holds are left out
(``retrieval.max_word_share``); differences are to leaving none out. The ratio is that of the time that both lexical arms take
together, rounds alternating.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

from captured import difference, shown

from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.evaluation.statistics import PerQuery
from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.records import Query
from prime_pipeline.retrieval.retriever import Retriever, as_run
from prime_pipeline.retrieval.systems import System, system_options
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace

SHARES = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05)
SYSTEMS: tuple[System, ...] = ("bm25", "stage1", "default")
ROUNDS = 5


def values_of(workspace: Workspace, retriever: Retriever, system: System, share: float) -> PerQuery:
    """NDCG@5 by query."""
    query_set = workspace.query_set
    if query_set is None:
        raise SystemExit("the home has no queries: prime refresh --queries")
    options = replace(system_options(system, retriever.options), max_word_share=share)
    ranked = {q.query_id: retriever.rank(q.text, options).documents for q in query_set.queries}
    return evaluate(as_run(ranked), query_set.qrels, ["ndcg@5"]).per_query["ndcg@5"]


def seconds(lexical: LexicalIndex, queries: list[Query]) -> Mapping[float, float]:
    """Of both lexical arms for all queries, by share; the median of some rounds, after one that fills memories."""
    rounds: dict[float, list[float]] = {share: [] for share in SHARES}
    for _ in range(ROUNDS + 1):
        for share in SHARES:
            started = time.perf_counter()
            for query in queries:
                lexical.search_documents(query.text, 100, share)
                lexical.score_sections(query.text, share)
            rounds[share].append(time.perf_counter() - started)
    return {share: median(found[1:]) for share, found in rounds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("homes", nargs="+", type=Path)
    for home in parser.parse_args().homes:
        workspace = Workspace(load_settings({"home": home}))
        with workspace.retriever("offline") as retriever:
            query_set = workspace.query_set
            timed = seconds(retriever.lexical, list(query_set.queries) if query_set else [])
            print(f"\n{home.name}\n\n| most rows | {' | '.join(SYSTEMS)} | time, ratio |")
            print("| ---: |" + " ---: |" * (len(SYSTEMS) + 1))
            everything = {system: values_of(workspace, retriever, system, 1.0) for system in SYSTEMS}
            known = (query_set.clusters if query_set else None) or {}
            for share in SHARES:
                cells = []
                for system in SYSTEMS:
                    values = values_of(workspace, retriever, system, share)
                    clusters = {query_id: known.get(query_id, query_id) for query_id in values}
                    found = difference(values, everything[system], clusters)
                    cells.append(f"{fmean(values.values()):.4f} ({shown(found)})")
                print(f"| {share:.0%} | {' | '.join(cells)} | {timed[share] / timed[1.0]:.2f} |", flush=True)
        workspace.close()


if __name__ == "__main__":
    main()
