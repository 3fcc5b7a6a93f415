"""The lexical index: what is found, in which order, and that a build brought up to date equals a fresh one."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from prime_pipeline.errors import IndexCorrupt, IndexOutdated, StoreUnavailable
from prime_pipeline.indexes.lexical import (
    LexicalBuild,
    LexicalIndex,
    LexicalSource,
    build_lexical_index,
    match_expression,
)
from prime_pipeline.records import Document, DocumentOutcome, SectionOutcome
from prime_pipeline.text.words import lexical_words
from prime_pipeline_tests.documents import make_document, sealed
from prime_pipeline_tests.full_disk import file_size_limit

WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "Straße",
    "café",
    "running",
    "runs",
    "H₂O",
    "x1",
    "naïve",
    "漢字",
    "near",
    "ﬁnance",
]
SPECIAL = "\"'()*:^-+{}[]~\\/|&,.;!?\0\n\t\ud800\udfffé\u0301\u200d漢ஶ्री\N{GRINNING FACE}\ue000½²Aa0 "


def build(path: Path, documents: Sequence[Document], previous: Path | None = None) -> LexicalBuild:
    by_id = {document.doc_id: document for document in documents}
    return build_lexical_index(
        path, sealed(documents).documents, lambda doc_id, _: by_id[doc_id], previous=previous
    )


def opened(path: Path, *documents: Document) -> LexicalIndex:
    build(path, documents)
    return LexicalIndex(path)


def found(index: LexicalIndex, query: str) -> list[str]:
    return [doc_id for doc_id, _ in index.search_documents(query, 100)]


def sections_found(index: LexicalIndex, query: str) -> dict[tuple[str, int], float]:
    result = index.score_sections(query)
    places = [index.stored_section(int(position)) for position in result.positions]
    return {(s.doc_id, s.ordinal): score for s, score in zip(places, result.scores.tolist(), strict=True)}


def random_document(doc_id: str, chance: random.Random) -> Document:
    bodies = [
        " ".join(chance.choices(WORDS, k=chance.randrange(1, 30))) for _ in range(chance.randrange(1, 4))
    ]
    return make_document(doc_id, *bodies, title=chance.choice(WORDS))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> LexicalIndex:
    chance = random.Random(3)
    documents = [random_document(f"d{i:02}", chance) for i in range(30)]
    secret = make_document("s", "the draft is secret", "what is near the rate of a miss in C", title="Other")
    return opened(tmp_path_factory.mktemp("lexical") / "l.sqlite", *documents, secret)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("cafe", "Café"),
        ("strasse", "Straße"),
        ("H2O", "H₂O"),
        ("finance", "ﬁnance"),
        ("CAFÉ", "cafe"),
        ("ﬁnance", "finance"),
    ],
)
def test_spellings_of_one_word_meet(tmp_path: Path, query: str, text: str) -> None:
    index = opened(tmp_path / "l", make_document("other", "nothing"), make_document("a", f"in {text}, there"))
    assert found(index, query) == ["a"]
    assert list(sections_found(index, query)) == [("a", 1)]


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("what's C++'s near-miss rate (NEAR/3)?", "what s C s near miss rate NEAR 3"),
        ("title:secret -draft", "title secret draft"),
        ('"secret', "secret"),
        ("secret)) AND (", "secret AND"),
        ("^secret* + {draft} NOT", "secret draft NOT"),
        ("sec\0ret draft", "sec ret draft"),
        ("\ud800secret", "secret"),
    ],
)
def test_nothing_in_a_query_is_syntax(index: LexicalIndex, query: str, plain: str) -> None:
    assert index.search_documents(query, 50) == index.search_documents(plain, 50) != []
    assert sections_found(index, query) == sections_found(index, plain)


def test_operators_are_words(tmp_path: Path) -> None:
    index = opened(tmp_path / "l", make_document("a", "secret"), make_document("b", "draft"))
    assert found(index, "secret NOT draft") == ["a", "b"]
    assert found(index, "nosuch:secret") == ["a"]


@pytest.mark.parametrize("query", ["", " ", "?!*\"'", "\0", "\ud800"])
def test_a_query_without_words_finds_nothing(index: LexicalIndex, query: str) -> None:
    assert match_expression(lexical_words(query)) == ""
    assert index.search_documents(query, 5) == []
    assert len(index.score_sections(query).positions) == 0


def test_fuzzed_queries_are_never_errors(index: LexicalIndex) -> None:
    chance = random.Random(11)
    for _ in range(2_000):
        pieces = [
            chance.choice([*WORDS, "NEAR", "AND", "OR", "NOT", *SPECIAL, chr(chance.randrange(0x110000))])
            for _ in range(chance.randrange(1, 12))
        ]
        query = "".join(pieces)
        plain = " ".join(lexical_words(query))
        assert index.search_documents(query, 40) == index.search_documents(plain, 40)
        assert all(score > 0 for score in index.score_sections(query).scores)


def test_queries_score_as_in_fts5(tmp_path: Path) -> None:
    chance = random.Random(5)
    pieces = [piece for piece in [*SPECIAL, *WORDS, "श्री"] if piece not in "\ud800\udfff"]
    texts = [" ".join(chance.choices(pieces, k=60)) for _ in range(40)]
    index = opened(tmp_path / "l", *(make_document(f"d{i:02}", text) for i, text in enumerate(texts)))
    with sqlite3.connect(tmp_path / "l") as connection:
        for _ in range(200):
            query = " ".join(
                ["alpha", *chance.choices([*WORDS, "श्री", "ஶ्री", *texts[0].split(), "absent"], k=3)]
            )
            of_fts5 = connection.execute(
                "SELECT doc_id, -bm25(documents_fts) FROM documents_fts JOIN documents ON document_row = documents_fts.rowid"
                " WHERE documents_fts MATCH ? ORDER BY 2 DESC, 1",
                (match_expression(lexical_words(query)),),
            ).fetchall()
            assert index.search_documents(query, 100) == of_fts5


@pytest.mark.parametrize(
    "query",
    ["alpha " * 17_000, "a" * 100_000, "(" * 100_000, " ".join(f"w{i}" for i in range(15_000)) + " alpha"],
)
def test_queries_of_100_000_characters(index: LexicalIndex, query: str) -> None:
    expected = found(index, "alpha") if query.startswith("alpha") else []
    assert found(index, query) == expected


def test_a_title_or_heading_is_found_too(tmp_path: Path) -> None:
    index = opened(tmp_path / "l", make_document("a", "Kettles: water", "Pots: soup", title="Kitchen"))
    assert found(index, "kitchen") == found(index, "kettle") == found(index, "soup") == ["a"]
    assert set(sections_found(index, "kitchen")) == {("a", 1), ("a", 2)}
    assert set(sections_found(index, "pot")) == {("a", 2)}


def test_words_are_told_where_a_query_would_find_them(index: LexicalIndex) -> None:
    words = lexical_words("Running, runs: STRASSE! naive H2O 漢字 near finance secret nowhere")
    n_documents = {word: index.document_frequency(word) for word in words}
    assert n_documents == {word: len(found(index, word)) for word in words}
    assert n_documents["nowhere"] == 0
    assert n_documents["secret"] == 1
    assert n_documents["running"] == n_documents["runs"] > 1
    for position in range(len(index.sections.rows)):
        section = index.stored_section(position)
        place = (section.doc_id, section.ordinal)
        assert index.words_in(words, section) == [w for w in words if place in sections_found(index, w)]


def test_words_of_scripts_that_fts_cuts_finer_are_told_too(tmp_path: Path) -> None:
    index = opened(tmp_path / "l.sqlite", make_document("a", "ஶ்ரீ"), make_document("b", "other"))
    (word,) = lexical_words("ஶ்ரீ")
    section = index.stored_section(0)
    assert (section.doc_id, index.document_frequency(word), index.words_in([word], section)) == (
        "a",
        1,
        [word],
    )


def test_ties_are_in_order_of_id(tmp_path: Path) -> None:
    documents = [make_document(i, "same words", "other words") for i in ("c", "a", "b", "Z")]
    index = opened(tmp_path / "l", *documents, make_document("y", "nothing"))
    assert found(index, "same") == ["Z", "a", "b", "c"]
    assert [doc_id for doc_id, _ in index.search_documents("same", 2)] == ["Z", "a"]
    assert index.score_sections("words").positions.tolist() == list(range(8))


def test_ranking_does_not_depend_on_the_order_of_insertion(tmp_path: Path) -> None:
    chance = random.Random(5)
    documents = [random_document(f"d{i}", chance) for i in range(25)]
    by_id = {document.doc_id: document for document in documents}
    versions = list(sealed(documents).documents)
    for name in ("one", "other"):
        build_lexical_index(tmp_path / name, versions, lambda doc_id, _: by_id[doc_id])
        chance.shuffle(versions)
    one, other = LexicalIndex(tmp_path / "one"), LexicalIndex(tmp_path / "other")
    assert_equal(one, other, chance)


def test_more_than_there_is_and_nothing_at_all(tmp_path: Path) -> None:
    index = opened(tmp_path / "l", make_document("a", "alpha"), make_document("b", "alpha"))
    assert len(index.search_documents("alpha", 1_000)) == 2
    assert index.search_documents("alpha", 0) == []
    empty = opened(tmp_path / "empty")
    assert (empty.doc_ids, empty.search_documents("alpha", 5), list(empty.iterate_sections())) == ([], [], [])
    assert sections_found(empty, "alpha") == {}


def test_a_hit_carries_everything(tmp_path: Path) -> None:
    document = make_document("x/ü#1.md", "One: first\nline", "Two: \N{GRINNING FACE}\n", title="Ünï")
    index = opened(tmp_path / "l", document)
    for stored, section in zip(index.iterate_sections(), document.sections, strict=True):
        assert (stored.doc_id, stored.title, stored.source_path) == ("x/ü#1.md", "Ünï", "x/ü#1.md.md")
        for name in ("ordinal", "heading_path", "text", "body_start", "start_line", "end_line"):
            assert getattr(stored, name) == getattr(section, name)
    assert index.stored_versions() == dict(sealed([document]).documents)


def test_threads_share_one_reader(index: LexicalIndex) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: index.search_documents(WORDS[i % 4], 9), range(64)))
    assert results == [index.search_documents(WORDS[i % 4], 9) for i in range(64)]


def integrity_check(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        for table in ("documents_fts", "sections_fts"):
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def assert_equal(one: LexicalIndex, other: LexicalIndex, chance: random.Random) -> None:
    assert one.doc_ids == other.doc_ids
    assert list(one.iterate_sections()) == list(other.iterate_sections())
    for _ in range(40):
        query = " ".join(chance.choices(WORDS, k=chance.randrange(1, 4)))
        assert one.search_documents(query, 100) == other.search_documents(query, 100)
        assert sections_found(one, query) == sections_found(other, query)


def changed(documents: Mapping[str, Document], chance: random.Random) -> dict[str, Document]:
    """At most a fifth of some 60 documents: some removed, some with other words or another title, some added."""
    after = dict(documents)
    for doc_id in chance.sample(sorted(after), 3):
        del after[doc_id]
    for doc_id in chance.sample(sorted(after), 4):
        after[doc_id] = random_document(doc_id, chance)
    retitled = chance.choice(sorted(after))
    after[retitled] = replace(after[retitled], title=f"Title {chance.random()}")
    for i in chance.sample(range(200), 2):
        after[f"d{i:03}"] = random_document(f"d{i:03}", chance)
    return after


@pytest.mark.parametrize("seed", range(4))
def test_a_build_brought_up_to_date_equals_a_fresh_one(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    documents = {f"d{i:03}": random_document(f"d{i:03}", chance) for i in range(60)}
    build(tmp_path / "0", list(documents.values()))
    for i in range(1, 5):  # each from the one before, so that errors add up
        documents = changed(documents, chance)
        delta = build(tmp_path / f"{i}", list(documents.values()), tmp_path / f"{i - 1}")
        fresh = build(tmp_path / f"fresh{i}", list(documents.values()))
        assert 0 < delta.n_written <= 10 < fresh.n_written == len(documents)
        assert (delta.n_documents, delta.n_sections) == (fresh.n_documents, fresh.n_sections)
        integrity_check(tmp_path / f"{i}")
        assert_equal(LexicalIndex(tmp_path / f"{i}"), LexicalIndex(tmp_path / f"fresh{i}"), chance)


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    chance = random.Random(1)
    documents = [random_document(f"d{i}", chance) for i in range(30)]
    build(tmp_path / "1", documents)
    build(tmp_path / "2", documents[::-1])
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def ten(chance: random.Random) -> list[Document]:
    return [random_document(f"d{i}", chance) for i in range(10)]


@pytest.mark.parametrize(("n_changed", "n_written"), [(0, 0), (2, 2), (3, 10)])
def test_more_than_a_fifth_changed_is_built_afresh(tmp_path: Path, n_changed: int, n_written: int) -> None:
    documents = ten(random.Random(2))
    build(tmp_path / "1", documents)
    for i in range(n_changed):
        documents[i] = make_document(f"d{i}", "something else")
    after = build(tmp_path / "2", documents, tmp_path / "1")
    assert after.n_written == n_written
    assert after.n_removed == (n_changed if n_written < 10 else 0)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 * 2 :] = bytes(len(data) - 4096 * 2)
    path.write_bytes(data)


def _forget_origin(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE origin SET lexical_version = 0")


def _other_unicode(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE origin SET unicode_version = '3.0.0'")


def _spoil_headings(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE sections SET heading_path = 'no JSON'")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"no database" * 1_000),
        lambda path: path.write_bytes(path.read_bytes()[:5_000]),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
        _flip,
        _forget_origin,
        _other_unicode,
        _spoil_headings,
    ],
    ids=[
        "no database",
        "cut",
        "empty",
        "missing",
        "zeroed",
        "other version",
        "other Unicode",
        "unreadable rows",
    ],
)
def test_a_build_before_that_cannot_be_used_makes_a_fresh_one(tmp_path: Path, spoil: object) -> None:
    documents = ten(random.Random(2))
    build(tmp_path / "1", documents)
    assert callable(spoil)
    spoil(tmp_path / "1")
    documents[0] = make_document("d0", "something else")
    assert build(tmp_path / "2", documents, tmp_path / "1").n_written == 10
    build(tmp_path / "fresh", documents)
    assert (tmp_path / "2").read_bytes() == (tmp_path / "fresh").read_bytes()


def test_a_failure_leaves_nothing_and_the_build_before_whole(tmp_path: Path) -> None:
    documents = ten(random.Random(2))
    build(tmp_path / "1", documents)
    before = (tmp_path / "1").read_bytes()
    versions = sealed([*documents, make_document("new", "x")]).documents

    def load(doc_id: str, version: str) -> Document:
        raise LookupError(doc_id)

    with pytest.raises(LookupError, match="new"):
        build_lexical_index(tmp_path / "2", versions, load, previous=tmp_path / "1")
    assert list(tmp_path.iterdir()) == [tmp_path / "1"]
    assert (tmp_path / "1").read_bytes() == before


def test_cjk_text_is_warned_about(tmp_path: Path) -> None:
    chinese = build(tmp_path / "1", [make_document("a", "这是一个关于检索的文档" * 20)])
    assert chinese.warning is not None
    assert "Chinese, Japanese or Korean" in chinese.warning
    english = build(tmp_path / "2", [make_document("a", "plain English, with one 漢 " * 20)])
    assert english.warning is None


def test_missing_damaged_and_foreign_files_are_named(tmp_path: Path) -> None:
    build(tmp_path / "good", ten(random.Random(2)))
    (tmp_path / "damaged").write_bytes(b"x" * 5_000)
    (tmp_path / "empty").touch()
    for name in ("missing", "damaged", "empty"):
        with pytest.raises(IndexCorrupt, match=f"{name} is damaged"):
            LexicalIndex(tmp_path / name)
    shutil.copy(tmp_path / "good", tmp_path / "foreign")
    _forget_origin(tmp_path / "foreign")
    with pytest.raises(IndexOutdated, match="schema version 0"):
        LexicalIndex(tmp_path / "foreign")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE sections_fts_lengths SET entries = x'010203'",
        "UPDATE sections_fts_lengths SET entries = x''",
        "DELETE FROM sections_fts_lengths",
        "INSERT INTO sections_fts_lengths VALUES (x'')",
        "UPDATE sections_fts_postings SET entries = x'010203'",
        "UPDATE sections_fts_postings SET entries = 'text'",
        "UPDATE sections_fts_postings SET block = 7",
        "UPDATE sections_fts_postings SET entries = zeroblob(4000)",
        "DROP TABLE sections_fts_postings",
    ],
)
def test_damaged_posting_lists_are_told(tmp_path: Path, damage: str) -> None:
    build(tmp_path / "l", [make_document(f"d{i}", f"words {i}") for i in range(10)])
    execute(tmp_path / "l", damage)
    with pytest.raises(IndexCorrupt, match="damaged"):
        LexicalIndex(tmp_path / "l").score_sections("words")


@pytest.mark.parametrize(
    "damage",
    ["UPDATE sections_fts_lengths SET entries = x'010203'", "DROP TABLE sections_fts_postings"],
)
def test_an_index_whose_damage_is_in_the_way_is_built_afresh(tmp_path: Path, damage: str) -> None:
    documents = [make_document(f"d{i}", f"words {i}") for i in range(10)]
    build(tmp_path / "before", documents)
    execute(tmp_path / "before", damage)
    build(tmp_path / "after", [make_document("d0", "words changed"), *documents[1:]], tmp_path / "before")
    assert len(LexicalIndex(tmp_path / "after").score_sections("words").positions) == 10


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_a_word_longer_than_a_token_is_found_and_hinders_no_other(tmp_path: Path) -> None:
    endless = "中" * 11_000
    index = opened(tmp_path / "l", make_document("a", f"{endless} cat"), make_document("b", "dog"))
    assert found(index, "㌖" * 1_900) == []  # whose normal form is as long
    assert found(index, endless) == ["a"]
    assert found(index, "dog") == ["b"]


def test_a_full_disk_is_named_with_the_file(tmp_path: Path) -> None:
    with file_size_limit(4096), pytest.raises(StoreUnavailable, match=r"cannot use .*l\.sqlite \("):
        build(tmp_path / "l.sqlite", [make_document("a", "words")])
    assert list(tmp_path.glob("*.sqlite")) == []


REWRITTEN = DocumentOutcome("d", (SectionOutcome(1, "accepted", "terse words"), SectionOutcome(2, "raw")))


def restructured(body: str = "verbose prose") -> Document:
    return replace(REWRITTEN, doc_id="d").applied_to(make_document("d", f"Head: {body}", "Other: plain"))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("raw", {"verbose", "plain"}),
        ("restructured", {"terse", "plain"}),
        ("both", {"verbose", "terse", "plain"}),
    ],
)
def test_the_source_says_which_text_is_found(
    tmp_path: Path, source: LexicalSource, expected: set[str]
) -> None:
    document = restructured()
    build_lexical_index(tmp_path / "i", sealed([document]).documents, lambda *_: document, source=source)
    index = LexicalIndex(tmp_path / "i")
    assert {word for word in ("verbose", "terse", "plain") if found(index, word)} == expected
    assert {word for word in ("verbose", "terse", "plain") if sections_found(index, word)} == expected
    stored = index.stored_section(0)
    assert (stored.text, stored.rewritten) == ("## Head\nverbose prose", "terse words")
    assert index.stored_section(1).rewritten is None


@pytest.mark.parametrize("source", ["raw", "restructured", "both"])
def test_rewritten_documents_are_taken_out_as_they_were_put_in(tmp_path: Path, source: LexicalSource) -> None:
    others = [make_document(f"o{n}", "Head: filler text") for n in range(9)]
    before, after = restructured(), make_document("d", "Head: new")

    def build_of(name: str, document: Document, previous: Path | None) -> LexicalBuild:
        by_id = {d.doc_id: d for d in [document, *others]}
        versions = sealed(by_id.values()).documents
        path = tmp_path / name
        return build_lexical_index(path, versions, lambda d, _: by_id[d], source=source, previous=previous)

    build_of("1", before, None)
    assert build_of("2", after, tmp_path / "1").n_removed == 1
    index = LexicalIndex(tmp_path / "2")
    assert not any(found(index, word) or sections_found(index, word) for word in ("verbose", "terse"))
    with sqlite3.connect(tmp_path / "2") as connection:
        for table in ("documents_fts", "sections_fts"):
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")


def test_an_index_of_another_source_is_not_brought_up_to_date(tmp_path: Path) -> None:
    documents = {d.doc_id: d for d in [restructured(), *(make_document(f"o{n}", "x") for n in range(9))]}
    versions = sealed(documents.values()).documents
    build_lexical_index(tmp_path / "1", versions, lambda d, _: documents[d], source="raw")
    again = build_lexical_index(
        tmp_path / "2", versions, lambda d, _: documents[d], source="both", previous=tmp_path / "1"
    )
    assert again.n_written == 10
