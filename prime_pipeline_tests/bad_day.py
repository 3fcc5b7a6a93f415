"""A small home that moves from one state to the next: everything that a refresh writes, without Dagster."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from contextlib import closing, nullcontext, suppress
from pathlib import Path

from prime_pipeline.errors import DocumentChanged
from prime_pipeline.indexes.builds import LEXICAL_FILE
from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.llm.chat import Reply, Usage
from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.records import Document, Spending
from prime_pipeline.refresh.warehouse import refresh_warehouse
from prime_pipeline.storage.documents import document_version
from prime_pipeline.storage.ledger import Ledger, LedgerLine, LedgerRun
from prime_pipeline.storage.sqlite import fault_of
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import HashingEmbedder


def corpus(state: int) -> dict[str, Document]:
    """The documents of a state: of ten one changes with each, and one gives way to another."""
    documents = [
        make_document(f"d{i}", f"Topic: stable words {i}", title=f"Title {i}") for i in range(10) if i != 3
    ]
    documents.append(make_document("d3", f"Topic: words of state{state}", title="Title 3"))
    documents.append(make_document(f"extra{state}", f"Topic: only in state{state}", title="Extra"))
    return {document.doc_id: document for document in documents}


def bench_at(root: Path) -> Bench:
    """The home, opened as by a new process."""
    return Bench(root, HashingEmbedder(dimensions=16))


def close(bench: Bench) -> None:
    """Let go of it."""
    bench.store.close()
    bench.embeddings.close()
    bench.token_vectors.close()


def advance(root: Path, state: int) -> None:
    """Bring a home to a state, whatever it is in."""
    bench, wanted = bench_at(root), corpus(state)
    catalogue = bench.store.catalogue()
    bench.put(
        document
        for document in wanted.values()
        if document.doc_id not in catalogue
        or catalogue[document.doc_id].version != document_version(document)
        or catalogue[document.doc_id].source_fingerprint is None  # its file was found damaged
    )
    bench.store.remove(catalogue.keys() - wanted.keys())
    steps = bench.steps()
    with bench.home.index_lock("offline"):
        steps.synthesise_metadata()
        steps.publish(keep=1)
    _spend(bench, state)
    close(bench)


def publish_warehouse(root: Path) -> None:
    """Tell what is served."""
    bench = bench_at(root)
    refresh_warehouse(bench.home.warehouse, bench.live(), bench.store.catalogue())
    close(bench)


def _spend(bench: Bench, state: int) -> None:
    run = f"run {state}"
    with closing(ReplyCache(bench.home.llm_cache)) as replies, closing(Ledger(bench.home.ledger)) as ledger:
        replies.note_origin(run, ["d3"])
        replies.keep_reply(run, "m", Reply(f"answer {state}", "stop", Usage(1, 1, estimated=False), 0.1))
        ledger.open_run(LedgerRun(run, "2026-01-01T00:00:00+00:00", "s", "llm", None, None, None))
        ledger.add(LedgerLine(run, "d3", Spending(calls=1), 0.5))


def state_of(root: Path, possible: tuple[int, ...], begun: AbstractSet[int]) -> int:
    """Which of the possible states is served. Everything that is there is read.

    Args:
        root: The home.
        possible: One of these must be served, as a whole.
        begun: Stored documents must be of these. With several, one of them may have a file that is newer than its entry in
            the catalogue, which says so when it is loaded: the next refresh stores it again.

    Raises:
        AssertionError: Something is between two states.
        PrimeError: Something cannot be read.
    """
    bench = bench_at(root)
    versions = {
        state: {doc_id: document_version(document) for doc_id, document in corpus(state).items()}
        for state in begun
    }
    live = bench.builds.served_id
    manifest = bench.builds.verify(live)
    with closing(LexicalIndex(bench.live() / LEXICAL_FILE)) as lexical:
        served = lexical.stored_versions()
    (state,) = [state for state in possible if versions[state] == served]
    with bench.retriever() as retriever:
        hits = retriever.search(f"only in state{state}")
    assert hits[0].doc_id == f"extra{state}"
    assert manifest.n_documents == len(served)
    for entry in bench.store.catalogue().values():
        assert entry.version in {known.get(entry.doc_id) for known in versions.values()}
        with suppress(DocumentChanged) if len(begun) > 1 else nullcontext():
            bench.store.load(entry.doc_id, entry.version or "")
    close(bench)
    return state


def check_databases(root: Path) -> None:
    """No database of a home is damaged; parts of a build that was not finished do not count."""
    for path in root.rglob("*.sqlite"):
        if "staging" not in path.parts:
            assert fault_of(path) is None, path
