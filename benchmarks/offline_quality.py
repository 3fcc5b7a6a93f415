"""NDCG@5 of four systems on real corpora, in the embedded profile; prints one Markdown table.

    PRIME_TEST_DATA=DIR python benchmarks/offline_quality.py [qasper-mini] [cranfield] [installed]

Every corpus is scanned, indexed and queried as `prime refresh` does it, in a temporary home.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.corpus.source import INSTALLED
from prime_pipeline.datasets.queries import load_query_set
from prime_pipeline.refresh.evaluation import EvaluationReport, evaluate_build
from prime_pipeline.retrieval.systems import SYSTEMS
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline.workspace import Workspace


def corpora() -> dict[str, str]:
    data = Path(os.environ.get("PRIME_TEST_DATA", ""))
    return {
        "qasper-mini": str(data / "qasper-mini" / "qasper-mini.json"),
        "cranfield": str(data / "cranfield"),
        "installed": INSTALLED,
    }


def evaluated(location: str, home: Path) -> tuple[EvaluationReport, int, int]:
    """(report, documents, sections) of one corpus."""
    workspace = Workspace(load_settings({"home": home, "corpus": location, "queries": location}))
    workspace.home.prepare()
    scan(open_corpus(location), workspace.store)
    seal_corpus(workspace.store, workspace.home.seal("raw"), location)
    workspace.steps("offline").publish(keep=1)

    with workspace.retriever() as retriever:
        manifest = retriever.manifest
        report = evaluate_build(
            retriever,
            load_query_set(location),
            SYSTEMS,
            workspace.paper_literal_vectors,
            workspace.home,
        )
    workspace.close()
    return report, manifest.n_documents, manifest.n_sections


def main() -> None:
    known = corpora()
    print("| corpus | documents = vectors | sections | queries | " + " | ".join(SYSTEMS) + " | seconds |")
    print("| --- | ---: | ---: | ---: |" + " ---: |" * (len(SYSTEMS) + 1))
    for name in sys.argv[1:] or known:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as home:
            report, n_documents, n_sections = evaluated(known[name], Path(home))
        values = " | ".join(f"{report.systems[system].means['ndcg@5']:.3f}" for system in SYSTEMS)
        seconds = time.monotonic() - started
        print(
            f"| {name} | {n_documents:,} | {n_sections:,} | {report.n_queries} | {values} | {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
