"""Parquet files as the hub has them: any table, and the tables of QASPER and BRIGHT."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

_ANSWER: Final = (
    "STRUCT(unanswerable BOOLEAN, extractive_spans VARCHAR[], yes_no BOOLEAN, free_form_answer VARCHAR, "
    "evidence VARCHAR[], highlighted_evidence VARCHAR[])"
)
_ABOUT: Final = (
    "nlp_background",
    "topic_background",
    "paper_read",
    "search_query",
    "question_writer",
)
QASPER: Final = {
    "id": "VARCHAR",
    "title": "VARCHAR",
    "abstract": "VARCHAR",
    "full_text": "STRUCT(section_name VARCHAR[], paragraphs VARCHAR[][])",
    "qas": f"STRUCT(question VARCHAR[], question_id VARCHAR[], {', '.join(f'{name} VARCHAR[]' for name in _ABOUT)}, "
    f"answers STRUCT(answer {_ANSWER}[], annotation_id VARCHAR[], worker_id VARCHAR[])[])",
    "figures_and_tables": "STRUCT(caption VARCHAR[], file VARCHAR[])",
}
"""Columns of allenai/qasper."""
BRIGHT_DOCUMENTS: Final = {"id": "VARCHAR", "content": "VARCHAR"}
"""Columns of the documents of xlangai/BRIGHT."""
BRIGHT_EXAMPLES: Final = {
    "query": "VARCHAR",
    "reasoning": "VARCHAR",
    "id": "VARCHAR",
    "excluded_ids": "VARCHAR[]",
    "gold_ids_long": "VARCHAR[]",
    "gold_ids": "VARCHAR[]",
    "gold_answer": "VARCHAR",
}
"""Columns of its queries."""


def write_parquet(path: Path, columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows, given the DuckDB types of their columns; a field that a row lacks is null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.with_suffix(".lines")
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with duckdb.connect() as connection:
        how = f"format = 'newline_delimited', hive_partitioning = false, columns = {dict(columns)}"
        rows_read = f"read_json({_quoted(glob.escape(str(lines)))}, {how})"
        connection.execute(f"COPY (SELECT * FROM {rows_read}) TO {_quoted(str(path))} (FORMAT parquet)")
    lines.unlink()
    return path


def hub_paper(paper_id: str, paper: Mapping[str, Any]) -> dict[str, Any]:
    """A paper of the official QASPER file as a row of the hub's copy: its tables as columns."""
    answers = [
        _columns(question["answers"], "answer", "annotation_id", "worker_id") for question in paper["qas"]
    ]
    return {
        "id": paper_id,
        "title": paper["title"],
        "abstract": paper["abstract"],
        "full_text": _columns(paper["full_text"], "section_name", "paragraphs"),
        "qas": {**_columns(paper["qas"], "question", "question_id", *_ABOUT), "answers": answers},
        "figures_and_tables": _columns(paper["figures_and_tables"], "caption", "file"),
    }


def write_papers_as_parquet(path: Path, papers: Mapping[str, Any]) -> Path:
    """Write papers of the official layout as the hub has them."""
    return write_parquet(path, QASPER, (hub_paper(paper_id, paper) for paper_id, paper in papers.items()))


def write_bright(
    folder: Path,
    task: str,
    documents: Mapping[str, str],
    examples: Iterable[Mapping[str, Any]] = (),
    pages: Mapping[str, str] | None = None,
) -> Path:
    """Write a task: documents by id, examples, and whole pages if there are any; returns the folder."""
    name = f"{task}-00000-of-00001.parquet"
    for form, texts in {"documents": documents, "long_documents": pages or {}}.items():
        if texts:
            rows = [{"id": doc_id, "content": text} for doc_id, text in texts.items()]
            write_parquet(folder / form / name, BRIGHT_DOCUMENTS, rows)
    write_parquet(folder / "examples" / name, BRIGHT_EXAMPLES, examples)
    return folder


def _columns(rows: Sequence[Mapping[str, Any]], *names: str) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in names}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
