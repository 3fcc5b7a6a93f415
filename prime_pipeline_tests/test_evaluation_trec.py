"""Runs and judgements in files: every layout by hand, every fault with file and line, and round trips of anything."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_pipeline.errors import EvaluationError, StoreUnavailable
from prime_pipeline.evaluation.measures import evaluate, ranking
from prime_pipeline.evaluation.trec import QrelsLayout, read_qrels, read_run, write_qrels, write_run

BEIR_HEADER = b"query-id\tcorpus-id\tscore\n"
LAYOUTS: tuple[QrelsLayout, ...] = ("trec", "beir")
WRITABLE = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\ufeff"), min_size=1, max_size=8
).filter(lambda text: text.split() == [text])
SCORES = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 1.0]))
RUNS = st.dictionaries(WRITABLE, st.dictionaries(WRITABLE, SCORES, min_size=1))
QRELS = st.dictionaries(WRITABLE, st.dictionaries(WRITABLE, st.integers(-1_000_000, 1_000_000), min_size=1))


def file_of(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "given.txt"
    path.write_bytes(content)
    return path


def test_a_run_in_any_order_with_blanks_and_tabs(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbfq2 Q0 d\xc3\xa9 1 0.5 mine\r\n\r\nq1\tQ0\td2\t2\t-1e-3\tmine\nq1  Q0 a\xc2\xa0b 1 +2. mine"
    found = read_run(file_of(tmp_path, content))
    assert found.run == {"q2": {"dé": 0.5}, "q1": {"d2": -0.001, "a\xa0b": 2.0}}
    assert (found.tag, found.warnings) == ("mine", ())


def test_scores_rank_and_contradicting_ranks_are_told(tmp_path: Path) -> None:
    lines = [
        b"turned Q0 a 1 1.0 t",
        b"turned Q0 b 2 9.0 t",
        b"right Q0 b 2 1.0 t",
        b"right Q0 a 1 9.0 t",
        b"tied Q0 b 1 1.0 t",
        b"tied Q0 a 2 1.0 t",
        b"shared Q0 a 7 1.0 t",
        b"shared Q0 b 7 2.0 t",
        b"late Q0 a 1 3 t",
        b"late Q0 b 1 1 t",
        b"late Q0 c 2 2 t",
    ]
    found = read_run(file_of(tmp_path, b"\n".join(lines)))
    (warning,) = found.warnings
    assert "in 2 of 5 queries the ranks contradict the scores" in warning
    assert ranking("turned", found.run["turned"]) == ["b", "a"]
    assert ranking("tied", found.run["tied"]) == ["a", "b"]


def test_several_tags_are_told(tmp_path: Path) -> None:
    found = read_run(file_of(tmp_path, b"q Q0 a 1 2 one\nq Q0 b 2 1 two\n"))
    assert found.tag == "one"
    assert found.warnings == (
        "given.txt: the lines carry 2 tags, from 'one' to 'two'; they are read as one run.",
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"q Q0 d 1 0.5", "expected 6 fields .*, found 5"),
        (b"q Q0 d e 1 0.5 t", "expected 6 fields .*, found 7"),
        (b"q Q0 a 2 0.5 t", "query 'q' has document 'a' twice"),
        (b"q Q0 d 1 nan t", "score 'nan' is no finite number"),
        (b"q Q0 d 1 -inf t", "score '-inf' is no finite number"),
        (b"q Q0 d 1 1e999 t", "score '1e999' is no finite number"),
        (b"q Q0 d 1 1_0 t", "score '1_0' is no finite number"),
        ("q Q0 d 1 ٣ t".encode(), "score '٣' is no finite number"),
        (b"q Q0 d 1.0 0.5 t", "rank '1.0' is no whole number"),
        (b"q Q0 d\0 1 0.5 t", "NUL"),
        (b"q Q0 d\xff 1 0.5 t", "not UTF-8"),
        (b"q Q0 d\xed\xa0\x80 1 0.5 t", "not UTF-8"),  # half of a surrogate pair
    ],
)
def test_faults_of_a_run(tmp_path: Path, line: bytes, message: str) -> None:
    with pytest.raises(EvaluationError, match=rf"given\.txt:3: .*{message}"):
        read_run(file_of(tmp_path, b"\nq Q0 a 1 1.0 t\n" + line))


@pytest.mark.parametrize("content", [b"q 0 d1 2\nq 0 d2 -1\n", BEIR_HEADER + b"q\td1\t2\r\nq\td2\t-1\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_judgements_of_either_layout(tmp_path: Path, content: bytes, mark: bytes) -> None:
    assert read_qrels(file_of(tmp_path, mark + content)) == {"q": {"d1": 2, "d2": -1}}


def test_ids_of_beir_may_hold_blanks(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    write_qrels(path, {"a query": {"a document": 1}}, "beir")
    assert path.read_bytes() == BEIR_HEADER + b"a query\ta document\t1\n"
    assert read_qrels(path) == {"a query": {"a document": 1}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"q 0 a 1\nq 0 d", "expected 4 fields .*, found 3"),
        (b"q 0 a 1\nq 0 a 1", "query 'q' has document 'a' judged twice"),
        (b"q 0 a 1\nq 0 d 1.0", "grade '1.0' is no whole number"),
        (b"q 0 a 1\nq 0 d 1000001", "grade 1000001 is out of range"),
        (b"q 0 a 1\nq 0 d " + b"9" * 5000, "is no whole number of at most 18 digits"),
        (b"q 0 a 1\nq 0 d\0 1", "NUL"),
        (BEIR_HEADER + b"q a 1", "expected 3 fields .*, found 1"),
        (BEIR_HEADER + b"q\t\t1", "a field is empty"),
        (BEIR_HEADER + BEIR_HEADER, "grade 'score' is no whole number"),
    ],
)
def test_faults_of_judgements(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(EvaluationError, match=rf"given\.txt:2: .*{message}"):
        read_qrels(file_of(tmp_path, content))


def test_beir_without_its_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"given\.txt:1: expected 4 fields"):
        read_qrels(file_of(tmp_path, b"q\td\t1\n"))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"cannot read .*absent.* \(No such file"):
        read_run(tmp_path / "absent")
    with pytest.raises(EvaluationError, match=r"given\.txt:1: not UTF-8"):
        read_qrels(file_of(tmp_path, "q 0 d 1".encode("utf-16")))


def test_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.txt"
    write_run(path, {"q2": {"a": 1.0}, "q1": {"b": 0.1, "a": 0.1, "c": 2.0}, "empty": {}}, "mine")
    assert path.read_text() == (
        "q1 Q0 c 1 2.0 mine\nq1 Q0 a 2 0.1 mine\nq1 Q0 b 3 0.1 mine\nq2 Q0 a 1 1.0 mine\n"
    )
    write_qrels(path, {"q2": {"a": 1}, "q1": {"b": 0, "a": 2}, "empty": {}})
    assert path.read_text() == "q1 0 a 2\nq1 0 b 0\nq2 0 a 1\n"


@settings(max_examples=50, deadline=None)  # every write waits for the disk
@given(RUNS)
def test_a_written_run_reads_the_same(run: dict[str, dict[str, float]]) -> None:
    with TemporaryDirectory() as folder:
        write_run(Path(folder, "run"), run)
        found = read_run(Path(folder, "run"))
    assert found.run == run
    assert found.warnings == ()
    # Ids of a file are in the order of their ranks: as the measures rank them, with equal scores by id.
    assert {q: list(row) for q, row in found.run.items()} == {q: ranking(q, row) for q, row in run.items()}


@settings(max_examples=50, deadline=None)
@given(QRELS, st.sampled_from(LAYOUTS))
def test_written_judgements_read_the_same(qrels: dict[str, dict[str, int]], layout: QrelsLayout) -> None:
    with TemporaryDirectory() as folder:
        write_qrels(Path(folder, "qrels"), qrels, layout)
        assert read_qrels(Path(folder, "qrels")) == qrels


@pytest.mark.parametrize("wrong", ["a b", "", "a\tb", "a\n", "a\u3000b", "a\0", "\ud800", "\ufeffa"])
def test_ids_that_cannot_be_written_are_named(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "run.txt"
    path.write_text("old")
    for run, tag in (
        ({wrong: {"d": 1.0}}, "t"),
        ({"q": {"a": 2.0, wrong: 1.0}}, "t"),
        ({"q": {"d": 1.0}}, wrong),
    ):
        with pytest.raises(EvaluationError) as caught:
            write_run(path, run, tag)
        assert repr(wrong) in str(caught.value)
    for qrels in ({wrong: {"d": 1}}, {"q": {"a": 1, wrong: 1}}):
        with pytest.raises(EvaluationError, match="rename it"):
            write_qrels(path, qrels)
    assert [file.name for file in tmp_path.iterdir()] == ["run.txt"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("wrong", ["a\tb", "", " a", "a\r", "a\nb", "\0"])
def test_ids_that_beir_cannot_hold_are_named(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(EvaluationError, match="rename it"):
        write_qrels(tmp_path / "test.tsv", {"q": {wrong: 1}}, "beir")


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_scores_that_are_not_finite_are_not_written(tmp_path: Path, score: float) -> None:
    with pytest.raises(EvaluationError, match="finite"):
        write_run(tmp_path / "run", {"q": {"d": score}})


def test_grades_out_of_range_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="query 'q', document 'd': grade 1000001 is out of range"):
        write_qrels(tmp_path / "qrels", {"q": {"d": 1_000_001}})


def test_a_folder_that_is_a_file_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="run"):
        write_run(tmp_path / "file" / "run", {"q": {"d": 1.0}})


def test_a_foreign_run_is_scored(tmp_path: Path) -> None:
    run = read_run(file_of(tmp_path, b"q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\nq2 Q0 c 1 1 t\n")).run
    qrels = tmp_path / "qrels"
    qrels.write_text("q1 0 b 1\nq2 0 c 1\nq3 0 d 1\n")
    assert evaluate(run, read_qrels(qrels), ["mrr"]).means == {"mrr": (1 / 2 + 1 + 0) / 3}
