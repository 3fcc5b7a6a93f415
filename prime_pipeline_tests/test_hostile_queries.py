"""Ten thousand queries that nobody should ask: each is answered, and none is read as anything but words."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document

N_QUERIES = 10_000
PIECES = [
    *(
        '"',
        "'",
        "''",
        "*",
        "^",
        ":",
        "-",
        "+",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "\\",
        "/",
        ";",
        "--",
        "%",
        "_",
        "?",
        "#",
        "@",
    ),
    *(
        "AND",
        "OR",
        "NOT",
        "NEAR",
        "NEAR/3",
        "title:",
        "text:",
        "rowid:",
        "MATCH",
        "NULL",
        "0x1F",
        "1e309",
        "-1",
    ),
    *(
        "DROP TABLE sections;",
        "' OR 1=1 --",
        "UNION SELECT text FROM sections",
        "$(id)",
        "`id`",
        "{{7*7}}",
        "%s%n",
        "<script>",
    ),
    *(
        "../../etc/passwd",
        "\0",
        "\n",
        "\r\n",
        "\t",
        "\ud800",
        "\udfff",
        "\ufeff",
        "\u202e",
        "\u200b",
        "\u0301" * 40,
    ),
    *(
        "ﬁnance",
        "Straße",
        "İ",
        "漢字",
        "안녕",
        "العربية",
        "🧪",
        "👩‍👩‍👧‍👦",
        "C++",
        "H₂O",
        "x" * 300,
        "lantern",
        "vault",
        "words",
    ),
]


def queries(n: int) -> list[str]:
    """Seeded: pieces in a row, pieces glued together, and characters from everywhere."""
    generator = random.Random(0)
    made = []
    for number in range(n):
        pieces = generator.choices(PIECES, k=generator.randint(0, 8))
        if number % 3 == 2:
            pieces = [chr(generator.randrange(0x110000)) for _ in range(generator.randint(1, 30))]
        made.append((" " if number % 2 else "").join(pieces))
    return made


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Retriever:
    bench = Bench(tmp_path_factory.mktemp("home"))
    bench.publish(*(make_document(f"d{i}", f"Vault: lantern words {i}", "Other: more") for i in range(6)))
    return bench.retriever(RetrievalOptions(scorer="none", top_k=3))


def test_ten_thousand_fuzzed_queries_are_answered(retriever: Retriever) -> None:
    n_found = 0
    for query in queries(N_QUERIES):
        hits = retriever.search(query)
        assert len(hits) <= 3
        n_found += bool(hits)
    assert N_QUERIES / 4 < n_found < N_QUERIES
    assert retriever.search("lantern")[0].heading_path == ("Vault",)  # nothing has been dropped


def test_the_scorer_and_explanations_take_them_too(retriever: Retriever) -> None:
    options = RetrievalOptions(scorer="late_interaction", top_k=3)
    for query in queries(100):
        hits = retriever.search(query, options=options)
        explained = retriever.explain(query, options=options)
        assert [explained_hit.hit for explained_hit in explained.hits] == hits


def test_a_query_without_end_is_answered(retriever: Retriever) -> None:
    assert retriever.search("lantern " * 200_000)[0].heading_path == ("Vault",)
    retriever.search(" ".join(f"word{i}" for i in range(50_000)))
    retriever.search("(" * 100_000 + '"' * 100_001)


def test_operators_are_words(retriever: Retriever, tmp_path: Path) -> None:
    plain = [hit.section_id for hit in retriever.search("lantern vault")]
    for query in ('"lantern" AND vault*', "lantern NEAR/3 vault", "title:lantern -vault", "lantern; vault--"):
        assert {hit.section_id for hit in retriever.search(query)} <= {
            f"d{i}#{n}" for i in range(6) for n in (1, 2)
        }
    assert [hit.section_id for hit in retriever.search('"lantern" (vault)')] == plain
