"""Whether the corpus profile predicts what is then measured, on six corpora; prints Markdown tables.

    PRIME_TEST_DATA=DIR python benchmarks/corpus_profiles.py --home DIR [corpus ...]

Each corpus is scanned and indexed as `prime refresh` does it, in a home of its own below ``--home``, where embeddings stay
for the next time. Then NDCG@5 is measured of document BM25, of one vector per document (of the metadata as the PRIME paper
has it, of this project's metadata, of the full text up to the encoder's window), and of BM25 fused with each.

The thresholds of the rules were fixed before ``rfcs`` and ``installed`` were looked at; the other four had been seen. The two
columns on agreement compare metadata vectors with full-text vectors: of the paper's text (title, terms, headings), and of the
text that the offline mode indexes, which opens with the document's lead. A regime is the paper's claim about the former,
a recommendation is about the latter. Known-item queries of the two kinds favor different representations, so the rows by kind
belong to the pooled one; few RFCs have headings of their own, so theirs are mostly sentence queries.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.corpus.source import INSTALLED, SourceEntry
from prime_pipeline.datasets.known_items import KINDS, known_item_queries
from prime_pipeline.datasets.queries import QuerySet, load_query_set
from prime_pipeline.evaluation.corpus_profile import CorpusProfile, profile_corpus
from prime_pipeline.evaluation.corpus_properties import full_text
from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.evaluation.statistics import PairedDifference, paired_differences
from prime_pipeline.indexes.embedding import embed_texts
from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.indexes.vectors import ExactVectors
from prime_pipeline.metadata.synthesis import synthesise
from prime_pipeline.records import Document, DocumentMetadata, Run
from prime_pipeline.retrieval.fusion import reciprocal_rank_fusion
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.seal import read_seal, seal_corpus
from prime_pipeline.workspace import Workspace

DEPTH = 100
WITHOUT_JUDGEMENTS = ("pony", "rfcs")
CORPORA = ("qasper-mini", "qasper-mini-flat", "cranfield", "pony", "rfcs", "installed")


def location(name: str, home: Path) -> str:
    data = Path(os.environ.get("PRIME_TEST_DATA", ""))
    if name == "qasper-mini-flat":
        return without_headings(location("qasper-mini", home), home / name / "corpus.jsonl")
    return {
        "qasper-mini": str(data / "qasper-mini" / "qasper-mini.json"),
        "cranfield": str(data / "cranfield"),
        "pony": str(data / "markdown" / "pony-tutorial"),
        "rfcs": str(data / "markdown" / "rust-rfcs"),
        "installed": INSTALLED,
    }[name]


def without_headings(source: str, target: Path) -> str:
    """The same documents with all text in one section."""
    entries = open_corpus(source).entries()
    documents = [entry.parse() for entry in entries if isinstance(entry, SourceEntry)]
    records = (
        {"_id": d.doc_id, "title": d.own_title, "text": "\n\n".join(s.body for s in d.sections)}
        for d in documents
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(target)


def queries_of(name: str, corpus: str, documents: Sequence[Document]) -> QuerySet:
    if name in WITHOUT_JUDGEMENTS:
        return known_item_queries(documents, 400, name=name).query_set
    return load_query_set(location("qasper-mini", Path()) if name == "qasper-mini-flat" else corpus)


@dataclass(frozen=True)
class Outcome:
    name: str
    profile: CorpusProfile
    queries: QuerySet
    per_query: Mapping[str, Mapping[str, float]]


def outcome(name: str, root: Path) -> Outcome:
    home = root / name
    corpus = location(name, root)
    workspace = Workspace(load_settings({"home": home / "home", "corpus": corpus}))
    workspace.home.prepare()
    scan(open_corpus(corpus), workspace.store)
    seal_corpus(workspace.store, workspace.home.seal("raw"), corpus)
    workspace.steps("offline").publish(keep=1)
    sealed = read_seal(workspace.home.seal("raw")).documents
    documents = sorted(workspace.store.load_all(sealed), key=lambda document: document.doc_id)
    queries = queries_of(name, corpus, documents)
    tokenizer = workspace.embedder.tokenizer
    metadata = synthesise(documents, workspace.settings.metadata.options(), tokenizer).metadata
    vectors = document_vectors(workspace, documents, metadata)
    profile = profile_corpus(
        documents,
        metadata,
        tokenizer,
        queries=() if name in WITHOUT_JUDGEMENTS else queries.queries,  # made from the text, they show no gap
        qrels=queries.qrels,
        vectors=(vectors["metadata"].vectors, vectors["full text"].vectors),
    )
    with workspace.retriever() as retriever:
        runs = ranked(queries, retriever.lexical, vectors, workspace)
    workspace.close()
    per_query = {
        system: evaluate(run, queries.qrels, ["ndcg@5"]).per_query["ndcg@5"] for system, run in runs.items()
    }
    return Outcome(name, profile, queries, per_query)


def document_vectors(
    workspace: Workspace, documents: Sequence[Document], metadata: Sequence[DocumentMetadata]
) -> dict[str, ExactVectors]:
    """One vector per document and representation, documents in order of id."""
    texts = {
        "metadata + lead": [item.text for item in metadata],
        "full text": workspace.embedder.tokenizer.fit([full_text(document) for document in documents]),
    }
    ids = [document.doc_id for document in documents]
    made = {
        name: ExactVectors(ids, embed_texts(row, workspace.embedder, workspace.embeddings)[0])
        for name, row in texts.items()
    }
    return {"metadata": workspace.paper_literal_vectors(), **made}


def ranked(
    queries: QuerySet, lexical: LexicalIndex, vectors: Mapping[str, ExactVectors], workspace: Workspace
) -> dict[str, Run]:
    runs: dict[str, dict[str, dict[str, float]]] = {}
    for query in queries.queries:
        bm25 = [doc_id for doc_id, _ in lexical.search_documents(query.text, DEPTH)]
        vector = workspace.embedder.encode_query(query.text)
        rankings = {"BM25": bm25}
        for name, searched in vectors.items():
            dense = [doc_id for doc_id, _ in searched.search(vector, DEPTH)]
            rankings[name] = dense
            rankings[f"BM25 + {name}"] = [doc_id for doc_id, _ in reciprocal_rank_fusion([bm25, dense])]
        for name, ranking in rankings.items():
            scores = {doc_id: 1 / rank for rank, doc_id in enumerate(ranking, 1)}
            runs.setdefault(name, {})[query.query_id] = scores
    return dict(runs)


SYSTEMS = ("BM25", "metadata", "metadata + lead", "full text")
PAIRS = (
    ("metadata", "full text"),
    ("metadata + lead", "full text"),
    ("BM25 + metadata", "BM25 + full text"),
    ("BM25 + metadata + lead", "BM25 + full text"),
    ("BM25 + metadata", "BM25"),
)
NO_GAIN = 0.01


def differences(found: Outcome) -> list[PairedDifference]:
    """Of :data:`PAIRS`; queries on one known document are resampled together."""
    clusters = None
    if found.queries.known_item:
        clusters = {query_id: min(judged) for query_id, judged in found.queries.qrels.items()}
    return list(paired_differences(found.per_query, PAIRS, clusters).values())


def verdict(profile: CorpusProfile, difference: PairedDifference) -> str:
    """Whether metadata gains over the full text where it should, and does not where it should not.

    "yes" takes an interval above 0, or one that ends below :data:`NO_GAIN`; "no" one on the other side of 0; all else is
    "open": these queries cannot tell.
    """
    if profile.recommended_mode is None:
        return "none made"
    low, high = difference.low, difference.high
    if low is None or high is None:
        return "open"
    if profile.recommended_mode == "full text":
        return "yes" if high < NO_GAIN else "no" if low > 0 else "open"
    return "yes" if low > 0 else "no" if high < 0 else "open"


def cell(difference: PairedDifference) -> str:
    if difference.low is None or difference.high is None:
        return f"{difference.difference:+.3f}"
    return f"{difference.difference:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def rows(found: Outcome) -> Iterator[tuple[str, Outcome]]:
    """The corpus, and each kind of known-item query apart."""
    yield found.name, found
    for kind in sorted(set(found.queries.types.values()) & set(KINDS)):
        ids = [query_id for query_id, its in found.queries.types.items() if its == kind]
        subset = {name: {q: values[q] for q in ids} for name, values in found.per_query.items()}
        yield f"{found.name}, {kind} queries", replace(found, per_query=subset)


def print_tables(outcomes: Sequence[Outcome]) -> None:
    print(
        "\n| corpus | queries | "
        + " | ".join(SYSTEMS)
        + " | "
        + " | ".join(f"BM25 + {s}" for s in SYSTEMS[1:])
        + " |"
    )
    print("| --- |" + " ---: |" * (2 * len(SYSTEMS)))
    for name, found in (row for outcome in outcomes for row in rows(outcome)):
        shown = (*SYSTEMS, *(f"BM25 + {system}" for system in SYSTEMS[1:]))
        means = " | ".join(f"{fmean(found.per_query[system].values()):.3f}" for system in shown)
        print(f"| {name} | {len(found.per_query['BM25'])} | {means} |")
    print(
        "\n| corpus | regime | index | "
        + " | ".join(f"{a} - {b}" for a, b in PAIRS)
        + " | agrees | agrees, with lead |"
    )
    print("| --- | --- | --- |" + " ---: |" * len(PAIRS) + " --- | --- |")
    for name, found in (row for outcome in outcomes for row in rows(outcome)):
        made = differences(found)
        cells = " | ".join(map(cell, made))
        agrees = f"{verdict(found.profile, made[0])} | {verdict(found.profile, made[1])}"
        print(
            f"| {name} | {found.profile.regime} | {found.profile.recommended_mode or '-'} | {cells} | {agrees} |"
        )


def print_profile(found: Outcome) -> None:
    print(f"\n## {found.name}\n\n{found.profile.regime}, alternatives: {found.profile.alternatives}\n")
    print("\n".join(f"* {sentence}" for sentence in found.profile.evidence) + "\n")
    print("\n".join(f"  {name}: {item}" for name, item in found.profile.properties.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    arguments = parser.parse_args()
    outcomes = []
    for name in arguments.corpora:
        outcomes.append(outcome(name, arguments.home))
        print_profile(outcomes[-1])
    print_tables(outcomes)


if __name__ == "__main__":
    main()
