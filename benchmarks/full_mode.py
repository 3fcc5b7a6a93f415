"""Which texts full mode should read, so that nothing is lost against the raw text; prints one Markdown table a home.

    python benchmarks/full_mode.py HOME [HOME ...]

A home is one that was refreshed with ``--mode full`` and queries. Of every combination of what BM25 reads, what vectors are
made of and what the scorer reads, NDCG@5 is measured over the same documents; the last rows choose among all of them by
two-fold cross-fitting over the documents that queries are asked of, so that no query is reported under a choice that it had
a say in. Differences are to the offline mode.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import get_args

from captured import difference, shown

from prime_pipeline.evaluation.cross_fit import cross_fit
from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.evaluation.statistics import PerQuery
from prime_pipeline.indexes.builds import LEXICAL_FILE
from prime_pipeline.indexes.lexical import LexicalIndex, LexicalSource, build_lexical_index
from prime_pipeline.indexes.vectors import VectorIndex
from prime_pipeline.retrieval.options import RetrievalOptions, SectionText
from prime_pipeline.retrieval.retriever import as_run
from prime_pipeline.retrieval.scorers import LateInteractionScorer
from prime_pipeline.retrieval.stage1 import find_candidates
from prime_pipeline.retrieval.stage2 import best_by_document, rerank_sections
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.seal import read_seal
from prime_pipeline.workspace import Workspace

SOURCES: tuple[LexicalSource, ...] = get_args(LexicalSource)
TEXTS: tuple[SectionText, ...] = get_args(SectionText)
METADATA = {"raw": "offline", "restructured": "full"}
"""What metadata is made of, and the variant whose vectors are of it."""
OFFLINE = "offline mode"


class Comparison:
    """Rankings of a home's queries from any index, vectors and text."""

    def __init__(self, workspace: Workspace) -> None:
        query_set = workspace.query_set
        if query_set is None:
            raise SystemExit("the home has no queries: prime refresh --queries")
        self.query_set = query_set
        self._workspace = workspace

    def live(self, variant: str) -> Path:
        """The folder of a variant's build."""
        found = self._workspace.builds(variant).live_path
        if found is None:
            raise SystemExit(f"{variant} is not published: prime refresh --mode full")
        return found

    def ndcg(self, lexical: LexicalIndex, vectors: VectorIndex, text: SectionText) -> PerQuery:
        """NDCG@5 by query, after the best 48 sections were scored."""
        options, embedder = RetrievalOptions(section_text=text), self._workspace.embedder
        ranked = {}
        with self._workspace.retriever("offline") as retriever:
            scorer = LateInteractionScorer(
                embedder, self._workspace.token_vectors, retriever.idf, options.windows_per_section
            )
            for query in self.query_set.queries:
                found = find_candidates(query.text, lexical, vectors, embedder, options)
                sections = rerank_sections(query.text, lexical, found, scorer, options)
                best = [doc_id for doc_id, _ in (*best_by_document(sections), *found.ranking)]
                ranked[query.query_id] = tuple(dict.fromkeys(best))
        return evaluate(as_run(ranked), self.query_set.qrels, ["ndcg@5"]).per_query["ndcg@5"]

    def candidates(self, folder: Path) -> Iterator[tuple[str, PerQuery]]:
        """The offline mode, then every combination."""
        raw = LexicalIndex(self.live("offline") / LEXICAL_FILE)
        yield OFFLINE, self.ndcg(raw, VectorIndex(self.live("offline")), "raw")
        documents = self._workspace.restructured.documents
        sealed = read_seal(self._workspace.restructured_seal).documents
        for source in SOURCES:
            path = folder / f"{source}.sqlite"
            build_lexical_index(path, sealed, documents.load, source=source)
            lexical = LexicalIndex(path)
            for metadata, text in product(METADATA, TEXTS):
                vectors = VectorIndex(self.live(METADATA[metadata]))
                yield (
                    f"BM25 {source}, metadata {metadata}, scorer {text}",
                    self.ndcg(lexical, vectors, text),
                )
            lexical.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("homes", nargs="+", type=Path)
    for home in parser.parse_args().homes:
        workspace = Workspace(load_settings({"home": home}))
        comparison = Comparison(workspace)
        known = comparison.query_set.clusters or {}
        print(f"\n{home.name}\n\n| | NDCG@5 | difference to offline |\n| --- | ---: | ---: |", flush=True)
        found: dict[str, PerQuery] = {}
        with tempfile.TemporaryDirectory() as folder:
            for name, values in comparison.candidates(Path(folder)):
                found[name] = values
                clusters = {query_id: known.get(query_id, query_id) for query_id in values}
                change = shown(difference(values, found[OFFLINE], clusters))
                print(f"| {name} | {fmean(values.values()):.4f} | {change} |", flush=True)
        offline = found.pop(OFFLINE)
        fitted = cross_fit(found, clusters)
        change = shown(difference(fitted.per_query, offline, clusters))
        print(
            f"| by folds: {' and '.join(fitted.chosen)} | {fmean(fitted.per_query.values()):.4f} | {change} |"
        )
        workspace.close()


if __name__ == "__main__":
    main()
