"""Runs and judgements in files: the formats of trec_eval, and BEIR's judgements.

Reading is strict, since a line that is skipped or read askew changes a measure without a word. What the numbers are
worth is for the measures to say.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.measures import MAX_GRADE, id_fault, ranking
from prime_pipeline.records import Qrels, Run
from prime_pipeline.storage.atomic import atomic_path

QrelsLayout = Literal["trec", "beir"]

_BEIR_HEADER: Final = "query-id\tcorpus-id\tscore\n"
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE_NUMBER: Final = re.compile(r"[+-]?\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TrecRun:
    """A run as a file holds it.

    Attributes:
        run: Query id to document id to score.
        tag: Name of the system, from the first line; empty for a file without lines.
        warnings: What is odd about the file though it can be scored, one sentence each.
    """

    run: Run
    tag: str
    warnings: tuple[str, ...] = ()


class _LineError(Exception):
    """What is wrong with one line; the reader adds where."""


def read_run(path: Path) -> TrecRun:
    """Read a run: lines of ``query Q0 document rank score tag`` between blanks or tabs.

    As in trec_eval, results are ranked by score, and the rank column only serves for a warning where it contradicts
    the scores. Ties go by ascending id (in trec_eval by descending id). The lines may come in any order. UTF-8, with
    or without byte order mark; lines end in LF or CRLF; blank lines are skipped.

    Raises:
        EvaluationError: The file cannot be read, or a line is malformed: not six fields, a rank that is no whole
            number, a score that is no finite number, a document that its query had before, NUL, or bytes that are not
            UTF-8 (half of a surrogate pair among them). Names file and line.
    """
    found: dict[str, dict[str, tuple[int, float]]] = {}
    tags: dict[str, None] = {}

    def add(line: bytes) -> None:
        query, _, doc_id, rank, score, tag = _fields(line.split(), "query Q0 document rank score tag")
        row = found.setdefault(query, {})
        if doc_id in row:
            raise _LineError(f"query {query!r} has document {doc_id!r} twice: keep one of the lines")
        row[doc_id] = _whole_number("rank", rank), _finite(score)
        tags[tag] = None

    _read_lines(path, add)
    run = {query: {doc_id: score for doc_id, (_, score) in row.items()} for query, row in found.items()}
    contradictory = sum(_contradicts(row.values()) for row in found.values())
    warnings = _warnings(path.name, list(tags), contradictory, len(found))
    return TrecRun(run, next(iter(tags), ""), tuple(warnings))


def write_run(path: Path, run: Run, tag: str = "prime") -> None:
    """Write a run atomically, by query id and rank; read again, it has the same scores and the same ranking.

    Ranks are those of the measures: by falling score, ties by ascending id. A query without results leaves no trace
    in the file; to the measures it is a query without results all the same.

    Raises:
        EvaluationError: An id or the tag is empty or holds a blank, which the format cannot express, or a score is
            not finite. The file stays as it was.
        StoreUnavailable: The file cannot be written.
    """
    _write_lines(path, _run_lines(run, tag))


def read_qrels(path: Path) -> Qrels:
    """Read judgements: lines of ``query 0 document grade``, or BEIR's ``query<TAB>document<TAB>grade``.

    A first line of three fields between tabs, the last one ``score``, is BEIR's header and tells the layouts apart.
    Only BEIR's ids may hold blanks. For encoding, line ends and faults see :func:`read_run`.

    Raises:
        EvaluationError: The file cannot be read, or a line is malformed: fields too few or too many, a grade that is
            no whole number up to ``MAX_GRADE``, a document judged twice for one query. Names file and line.
    """
    qrels: dict[str, dict[str, int]] = {}
    judgement: Callable[[bytes], tuple[str, str, str]] | None = None

    def add(line: bytes) -> None:
        nonlocal judgement
        if judgement is None:
            is_header = _is_beir_header(line)
            judgement = _beir_judgement if is_header else _trec_judgement
            if is_header:
                return
        query, doc_id, grade = judgement(line)
        row = qrels.setdefault(query, {})
        if doc_id in row:
            raise _LineError(f"query {query!r} has document {doc_id!r} judged twice: keep one of the lines")
        row[doc_id] = _grade(grade)

    _read_lines(path, add)
    return qrels


def write_qrels(path: Path, qrels: Qrels, layout: QrelsLayout = "trec") -> None:
    """Write judgements atomically, by query id and document id; queries without judgements leave no trace.

    Raises:
        EvaluationError: An id cannot be expressed: empty, or holding a blank (``trec``), a tab, a line break or a
            blank at either end (``beir``); or a grade is beyond ``MAX_GRADE``. The file stays as it was.
        StoreUnavailable: The file cannot be written.
    """
    _write_lines(path, _qrels_lines(qrels, layout))


def _read_lines(path: Path, use: Callable[[bytes], None]) -> None:
    """Hand each line that is not blank to ``use``, one at a time; a fault gets the file and the line."""
    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if content.strip():
                    use(content)
    except _LineError as fault:
        raise EvaluationError(f"{path}:{number}: {fault}") from None
    except UnicodeDecodeError as error:
        raise EvaluationError(
            f"{path}:{number}: not UTF-8 ({error.reason}): convert the file to UTF-8"
        ) from error
    except OSError as error:
        raise EvaluationError(
            f"cannot read {path} ({error.strerror}): check the path and its permissions"
        ) from error


def _fields(fields: list[bytes], expected: str) -> list[str]:
    """The fields of a line as text; ``expected`` names each of them."""
    if len(fields) != len(names := expected.split()):
        raise _LineError(f"expected {len(names)} fields ({expected}), found {len(fields)}")
    if not all(fields):
        raise _LineError(f"a field is empty: fill it ({expected})")
    texts = [field.decode("utf-8") for field in fields]
    if any("\0" in text for text in texts):
        raise _LineError("holds a NUL character, which no id can hold: repair the line")
    return texts


def _trec_judgement(line: bytes) -> tuple[str, str, str]:
    query, _, doc_id, grade = _fields(line.split(), "query 0 document grade")
    return query, doc_id, grade


def _beir_judgement(line: bytes) -> tuple[str, str, str]:
    query, doc_id, grade = _fields(line.rstrip(b"\r\n").split(b"\t"), "query-id corpus-id score")
    return query, doc_id, grade


def _is_beir_header(line: bytes) -> bool:
    names = line.rstrip(b"\r\n").split(b"\t")
    return len(names) == 3 and names[2] == b"score"


def _finite(text: str) -> float:
    # float() alone would take "nan", "1_000" and digits of other scripts.
    if not _NUMBER.fullmatch(text) or not math.isfinite(score := float(text)):
        raise _LineError(f"score {text!r} is no finite number: repair the scorer that made it")
    return score


def _whole_number(name: str, text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text):
        raise _LineError(f"{name} {text!r} is no whole number of at most 18 digits: repair the line")
    return int(text)


def _grade(text: str) -> int:
    grade = _whole_number("grade", text)
    if fault := _grade_fault(grade):
        raise _LineError(fault)
    return grade


def _grade_fault(grade: int) -> str | None:
    return f"grade {grade} is out of range: grades go up to {MAX_GRADE:,}" if abs(grade) > MAX_GRADE else None


def _contradicts(row: Iterable[tuple[int, float]]) -> bool:
    """Whether a result of a later rank has the higher score; results that share a rank contradict nothing."""
    by_rank = sorted(row, key=lambda result: (result[0], -result[1]))
    return any(later > earlier for (_, earlier), (_, later) in pairwise(by_rank))


def _warnings(name: str, tags: list[str], n_contradictory: int, n_queries: int) -> Iterator[str]:
    if n_contradictory:
        yield (
            f"{name}: in {n_contradictory:,} of {n_queries:,} queries the ranks contradict the scores; results are "
            "ranked by score, as in trec_eval."
        )
    if len(tags) > 1:
        yield f"{name}: the lines carry {len(tags):,} tags, from {tags[0]!r} to {tags[-1]!r}; they are read as one run."


def _run_lines(run: Run, tag: str) -> Iterator[str]:
    _check("tag", tag, _trec_fault)
    for query in sorted(run):
        _check("query id", query, _trec_fault)
        for rank, doc_id in enumerate(ranking(query, run[query]), start=1):
            _check("document id", doc_id, _trec_fault)
            # The shortest text that reads as the same number, also for numpy's own floats.
            yield f"{query} Q0 {doc_id} {rank} {float(run[query][doc_id])!r} {tag}\n"


def _qrels_lines(qrels: Qrels, layout: QrelsLayout) -> Iterator[str]:
    fault, template = (_beir_fault, "{}\t{}\t{}\n") if layout == "beir" else (_trec_fault, "{} 0 {} {}\n")
    if layout == "beir":
        yield _BEIR_HEADER
    for query, grades in sorted(qrels.items()):
        _check("query id", query, fault)
        for doc_id, grade in sorted(grades.items()):
            _check("document id", doc_id, fault)
            if wrong := _grade_fault(grade):
                raise EvaluationError(f"query {query!r}, document {doc_id!r}: {wrong}")
            yield template.format(query, doc_id, grade)


def _check(kind: str, name: str, fault: Callable[[str], str | None]) -> None:
    if reason := id_fault(name) or fault(name):
        raise EvaluationError(f"{kind} {name!r} {reason}: rename it, this format cannot hold it")


def _trec_fault(name: str) -> str | None:
    # Blanks of every script: other readers split at them too. A byte order mark would be lost at the file's start.
    if name.split() != [name] or "\ufeff" in name:
        return "holds a blank or a byte order mark" if name else "is empty"
    return None


def _beir_fault(name: str) -> str | None:
    if name.strip() != name or any(mark in name for mark in "\t\r\n\ufeff"):
        return "holds a tab, a line break, a byte order mark, or a blank at an end"
    return None if name else "is empty"


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)
